"""What the statements of one mutation have done so far: rows written and ids deleted, over one fixed view.

Holds after every statement:
  1. A pending row hides the stored row of the same id; each id is pending at most once.
  2. Nothing is staged and nothing has moved; `changes()` is what the query does as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import EdgeType, NodeType, TableType
from omnigraph.catalog.types import PropertyType
from omnigraph.engine.view import View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.matching import Where, edge_ends, incident_edges
from omnigraph.engine.write.spool import RowSpool
from omnigraph.plan.operands import Values
from omnigraph.plan.typed import Assigned, DeleteRows, InsertRow, UpdateRows
from omnigraph.records.convert import convert, why_not
from omnigraph.records.decode import POSITION
from omnigraph.records.explain import missing
from omnigraph.records.ids import fresh_ids, key_texts
from omnigraph.records.violations import Findings, Stage, Violation
from omnigraph.sets.scratch import Scratch

_POSITION_FIELD = pa.field(POSITION, pa.int64(), nullable=False)
_NO_IDS = pa.array([], pa.string())


@dataclass
class Counts:
    nodes: int = 0
    edges: int = 0

    def add(self, table: TableType, count: int) -> None:
        if isinstance(table, NodeType):
            self.nodes += count
        else:
            self.edges += count


@dataclass
class _Pending:
    """The rows of one table that the query has written, and their ids."""

    rows: RowSpool
    ids: pa.Array


class MutationStaging:
    """Give it the statements in order, then ask for `changes`."""

    def __init__(self, view: View, values: Values, scratch: Scratch, findings: Findings) -> None:
        self._view = view
        self._values = values
        self._scratch = scratch
        self._findings = findings
        self._pending: dict[str, _Pending] = {}
        self._deleted: dict[str, pa.Array] = {}
        self.counts = Counts()
        self.read: set[str] = set()

    def changes(self) -> ChangeSet:
        """The rows and deletions of the whole query; tables it did not touch are left out."""
        tables = {key: TableChange(key, rows=p.rows) for key, p in self._pending.items() if p.rows.num_rows}
        for key, ids in self._deleted.items():
            if len(ids):
                tables[key] = TableChange(key, delete_ids=ids)
        return ChangeSet(tables)

    def insert(self, statements: Sequence[tuple[int, InsertRow]]) -> None:
        """A run of inserts with their places in the query; inserts read nothing, so they are taken together."""
        by_table: dict[str, list[tuple[int, InsertRow]]] = {}
        for place, statement in statements:
            by_table.setdefault(statement.table.table_key, []).append((place, statement))
        for rows in by_table.values():
            table = rows[0][1].table
            batch = self._inserted(table, rows)
            if batch is not None:
                self.counts.add(table, batch.num_rows)
                spool = RowSpool(batch.schema, self._scratch)
                self._write(table.table_key, spool.extend([_last_of_each_id(batch)]))

    def update(self, place: int, statement: UpdateRows) -> None:
        table, where = statement.table, Where(statement.where, self._values)
        values = self._assigned(table, statement.values, place)
        if values is None:
            return
        key = table.table_key
        names = self._view.catalog.arrow_schema(key).names
        self.read.add(key)
        changed = RowSpool(self._schema(key), self._scratch)
        before = self._pending.get(key)
        for batch in before.rows.batches() if before is not None else ():
            changed.append(_with(batch.filter(where.mask(batch)), values))
        hidden = before.ids if before is not None else _NO_IDS
        for found in where.selected(self._view.table(key), names) if self._view.entry(key).row_count else ():
            changed.append(_with(_placed(_without(found, hidden), place), values))
        self.counts.add(table, changed.num_rows)
        self._write(key, changed)

    def delete(self, statement: DeleteRows) -> None:
        table, where = statement.table, Where(statement.where, self._values)
        key = table.table_key
        self.read.add(key)
        if not self._view.entry(key).row_count:
            return
        gone = self._remove(table, [batch.column("id") for batch in where.selected(self._view.table(key), ["id"])])
        if isinstance(table, NodeType) and len(gone):
            for edge in self._view.catalog.edges:
                ends = edge_ends(edge, table.name)
                if ends:
                    self._cascade(edge, ends, gone)

    def _cascade(self, edge: EdgeType, ends: Sequence[str], nodes: pa.Array) -> None:
        self.read.add(edge.table_key)
        if self._view.entry(edge.table_key).row_count:
            self._remove(edge, list(incident_edges(self._view.table(edge.table_key), ends, nodes)))

    def _remove(self, table: TableType, found: list[pa.Array]) -> pa.Array:
        """Count and note those not deleted before; they are returned."""
        known = self._deleted.get(table.table_key, _NO_IDS)
        ids = pc.unique(pa.chunked_array(found, pa.string()))
        fresh = ids.filter(pc.invert(pc.is_in(ids, value_set=known))) if len(known) else ids
        self._deleted[table.table_key] = pa.concat_arrays([known, fresh])
        self.counts.add(table, len(fresh))
        return fresh

    def _schema(self, table_key: str) -> pa.Schema:
        return self._view.catalog.arrow_schema(table_key).append(_POSITION_FIELD)

    def _write(self, table_key: str, rows: RowSpool) -> None:
        """Make these rows pending in place of pending ones of the same id."""
        if not rows.num_rows:
            rows.close()
            return
        ids = pa.concat_arrays([batch.column("id") for batch in rows.batches(["id"])])
        before = self._pending.get(table_key)
        if before is not None:
            merged = RowSpool(self._schema(table_key), self._scratch)
            merged.extend(_without(batch, ids) for batch in before.rows.batches()).extend(rows.batches())
            kept = before.ids.filter(pc.invert(pc.is_in(before.ids, value_set=ids)))
            rows, ids = merged, pa.concat_arrays([kept, ids])
            before.rows.close()
        self._pending[table_key] = _Pending(rows, ids)

    def _inserted(self, table: TableType, rows: Sequence[tuple[int, InsertRow]]) -> pa.RecordBatch | None:
        """The rows of inserts into one table; None when a value does not fit."""
        given = [{a.property.name: self._values.of(a.value) for a in row.values} for _, row in rows]
        places = [place for place, _ in rows]
        columns: dict[str, pa.Array] = {POSITION: pa.array(places, pa.int64())}
        sound = True
        for declared in table.properties:
            cells = [values.get(declared.name) for values in given]
            columns[declared.name], fits = self._column(table, declared.name, declared.type, cells, places)
            sound = sound and fits
        if isinstance(table, EdgeType):
            ends = {"src": [r.source for _, r in rows], "dst": [r.target for _, r in rows]}
            for name, operands in ends.items():
                texts = [None if o is None else self._values.of(o) for o in operands]
                columns[name], fits = self._endpoints(table, name, texts, places)
                sound = sound and fits
        if not sound:
            return None
        if isinstance(table, NodeType) and table.key_properties:
            columns["id"] = key_texts(table, columns)
        else:
            columns["id"] = fresh_ids(len(rows))
        schema = self._schema(table.table_key)
        return pa.RecordBatch.from_arrays([columns[name] for name in schema.names], schema=schema)

    def _endpoints(
        self, table: EdgeType, name: str, texts: Sequence[object], places: Sequence[int]
    ) -> tuple[pa.Array, bool]:
        side = "from" if name == "src" else "to"
        bad = [i for i, text in enumerate(texts) if not isinstance(text, str)]
        for i in bad:
            message = f"'{side}' of {table.name} expects the id of a node"
            self._refuse(places[i], table, side, f"missing_{side}", message)
        return pa.array([t if isinstance(t, str) else None for t in texts], pa.string()), not bad

    def _assigned(self, table: TableType, values: Sequence[Assigned], place: int) -> dict[str, pa.Array] | None:
        """What an update sets, one value per column; None when a value does not fit."""
        columns, sound = {}, True
        for assigned in values:
            declared = assigned.property
            cell = self._values.of(assigned.value)
            columns[declared.name], fits = self._column(table, declared.name, declared.type, [cell], [place])
            sound = sound and fits
        return columns if sound else None

    def _column(
        self, table: TableType, name: str, type_: PropertyType, cells: Sequence[object], places: Sequence[int]
    ) -> tuple[pa.Array, bool]:
        declared = table.find_property(name)
        assert declared is not None
        converted = convert(type_, cells)
        for i in converted.bad:
            self._refuse(places[i], table, name, *why_not(declared, cells[i], table.name))
        absent = [] if type_.nullable else [i for i, cell in enumerate(cells) if cell is None]
        for i in absent:
            self._refuse(places[i], table, name, *missing(declared))
        return converted.array, not converted.bad and not absent

    def _refuse(self, place: int, table: TableType, name: str, reason: str, message: str) -> None:
        self._findings.add(Violation(Stage.CONVERT, place, table.name, name, reason, message))


def _last_of_each_id(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A later insert of the same id replaces the earlier one."""
    last: dict[str, int] = {key: row for row, key in enumerate(batch.column("id").to_pylist())}
    return batch if len(last) == batch.num_rows else batch.take(pa.array(sorted(last.values()), pa.int64()))


def _placed(batch: pa.RecordBatch, place: int) -> pa.RecordBatch:
    return batch.append_column(_POSITION_FIELD, pa.array([place] * batch.num_rows, pa.int64()))


def _without(batch: pa.RecordBatch, ids: pa.Array) -> pa.RecordBatch:
    return batch.filter(pc.invert(pc.is_in(batch.column("id"), value_set=ids))) if len(ids) else batch


def _with(batch: pa.RecordBatch, values: dict[str, pa.Array]) -> pa.RecordBatch:
    """The rows with these columns set to one value each."""
    nothing = pa.array([0] * batch.num_rows, pa.int64())
    columns = [values[n].take(nothing) if n in values else batch.column(n) for n in batch.schema.names]
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)
