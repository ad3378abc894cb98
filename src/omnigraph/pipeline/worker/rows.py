"""Reads rows that are on their way into a table, and rows that are stored, on executors and on the driver alike."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.pipeline.worker.carry import pack
from omnigraph.records.decode import POSITION
from omnigraph.storage.fragments import read_fragments
from omnigraph.storage.row_files import RowFile, RowFolder, read_row_file

Numbers: TypeAlias = "np.ndarray[Any, Any]"
PART = "part"


@dataclass(frozen=True)
class Dropped:
    """Positions that are left out, ascending: here, or in files when they are many."""

    positions: Numbers = field(default_factory=lambda: np.array([], np.int64), repr=False)
    files: tuple[RowFile, ...] = ()

    def within(self, file: RowFile, options: Mapping[str, str] | None) -> Numbers:
        parts = [self.positions]
        for stored in self.files:
            for batch in read_row_file(stored, options):
                found = batch.column(0).to_numpy()
                parts.append(found[(found >= file.first) & (found <= file.last)])
        return np.concatenate(parts)


@dataclass(frozen=True)
class Reading:
    """How to read row files: which columns, without which rows."""

    columns: tuple[str, ...]
    dropped: Dropped = Dropped()
    options: Mapping[str, str] | None = field(default=None, repr=False)

    def batches(self, file: RowFile) -> Iterator[pa.RecordBatch]:
        gone = self.dropped.within(file, self.options)
        if not len(gone):
            yield from read_row_file(file, self.options, self.columns)
            return
        wanted = [*self.columns, *([] if POSITION in self.columns else [POSITION])]
        for batch in read_row_file(file, self.options, wanted):
            hit = np.isin(batch.column(POSITION).to_numpy(), gone)
            yield (batch.filter(pa.array(~hit)) if hit.any() else batch).select(list(self.columns))


def read_packed(group: Sequence[tuple[int, RowFile]], reading: Reading, numbered: bool) -> Iterator[pa.RecordBatch]:
    """Rows as they travel through Spark; `numbered` adds the number of their file as PART."""
    for number, file in group:
        for batch in reading.batches(file):
            packed = pack(batch)
            if numbered:
                packed = packed.append_column(PART, pa.array(np.full(batch.num_rows, number, np.int32)))
            yield packed


@dataclass(frozen=True)
class StoredTable:
    """A table at one version, as executors reach it."""

    uri: str
    version: int
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)

    @property
    def options(self) -> dict[str, str] | None:
        return None if self.storage_options is None else dict(self.storage_options)


def read_stored(group: Sequence[int], table: StoredTable, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Columns of some fragments, as they travel through Spark."""
    for batch in read_fragments(table.uri, table.version, group, columns, table.options):
        yield pack(batch)


def rows_at(group: Sequence[RowFile], positions: Numbers, name: str, reading: Reading) -> Iterator[pa.RecordBatch]:
    """The rows at some positions; `name` is the column that holds them."""
    for file in group:
        near = positions[(positions >= file.first) & (positions <= file.last)]
        if not len(near):
            continue
        for batch in reading.batches(file):
            hit = np.isin(batch.column(name).to_numpy(), near)
            if hit.any():
                yield batch.filter(pa.array(hit))


__all__ = ["PART", "Dropped", "Reading", "RowFolder", "StoredTable", "read_packed", "read_stored", "rows_at"]
