"""Relations whose rows lie in files and tables that executors read: what the checks of a bulk load compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import pyarrow as pa

from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.worker.pieces import Column, FileRows, Piece, Reading, StoredRows, StoredTable
from omnigraph.sets.scratch import Relation
from omnigraph.storage.row_files import RowFileWriter
from omnigraph.storage.tables import Table


class SpreadRelation(Relation):
    """Rows that nobody has brought together; each piece has the columns of `schema`."""

    def __init__(self, desk: Desk, schema: pa.Schema, pieces: Sequence[Piece], row_count: int) -> None:
        super().__init__(schema, self._batches, row_count)
        self.desk = desk
        self.pieces = tuple(pieces)

    def _batches(self) -> Iterator[pa.RecordBatch]:
        for piece in self.pieces:
            yield from piece.batches(self.schema)

    def renamed(self, names: list[str]) -> SpreadRelation:
        schema = pa.schema([pa.field(name, field.type) for name, field in zip(names, self.schema, strict=True)])
        moved = [
            replace(p, columns=tuple(Column(n, c.source) for n, c in zip(names, p.columns, strict=True)))
            for p in self.pieces
        ]
        return SpreadRelation(self.desk, schema, moved, self.row_count)

    def selected(self, names: list[str]) -> SpreadRelation:
        schema = pa.schema([self.schema.field(name) for name in names])
        places = [self.schema.get_field_index(name) for name in names]
        chosen = [replace(p, columns=tuple(p.columns[k] for k in places)) for p in self.pieces]
        return SpreadRelation(self.desk, schema, chosen, self.row_count)

    def with_nulls(self, name: str, type_: pa.DataType) -> SpreadRelation:
        widened = [replace(p, columns=(*p.columns, Column(name, None))) for p in self.pieces]
        return SpreadRelation(self.desk, self.schema.append(pa.field(name, type_)), widened, self.row_count)

    def followed_by(self, other: Relation) -> SpreadRelation:
        more = spread(self.desk, other)
        rows = self.row_count + other.row_count
        return SpreadRelation(self.desk, self.schema, (*self.pieces, *more.pieces), rows)


def spread(desk: Desk, relation: Relation) -> SpreadRelation:
    """The relation where executors can read it; few rows of this process are written to a file first."""
    if isinstance(relation, SpreadRelation):
        return relation
    out = RowFileWriter(desk.folder, "local", relation.schema)
    for batch in relation.reader():
        out.append(batch)
    file = out.close()
    columns = tuple(Column(name, name) for name in relation.schema.names)
    reading = Reading(tuple(relation.schema.names), options=desk.folder.options)
    pieces = [] if file is None else [Piece(FileRows(file, reading), columns)]
    return SpreadRelation(desk, relation.schema, pieces, relation.row_count)


def stored_table(table: Table) -> StoredTable:
    return StoredTable(table.ref.uri, table.version, table.ref.options, table.shape)


def stored_relation(desk: Desk, table: Table, schema: pa.Schema, columns: Sequence[str], rows: int) -> SpreadRelation:
    """A stored table by its fragments; `columns` are the stored names of the fields of `schema`."""
    named = tuple(Column(field.name, source) for field, source in zip(schema, columns, strict=True))
    groups = desk.grouped(sorted(table.fragment_rows()))
    pieces = [Piece(StoredRows(stored_table(table), tuple(group)), named) for group in groups]
    return SpreadRelation(desk, schema, pieces, rows)
