"""Rows of a load that lie in files, and relations whose rows lie there or in a table: what the checks read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from omnigraph.engine.scratch import Relation
from omnigraph.engine.write.spool import Numbers, RowSpool
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.worker.carry import carrier, columns_ddl, pack, unpack
from omnigraph.pipeline.worker.look import MeetingTask, meeting_rows
from omnigraph.pipeline.worker.rows import PART, Dropped, Reading, read_packed, rows_at
from omnigraph.records.decode import POSITION
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX
from omnigraph.storage.row_files import RowFile, RowFileWriter

# Up to here the positions left out travel with each task.
_DROPPED_FEW = 20_000
_POSITIONS = pa.schema([("position", pa.int64())])


class SparkRelation(Relation):
    """Rows in a frame; `schema` has their own types, the frame their carriers."""

    def __init__(self, desk: Desk, schema: pa.Schema, frame: DataFrame, row_count: int) -> None:
        super().__init__(schema, self._collected, row_count)
        self.desk = desk
        self.frame = frame

    def _collected(self) -> Iterator[pa.RecordBatch]:
        for file in self.desk.spilled(self.frame, self.schema, "reading rows"):
            yield from StagedRows(self.desk, self.schema, (file,)).batches()

    def renamed(self, names: list[str]) -> SparkRelation:
        schema = pa.schema([pa.field(name, field.type) for name, field in zip(names, self.schema, strict=True)])
        return SparkRelation(self.desk, schema, self.frame.toDF(*names), self.row_count)

    def selected(self, names: list[str]) -> SparkRelation:
        schema = pa.schema([self.schema.field(name) for name in names])
        return SparkRelation(self.desk, schema, self.frame.select(*names), self.row_count)

    def with_nulls(self, name: str, type_: pa.DataType) -> SparkRelation:
        schema = self.schema.append(pa.field(name, type_))
        nulls = columns_ddl(pa.schema([(name, type_)])).split(" ", 1)[1]
        return SparkRelation(self.desk, schema, self.frame.withColumn(name, sf.lit(None).cast(nulls)), self.row_count)

    def followed_by(self, other: Relation) -> SparkRelation:
        if other.table is not None and not other.table.num_rows:
            return self
        frame = self.frame.union(frame_of(self.desk, other))
        return SparkRelation(self.desk, self.schema, frame, self.row_count + other.row_count)


def frame_of(desk: Desk, relation: Relation) -> DataFrame:
    """The relation as a frame, wherever its rows lie."""
    if isinstance(relation, SparkRelation):
        return relation.frame
    table = relation.table if relation.table is not None else relation.reader().read_all()
    packed = [pack(batch) for batch in table.to_batches()]
    carriers = pa.schema([pa.field(field.name, carrier(field.type)) for field in table.schema])
    return desk.local(pa.Table.from_batches(packed, schema=carriers))


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
        schema = pa.schema([self.schema.field(name) for name in reading.columns])
        for file in self.files:
            for batch in reading.batches(file):
                yield unpack(batch.columns, schema)

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        schema = self.schema if columns is None else pa.schema([self.schema.field(name) for name in columns])
        return pa.Table.from_batches(self.batches(columns), schema=schema)

    def relation(self, columns: Sequence[str]) -> Relation:
        if self.num_rows <= LOOKUP_BY_FILTER_MAX:
            return Relation.of(self.table(columns))
        return self.spread(columns)

    def spread(self, columns: Sequence[str], numbered: bool = False) -> SparkRelation:
        """The rows as a frame, however few; `numbered` adds the number of each row's file as PART."""
        schema = pa.schema([self.schema.field(name) for name in columns])
        if numbered:
            schema = schema.append(pa.field(PART, pa.int32()))
        groups = self._desk.grouped(list(enumerate(self.files)))
        read = partial(read_packed, reading=self.reading(columns), numbered=numbered)
        return SparkRelation(self._desk, schema, self._desk.frame(groups, read, columns_ddl(schema)), self.num_rows)

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
        gone = np.unique(positions)
        if dropped is not None:
            for batch in self.at(gone):
                dropped.append(batch.select(dropped.schema.names).cast(dropped.schema))
        left_out = sum(batch.num_rows for batch in _positions_at(self, gone))
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


def _positions_at(rows: StagedRows, positions: Numbers) -> Iterator[pa.RecordBatch]:
    return rows_at(rows.files, positions, POSITION, rows.reading([POSITION]))
