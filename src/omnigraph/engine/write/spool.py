"""Rows set aside: in memory while they are few, in a file of the scratch when they are many.

Holds for every RowSpool:
  1. Batches come back in the order they were added, as often as they are asked for.
  2. The spools of one scratch together keep no more than its bound in memory; the largest goes to disk first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import InternalError
from omnigraph.records.decode import POSITION
from omnigraph.records.meeting import meets
from omnigraph.sets.scratch import Relation, Scratch

Numbers: TypeAlias = "np.ndarray[Any, Any]"


def contains(ordered: Numbers, values: Numbers) -> Numbers:
    """Which of the values are in `ordered`, as flags."""
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    places = np.searchsorted(ordered, values)
    found: Numbers = ordered[np.minimum(places, len(ordered) - 1)] == values
    return found


def rows_at(batches: Iterable[pa.RecordBatch], positions: Numbers, column: str) -> Iterator[pa.RecordBatch]:
    """The rows whose position is one of these, which are ascending."""
    for batch in batches:
        hit = contains(positions, batch.column(column).to_numpy())
        if hit.any():
            yield batch.filter(pa.array(hit))


def rows_meeting(batches: Iterable[pa.RecordBatch], wanted: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        met = meets(batch, wanted)
        if met.num_rows:
            yield met


class Rows(Protocol):
    """Rows of one table that were read and converted, wherever they lie."""

    schema: pa.Schema
    num_rows: int

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]: ...

    def relation(self, columns: Sequence[str]) -> Relation: ...

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows at once; for few rows."""

    def at(self, positions: Numbers) -> Iterator[pa.RecordBatch]:
        """The rows at these positions, which are ascending."""

    def meeting(self, wanted: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        """The rows that hold one of the wanted values in its column."""

    def without(self, positions: Numbers, dropped: RowSpool | None = None) -> Rows:
        """The rows at other positions; `dropped` takes what it has columns for of those left out."""

    def close(self) -> None: ...


class RowSpool:
    """Add batches, then read them. The first reading ends the adding."""

    def __init__(self, schema: pa.Schema, scratch: Scratch | None = None) -> None:
        self.schema = schema
        self.num_rows = 0
        self.memory_bytes = 0
        self.total_bytes = 0
        self._scratch = scratch
        self._batches: list[pa.RecordBatch] = []
        self._path: str | None = None
        self._sink: pa.OSFile | None = None
        self._writer: pa.RecordBatchFileWriter | None = None
        self._sealed = False
        if scratch is not None:
            scratch.spools.append(self)

    @staticmethod
    def of(table: pa.Table) -> RowSpool:
        """Rows that are in memory already and stay there."""
        spool = RowSpool(table.schema)
        for batch in table.to_batches():
            spool.append(batch)
        return spool

    @property
    def is_spilled(self) -> bool:
        return self._path is not None

    def append(self, batch: pa.RecordBatch) -> None:
        if self._sealed:
            raise InternalError("rows were added to a spool that is being read")
        if not batch.num_rows:
            return
        self.num_rows += batch.num_rows
        self.total_bytes += batch.nbytes
        if self._writer is not None:
            self._writer.write_batch(batch)
            return
        self._batches.append(batch)
        self.memory_bytes += batch.nbytes
        if self._scratch is not None:
            self._scratch.make_room()

    def extend(self, batches: Iterable[pa.RecordBatch]) -> RowSpool:
        for batch in batches:
            self.append(batch)
        return self

    def spill(self) -> None:
        """Move what is in memory to a file; later rows go there too."""
        assert self._scratch is not None
        self._path = self._scratch.new_file()
        self._sink = pa.OSFile(self._path, "wb")
        self._writer = pa.ipc.new_file(self._sink, self.schema)
        for batch in self._batches:
            self._writer.write_batch(batch)
        self._batches, self.memory_bytes = [], 0
        if self._sealed:
            self._finish_file()

    def batches(self, columns: Sequence[str] | None = None, first: int = 0) -> Iterator[pa.RecordBatch]:
        """The batches from number `first` on."""
        self._seal()
        if self._path is None:
            wanted_batches = self._batches[first:]
            yield from wanted_batches if columns is None else (b.select(list(columns)) for b in wanted_batches)
            return
        wanted = None if columns is None else [self.schema.get_field_index(name) for name in columns]
        # A plain file, not a memory map: mapped pages would count as the process's memory.
        with pa.OSFile(self._path) as source:
            options = pa.ipc.IpcReadOptions(included_fields=wanted, use_threads=False)
            file = pa.ipc.open_file(source, options=options)
            for number in range(first, file.num_record_batches):
                batch = file.get_batch(number)
                yield batch if columns is None else batch.select(list(columns))

    def relation(self, columns: Sequence[str]) -> Relation:
        if not self.is_spilled:
            return Relation.of(self.table(columns))
        schema = pa.schema([self.schema.field(name) for name in columns])
        return Relation(schema, lambda: self.batches(columns), self.num_rows)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        """All rows at once; for spools known to be small."""
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(columns), schema=schema)

    def at(self, positions: Numbers) -> Iterator[pa.RecordBatch]:
        """The rows at these positions, which are ascending."""
        return rows_at(self.batches(), positions, POSITION if POSITION in self.schema.names else "position")

    def meeting(self, wanted: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        """The rows that hold one of the wanted values in its column."""
        return rows_meeting(self.batches(), wanted)

    def without(self, positions: Numbers, dropped: RowSpool | None = None) -> RowSpool:
        """A new spool of the rows at other positions; `dropped` takes what it has columns for of those left out."""
        kept = RowSpool(self.schema, self._scratch)
        gone = np.sort(positions)
        for batch in self.batches():
            hit = contains(gone, batch.column(POSITION).to_numpy())
            kept.append(batch.filter(pa.array(~hit)) if hit.any() else batch)
            if dropped is not None and hit.any():
                dropped.append(batch.select(dropped.schema.names).filter(pa.array(hit)).cast(dropped.schema))
        return kept

    def close(self) -> None:
        self._seal()
        self._batches, self.memory_bytes = [], 0
        if self._scratch is not None and self in self._scratch.spools:
            self._scratch.spools.remove(self)
            if self._path is not None:
                self._scratch.remove(self._path)

    def _seal(self) -> None:
        if not self._sealed:
            self._sealed = True
            self._finish_file()

    def _finish_file(self) -> None:
        if self._writer is not None and self._sink is not None:
            self._writer.close()
            self._sink.close()
