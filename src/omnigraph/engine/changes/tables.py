"""The changes of one table between two snapshots, with images."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.base.errors import OmniError, Reclaimed
from omnigraph.engine.changes.model import Change, Image
from omnigraph.engine.changes.pairs import TablePair
from omnigraph.engine.changes.rows import RowChanges, row_changes
from omnigraph.engine.view import Current
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.records.encode import safe_column
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.places import Root
from omnigraph.storage.shapes import shape_of
from omnigraph.storage.tables import Table, TableRef, has_version, open_table

OWN_COLUMNS = ("id", "src", "dst")


@dataclass(frozen=True)
class OpenPair:
    """A pair of tables, opened; Reclaimed is raised before anything is read."""

    root: Root
    pair: TablePair
    before: Table | None
    after: Table | None
    properties_differ: bool
    """Whether a property came, went or is of another type; a table that came or went whole has none to compare."""

    @property
    def fields(self) -> pa.Schema:
        """The columns of both states, those of the newer one first."""
        found: dict[str, pa.Field] = {}
        for table in (self.after, self.before):
            for field in table.schema if table is not None else ():
                found.setdefault(field.name, field.with_nullable(True).remove_metadata())
        return pa.schema(list(found.values()))

    def row_changes(self, scratch: Scratch) -> RowChanges:
        """Everything is read here: the tables are not needed afterwards."""
        try:
            return row_changes(scratch, self.before, self.after, self.fields)
        except OmniError:
            # Cleanup takes files away from under tables that are open; what fails then was reclaimed.
            for side in (self.pair.before, self.pair.after):
                if side is not None:
                    refuse_reclaimed(self.root, *side)
            raise

    def changes(self, found: RowChanges, since: bytes = b"") -> Iterator[Change]:
        """Changes that were found, by id; perhaps not those before `since`."""
        for piece in found.images(since):
            before, after = images_of(piece.before, piece.had), images_of(piece.after, piece.has)
            for name, was, now in zip(piece.ids, before, after, strict=True):
                yield Change(self.pair.table_key, self.pair.type_id, name, was, now)


def open_pair(root: Root, pair: TablePair, current: Current) -> OpenPair:
    """Both states by the columns of the schema in force; those of a type it no longer has by their own."""
    before, after = (None if side is None else _opened(root, *side) for side in (pair.before, pair.after))
    differ = before is not None and after is not None and _differ(before.schema, after.schema)
    declared = current.declared_at(pair.location)
    if declared is None and before is not None and after is not None:
        declared = joined_columns(before.schema, after.schema)
    if declared is not None:
        before, after = (None if table is None else table.showing(declared) for table in (before, after))
    return OpenPair(root, pair, before, after, differ)


def _opened(root: Root, table_key: str, entry: SubTableEntry) -> Table:
    return open_table(TableRef(root, entry.location, entry.table_branch), entry.table_version, table_key)


def _differ(before: pa.Schema, after: pa.Schema) -> bool:
    shape = shape_of(before, after)
    if shape is None:
        return any(before.field(field.name).type != field.type for field in after)
    pairs = [(name, field) for name, field in zip(shape.stored, after, strict=True) if name is not None]
    return not len(pairs) == len(after) == len(before) or any(before.field(n).type != f.type for n, f in pairs)


def joined_columns(before: pa.Schema, after: pa.Schema) -> pa.Schema:
    """The columns of both states, under the names of the newer one."""
    shape = shape_of(before, after)
    known = set(before.names) if shape is None else set(shape.stored)
    taken = set(after.names)
    return pa.schema([*after, *(field for field in before if field.name not in known | taken)])


def refuse_reclaimed(root: Root, table_key: str, entry: SubTableEntry) -> None:
    """Say so if a table version is gone."""
    if not has_version(TableRef(root, entry.location, entry.table_branch), entry.table_version):
        raise Reclaimed(table_key, entry.table_version)


def images_of(rows: pa.RecordBatch | pa.Table, present: Sequence[bool]) -> list[Image | None]:
    """The rows as JSON has them; None where there is no row."""
    names = [name for name in rows.schema.names if name not in OWN_COLUMNS]
    columns = [safe_column(rows.column(name)) for name in names]
    values: list[tuple[Any, ...]] = list(zip(*columns, strict=True)) if columns else [()] * rows.num_rows
    ends: list[tuple[str, str] | None] = [None] * rows.num_rows
    if "src" in rows.schema.names:
        ends = list(zip(rows.column("src").to_pylist(), rows.column("dst").to_pylist(), strict=True))
    return [
        Image(dict(zip(names, row, strict=True)), end) if there else None
        for row, end, there in zip(values, ends, present, strict=True)
    ]
