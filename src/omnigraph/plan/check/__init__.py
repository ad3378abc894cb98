"""The type checker: a syntax tree and a catalog become a typed query, or an error with the code of the broken rule."""

from omnigraph.plan.check.query import check_query, compile_query

__all__ = ["check_query", "compile_query"]
