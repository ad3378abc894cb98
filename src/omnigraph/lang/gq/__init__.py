"""The query language: text to syntax tree and back."""

from omnigraph.lang.gq.parser import parse_queries, select_query
from omnigraph.lang.gq.printer import print_queries

__all__ = ["parse_queries", "print_queries", "select_query"]
