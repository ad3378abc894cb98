"""A stored table as the rules of writes take their input: all its rows, numbered in the order they are read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import InternalError
from omnigraph.engine.write.spool import Numbers, Rows, RowSpool, rows_at, rows_meeting
from omnigraph.records.decode import POSITION
from omnigraph.sets.scratch import Relation
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX
from omnigraph.storage.search import rows_of_fragments
from omnigraph.storage.tables import Table

_NUMBER = pa.field(POSITION, pa.int64())


class StoredRows:
    """The rows of one table version; read anew whenever they are asked for."""

    def __init__(self, table: Table, columns: pa.Schema) -> None:
        self.schema = columns.append(_NUMBER)
        self.num_rows = table.count_rows()
        self._table = table

    def batches(self, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        names = self.schema.names if columns is None else list(columns)
        stored = [name for name in names if name != POSITION]
        first = 0
        for batch in rows_of_fragments(self._table, stored):
            numbers = pa.array(np.arange(first, first + batch.num_rows, dtype=np.int64))
            first += batch.num_rows
            arrays = [numbers if name == POSITION else batch.column(name) for name in names]
            yield pa.RecordBatch.from_arrays(arrays, names=names)

    def relation(self, columns: Sequence[str]) -> Relation:
        if self.num_rows <= LOOKUP_BY_FILTER_MAX:
            return Relation.of(self.table(columns))
        schema = pa.schema([self.schema.field(name) for name in columns])
        return Relation(schema, lambda: self._as(schema), self.num_rows)

    def _as(self, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
        return (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in self.batches(schema.names))

    def table(self, columns: Sequence[str] | None = None) -> pa.Table:
        names = self.schema.names if columns is None else list(columns)
        schema = pa.schema([self.schema.field(name) for name in names])
        return pa.Table.from_batches(self._as(schema), schema=schema)

    def at(self, positions: Numbers) -> Iterator[pa.RecordBatch]:
        return rows_at(self.batches(), positions, POSITION)

    def meeting(self, wanted: Mapping[str, pa.Array]) -> Iterator[pa.RecordBatch]:
        return rows_meeting(self.batches(), wanted)

    def without(self, positions: Numbers, dropped: RowSpool | None = None) -> Rows:
        raise InternalError("rows that are stored stay")

    def close(self) -> None:
        """Nothing is kept."""
