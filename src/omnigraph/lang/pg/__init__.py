"""The schema language: text to syntax tree and back."""

from omnigraph.lang.pg.parser import parse_schema
from omnigraph.lang.pg.printer import print_schema

__all__ = ["parse_schema", "print_schema"]
