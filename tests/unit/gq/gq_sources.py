"""The schema of the query tests, and short ways to compile a query against it."""

from __future__ import annotations

from pathlib import Path

from omnigraph.catalog.build import compile_source
from omnigraph.plan.check import compile_query
from omnigraph.plan.typed import CheckedQuery, MutationQuery, ReadQuery

FIXTURES = Path(__file__).parent / "fixtures"
CATALOG = compile_source((FIXTURES / "schema.pg").read_text(encoding="utf-8"))


def compiled(body: str, params: str = "") -> CheckedQuery:
    return compile_query(CATALOG, f"query q({params}) {{ {body} }}")


def read(body: str, params: str = "") -> ReadQuery:
    found = compiled(body, params)
    assert isinstance(found, ReadQuery)
    return found


def mutation(body: str, params: str = "") -> MutationQuery:
    found = compiled(body, params)
    assert isinstance(found, MutationQuery)
    return found
