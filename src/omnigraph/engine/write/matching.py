"""The rows a `where` selects: a filter for the store to find candidates, a mask that decides.

Holds at every return: a row is selected iff every comparison is TRUE for it, wherever the row was when it was asked.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import TableType
from omnigraph.catalog.types import FLOATS, PropertyType, arrow_type
from omnigraph.plan.compare import Always, Normal, normal
from omnigraph.plan.operands import Values
from omnigraph.plan.typed import ColumnPredicate, Comparator
from omnigraph.storage.predicates import compared
from omnigraph.storage.tables import Table

_MASKS = {
    Comparator.EQ: pc.equal,
    Comparator.NE: pc.not_equal,
    Comparator.LT: pc.less,
    Comparator.LE: pc.less_equal,
    Comparator.GT: pc.greater,
    Comparator.GE: pc.greater_equal,
}


@dataclass(frozen=True)
class _Test:
    column: str
    type: PropertyType
    rule: Normal | Always


class Where:
    """The conjunction of a statement, for one run of it."""

    def __init__(self, predicates: Sequence[ColumnPredicate], values: Values) -> None:
        self._tests = [_Test(p.column, p.type, normal(p.type, p.comparator, values.of(p.value))) for p in predicates]

    @property
    def selects_nothing(self) -> bool:
        return any(t.rule is Always.NEVER for t in self._tests)

    def columns(self) -> list[str]:
        return list(dict.fromkeys(t.column for t in self._tests))

    def mask(self, batch: pa.RecordBatch) -> pa.Array:
        return reduce(pc.and_, (_mask(t, batch.column(t.column)) for t in self._tests))

    def filter_text(self) -> str | None:
        """A filter that lets through at least the selected rows; None when nothing useful can be said."""
        texts = [text for t in self._tests if (text := _text(t)) is not None]
        return " AND ".join(texts) or None

    def selected(self, table: Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The stored rows it selects, in batches with these columns."""
        if self.selects_nothing:
            return
        wanted = [*columns, *(c for c in self.columns() if c not in columns)]
        for batch in table.batches(wanted, self.filter_text()):
            found = batch.filter(self.mask(batch)).select(list(columns))
            if found.num_rows:
                yield found


def _mask(test: _Test, column: pa.Array) -> pa.Array:
    if test.rule is Always.NEVER:
        return pa.array([False] * len(column), pa.bool_())
    if test.rule is Always.IF_PRESENT:
        return pc.is_valid(column)
    assert isinstance(test.rule, Normal)
    if test.type.scalar in FLOATS:
        column = column.cast(pa.float64())
    return pc.fill_null(_MASKS[test.rule.comparator](column, _scalar(test)), False)


def _scalar(test: _Test) -> Any:
    assert isinstance(test.rule, Normal)
    type_ = pa.float64() if test.type.scalar in FLOATS else arrow_type(test.type)
    return pa.scalar(test.rule.value, type_)


def _text(test: _Test) -> str | None:
    if test.rule is Always.NEVER:
        return "false"
    if test.rule is Always.IF_PRESENT:
        return f"`{test.column}` IS NOT NULL"
    assert isinstance(test.rule, Normal)
    return compared(test.column, test.rule.comparator.value, _scalar(test), arrow_type(test.type))


def incident_edges(table: Table, ends: Sequence[str], node_ids: pa.Array) -> Iterator[pa.Array]:
    """The ids of stored edges one of whose `ends` ("src", "dst") is among the nodes; an id may come twice."""
    for end in ends:
        for found in table.matching(end, node_ids, ["id"]):
            yield found.column("id")


def edge_ends(edge: TableType, node_name: str) -> list[str]:
    """At which ends of an edge type nodes of this type stand."""
    kinds = {"src": getattr(edge, "src_type", None), "dst": getattr(edge, "dst_type", None)}
    return [end for end, kind in kinds.items() if kind == node_name]
