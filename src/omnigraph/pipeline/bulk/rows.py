"""Rows of a load that lie in files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.engine.write.spool import Numbers, RowSpool
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.spread import SpreadRelation
from omnigraph.pipeline.worker.look import MeetingTask, meeting_rows
from omnigraph.pipeline.worker.pieces import PART, Column, Dropped, FileRows, Piece, Reading, rows_at
from omnigraph.records.decode import POSITION
from omnigraph.sets.scratch import Relation
from omnigraph.storage.row_files import RowFile, RowFileWriter

# Up to here one process compares the rows of a table sooner than executors do.
COMPARE_HERE_ROWS_MAX = 50_000
# Up to here the positions left out travel with each task.
_DROPPED_FEW = 20_000
_POSITIONS = pa.schema([("position", pa.int64())])


def is_few(rows: int) -> bool:
    """Whether asking executors about so many rows would only cost time."""
    return rows <= COMPARE_HERE_ROWS_MAX


class StagedRows:
    """Rows in files, without those at the positions dropped since."""

    def __init__(
        self, desk: Desk, schema: pa.Schema, files: Sequence[RowFile], dropped: Dropped | None = None, gone: int = 0
    ) -> None:
        self.schema = schema
        self.num_rows = sum(file.rows for file in files) - gone
        self.files = tuple(files)
        self._desk = desk
        self._dropped = dropped or Dropped()
        self._gone = gone

    def reading(self, columns: Sequence[str] | None = None) -> Reading:
        chosen = tuple(columns) if columns is not None else tuple(self.schema.names)
        return Reading(chosen, self._dropped, self._desk.folder.options)

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        reading = self.reading(columns)
        for file in self.files:
            yield from reading.batches(file)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(columns), schema=schema)

    def relation(self, columns: Sequence[str]) -> Relation:
        if is_few(self.num_rows):
            return Relation.of(self.table(columns))
        return self.spread(columns)

    def spread(self, columns: Sequence[str]) -> SpreadRelation:
        """The rows where they are, however few; PART among the columns is the number of each row's file."""
        fields = [pa.field(PART, pa.int32()) if name == PART else self.schema.field(name) for name in columns]
        named = tuple(Column(name, name) for name in columns)
        reading = self.reading()
        pieces = [Piece(FileRows(file, reading, number), named) for number, file in enumerate(self.files)]
        return SpreadRelation(self._desk, pa.schema(fields), pieces, self.num_rows)

    def at(self, positions: Numbers) -> Iterator[pa.RecordBatch]:
        name = POSITION if POSITION in self.schema.names else "position"
        return rows_at(sorted(self.files, key=lambda file: file.first), positions, name, self.reading())

    def meeting(self, wanted: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        task = MeetingTask(self.reading(), dict(wanted), self._desk.folder)
        groups = self._desk.grouped(self.files)
        for found in self._desk.answers(groups, partial(meeting_rows, task=task), "checking rows"):
            if found is not None:
                yield from StagedRows(self._desk, self.schema, (found,)).batches()

    def without(self, positions: Numbers, dropped: RowSpool | None = None) -> StagedRows:
        gone, left_out = np.unique(positions), 0
        columns = [POSITION] if dropped is None else list(dropped.schema.names)
        for batch in rows_at(self.files, gone, POSITION, self.reading([*dict.fromkeys([POSITION, *columns])])):
            left_out += batch.num_rows
            if dropped is not None:
                dropped.append(batch.select(columns).cast(dropped.schema))
        return StagedRows(self._desk, self.schema, self.files, self._with(gone), self._gone + left_out)

    def _with(self, gone: Numbers) -> Dropped:
        before = self._dropped
        if len(before.positions) + len(gone) <= _DROPPED_FEW:
            return Dropped(np.union1d(before.positions, gone), before.files)
        out = RowFileWriter(self._desk.folder, "dropped", _POSITIONS)
        out.append(pa.RecordBatch.from_arrays([pa.array(gone)], schema=_POSITIONS))
        file = out.close()
        return Dropped(before.positions, before.files if file is None else (*before.files, file))

    def close(self) -> None:
        """The files go with their folder."""
