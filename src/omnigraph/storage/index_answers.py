"""The same question asked of an index and of the rows, as sets of row ids; a set is a count and a sum of hashes.

Sums are compared, not the rows themselves, so that an index over any number of rows is checked in little memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.storage.failures import translated
from omnigraph.storage.predicates import compared
from omnigraph.storage.tables import Table

ROW_ID = "_rowid"
_BATCH_ROWS = 16_384
_SEEN_MAX = 4_096
_RANGES_MAX = 32
Numbers = np.ndarray[Any, Any]


@dataclass(frozen=True)
class RowSet:
    """Row ids, as far as needed to tell two sets apart."""

    count: int = 0
    mixed: int = 0

    def with_rows(self, row_ids: Numbers) -> RowSet:
        mixed = int(_mixed(row_ids).sum(dtype=np.uint64)) if len(row_ids) else 0
        return RowSet(self.count + len(row_ids), (self.mixed + mixed) & 0xFFFFFFFFFFFFFFFF)


def _mixed(numbers: Numbers) -> Numbers:
    """A hash of each number, so that sums of different sets differ."""
    found = numbers.astype(np.uint64, copy=True)
    with np.errstate(over="ignore"):
        found ^= found >> np.uint64(30)
        found *= np.uint64(0xBF58476D1CE4E5B9)
        found ^= found >> np.uint64(27)
        found *= np.uint64(0x94D049BB133111EB)
        found ^= found >> np.uint64(31)
    return found


@dataclass(frozen=True)
class Range:
    """A question about one column, and the rows for which it is true."""

    where: str
    rows: RowSet


def scanned_ranges(table: Table, column: str) -> list[Range]:
    """The values of a column in ranges that hold about as many rows each, read without an index; nulls apart.

    Values that no filter can name are left out.
    """
    type_ = table.schema.field(column).type
    bounds = _bounds(table, column)
    edges = [(b, compared(column, ">=", b, type_), compared(column, "<", b, type_)) for b in bounds]
    named = [(b, low, high) for b, low, high in edges if low is not None and high is not None]
    wheres = _wheres(column, [low for _, low, _ in named], [high for _, _, high in named])
    sets = [RowSet() for _ in wheres]
    for batch in _scan(table, [column, ROW_ID], None, use_index=False):
        values, row_ids = batch.column(column), batch.column(ROW_ID).to_numpy()
        place = np.zeros(len(values), np.int64)
        for bound, _, _ in named:
            place += _flags(pc.greater_equal(values, bound))
        place[_flags(pc.is_null(values))] = len(wheres) - 1
        for number in np.unique(place):
            sets[number] = sets[number].with_rows(row_ids[place == number])
    return [Range(where, rows) for where, rows in zip(wheres, sets, strict=True)]


def _wheres(column: str, lows: Sequence[str], highs: Sequence[str]) -> list[str]:
    if not lows:
        return [f"`{column}` IS NOT NULL", f"`{column}` IS NULL"]
    between = [f"{low} AND {high}" for low, high in zip(lows, highs[1:], strict=False)]
    return [highs[0], *between, lows[-1], f"`{column}` IS NULL"]


def _bounds(table: Table, column: str) -> list[pa.Scalar]:
    """Some values of the column, ascending and different."""
    every = max(1, table.count_rows() // _SEEN_MAX)
    seen = [
        batch.column(column).take(pa.array(np.arange(0, batch.num_rows, every), pa.int64()))
        for batch in _scan(table, [column], None, use_index=False)
    ]
    values = pc.unique(pa.chunked_array(seen, table.schema.field(column).type)).drop_null()
    if pa.types.is_floating(values.type):
        values = values.filter(pc.is_finite(values))
    ordered = values.take(pc.array_sort_indices(values))
    step = max(1, len(ordered) // _RANGES_MAX)
    return [ordered[i] for i in range(0, len(ordered), step)]


def indexed_rows(table: Table, where: str) -> RowSet:
    """The rows an index finds; Lance reads those itself that no index covers."""
    found = RowSet()
    for batch in _scan(table, [ROW_ID], where, use_index=True):
        found = found.with_rows(batch.column(ROW_ID).to_numpy())
    return found


def _scan(table: Table, columns: Sequence[str], where: str | None, *, use_index: bool) -> Iterator[pa.RecordBatch]:
    with translated(f"read {table.ref.path}"):
        yield from table.dataset.scanner(
            list(columns), where, batch_size=_BATCH_ROWS, use_scalar_index=use_index
        ).to_reader()


def _flags(mask: pa.Array) -> Numbers:
    return np.asarray(mask.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)
