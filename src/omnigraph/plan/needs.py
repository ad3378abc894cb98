"""Which columns of which tables a plan reads."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.plan.steps import Connect, Expand, Filter, Plan, Scan, Test, walk
from omnigraph.plan.typed import (
    Aggregate,
    Bm25,
    ColumnRef,
    Comparison,
    Nearest,
    PropertyValue,
    Rrf,
    Selected,
    TextSearch,
)

ROW_ID = "_rowid"


def columns_read(plan: Plan) -> dict[str, frozenset[str]]:
    """By table key; a ranking also needs to know rows by their row ids."""
    found: dict[str, set[str]] = {}
    for value in _values(plan):
        found.setdefault(value.owner.table_key, set()).add(value.name)
    for ranking in (v for v in _selected(plan) if isinstance(v, Bm25 | Nearest)):
        found.setdefault(ranking.field.owner.table_key, set()).add(ROW_ID)
    return {key: frozenset(names) for key, names in found.items()}


def _values(plan: Plan) -> Iterator[PropertyValue]:
    for value in (*_tests(plan), *_selected(plan)):
        yield from _properties(value)


def _tests(plan: Plan) -> Iterator[Test]:
    for step in walk(plan.step):
        if isinstance(step, Scan | Expand | Filter):
            yield from step.tests
        if isinstance(step, Expand | Connect):
            yield from step.edge_tests


def _selected(plan: Plan) -> Iterator[Selected | ColumnRef]:
    for value in (*(column.value for column in plan.columns), *(key.value for key in plan.order)):
        yield value
        if isinstance(value, Rrf):
            yield value.first
            yield value.second


def _properties(value: Test | Selected | ColumnRef) -> Iterator[PropertyValue]:
    match value:
        case PropertyValue():
            yield value
        case Comparison():
            yield from _properties(value.left)
            yield from _properties(value.right)
        case TextSearch() | Bm25() | Nearest():
            yield value.field
        case Rrf():
            yield value.first.field
            yield value.second.field
        case Aggregate():
            yield from _properties(value.argument)
        case _:
            return
