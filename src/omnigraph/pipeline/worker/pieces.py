"""Relations that lie in many places: each piece says where some rows are and under which names they are meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.records.decode import POSITION
from omnigraph.storage.fragments import read_fragments
from omnigraph.storage.row_files import RowFile, read_row_file
from omnigraph.storage.shapes import Shape

Numbers: TypeAlias = "np.ndarray[Any, Any]"
# Stands for the number of the file a row lies in.
PART = "__part"


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


@dataclass(frozen=True)
class StoredTable:
    """A table at one version, as executors reach it."""

    uri: str
    version: int
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    shape: Shape | None = None

    @property
    def options(self) -> dict[str, str] | None:
        return None if self.storage_options is None else dict(self.storage_options)


@dataclass(frozen=True)
class FileRows:
    """The rows of a file; `part` is the file's number."""

    file: RowFile
    reading: Reading
    part: int = 0

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        plain = tuple(name for name in columns if name != PART)
        for batch in replace(self.reading, columns=plain).batches(self.file):
            if PART in columns:
                batch = batch.append_column(PART, pa.array(np.full(batch.num_rows, self.part, np.int32)))
            yield batch.select(list(columns))


@dataclass(frozen=True)
class StoredRows:
    """The rows of some fragments of a table."""

    table: StoredTable
    fragment_ids: tuple[int, ...]

    def read(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        table = self.table
        return read_fragments(table.uri, table.version, self.fragment_ids, columns, table.options, table.shape)


@dataclass(frozen=True)
class Column:
    """A column of a piece: what it is read from, or nulls."""

    name: str
    source: str | None


@dataclass(frozen=True)
class Piece:
    rows: FileRows | StoredRows
    columns: tuple[Column, ...]

    def batches(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        """The rows in the types of `schema`, whose names are those of the columns."""
        sources = list(dict.fromkeys(column.source for column in self.columns if column.source is not None))
        for batch in self.rows.read(sources):
            if batch.num_rows:
                arrays = [
                    pa.nulls(batch.num_rows, meant.type) if column.source is None else batch.column(column.source)
                    for column, meant in zip(self.columns, schema, strict=True)
                ]
                yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def rows_at(group: Sequence[RowFile], positions: Numbers, name: str, reading: Reading) -> Iterator[pa.RecordBatch]:
    """The rows at some positions, which are ascending; `name` is the column that holds them."""
    for file in group:
        near = positions[(positions >= file.first) & (positions <= file.last)]
        if not len(near):
            continue
        for batch in reading.batches(file):
            hit = np.isin(batch.column(name).to_numpy(), near)
            if hit.any():
                yield batch.filter(pa.array(hit))
