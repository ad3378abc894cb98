"""Three states of the tables of a graph become one set of changes to the third.

Holds at every return:
  1. A table is read only if the source's version of it differs from the target's and from the base's, and then only
     as far as rows differ.
  2. `relied_on` are the tables whose version in the target decided anything: written, read, or found to agree.
  3. Nothing is staged and nothing has moved.
"""

from __future__ import annotations

from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

from omnigraph.base.errors import Conflict, InternalError
from omnigraph.catalog.catalog import TableType
from omnigraph.engine.changes.rows import RowChanges, row_changes
from omnigraph.engine.merge.conflicts import MergeConflict, refusal
from omnigraph.engine.merge.history import Entries
from omnigraph.engine.merge.resolve import Resolver
from omnigraph.engine.merge.rows import MergedTable, totals
from omnigraph.engine.merge.threeway import Met, three_way_sql
from omnigraph.engine.merge.validate import MergeCheck, validate_merged
from omnigraph.engine.view import View, open_entry
from omnigraph.engine.write.changeset import ChangeSet
from omnigraph.engine.write.intake import Progress
from omnigraph.engine.write.parted import asked_in_order
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.records.convert import convert
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.tables import Table, open_table

_BATCH_ROWS = 4_096


@dataclass
class Combined:
    """What the target has to do to become the merge. `adoptable`: tables whose source version may simply be shown."""

    tables: list[MergedTable] = field(default_factory=list)
    changes: ChangeSet = field(default_factory=ChangeSet)
    conflicts: list[MergeConflict] = field(default_factory=list)
    relied_on: set[str] = field(default_factory=set)
    adoptable: dict[str, SubTableEntry] = field(default_factory=dict)

    @property
    def totals(self) -> list[dict[str, Any]]:
        return totals(self.tables)

    def listed(self, limit: int) -> list[dict[str, str]]:
        found = [(t.table_key, row_id, op) for t in self.tables for row_id, op in t.listed]
        return [{"table_key": key, "id": row_id, "op": op} for key, row_id, op in found[:limit]]

    @property
    def disputes(self) -> list[dict[str, Any]]:
        return [dispute for table in self.tables for dispute in table.disputes]

    def raise_conflicts(self, hint: str | None = None) -> None:
        if self.conflicts:
            raise refusal(self.conflicts, hint)


@dataclass
class Combination:
    """The merge of `source` into what `view` shows, compared with `base`."""

    view: View
    base: Entries
    source: Entries
    resolver: Resolver
    scratch: Scratch
    progress: Progress
    listed_max: int = 0
    explains: int = 0

    def run(self) -> Combined:
        """Decide every row, then check the result if every row was decided."""
        made, seen = Combined(), 0
        self.progress("read", 0)
        for key in sorted({*self.base, *self.source, *self.view.entries}):
            base, source, target = self.base.get(key), self.source.get(key), self.view.entries.get(key)
            if source is None or not may_bring(base, source, target):
                continue
            self._refuse_other_incarnation(key, base, source, target)
            assert target is not None
            table = self.merged(key, base, source, target)
            made.tables.append(table)
            made.conflicts += table.conflicts
            made.relied_on.add(key)
            if not table.change.is_empty:
                made.changes.tables[key] = table.change
                if may_be_shown(self.view.branch, base, source, target):
                    made.adoptable[key] = source
            seen += table.counts.inserts + table.counts.updates + table.counts.deletes
            self.progress("read", seen)
        self.resolver.refuse_unused()
        if not made.conflicts:
            self.progress("check", 0)
            made.conflicts, read = validate_merged(made.changes, self.check)
            made.relied_on |= read
        made.conflicts.sort(key=lambda conflict: conflict.order)
        return made

    def check(self, changes: ChangeSet, table_key: str) -> MergeCheck:
        return MergeCheck(self.view, changes, self.scratch, table_key)

    def merged(self, key: str, base: SubTableEntry | None, source: SubTableEntry, target: SubTableEntry) -> MergedTable:
        type_ = self.type_of(key)
        table = MergedTable(
            self.view.catalog, type_, self.resolver, self.scratch, self.listed_max, explains=self.explains
        )
        before, after = self.open(key, type_, base), self.open(key, type_, source)
        theirs = row_changes(self.scratch, before, after, type_.arrow_schema)
        after = before if same_version(base, target) else self.open(key, type_, target)
        ours = row_changes(self.scratch, before, after, type_.arrow_schema)
        try:
            self._meet(table, theirs, ours)
        finally:
            theirs.close()
            ours.close()
        return table

    def _meet(self, table: MergedTable, theirs: RowChanges, ours: RowChanges) -> None:
        if not theirs.num_rows:
            return
        sql = three_way_sql(table.type_, self.resolver.granularity)
        spools = {"source": theirs.rows, "target": ours.rows}
        with closing(asked_in_order(self.scratch, sql, spools, _BATCH_ROWS)) as batches:
            for batch in batches:
                table.take(Met(batch, table.type_))

    def type_of(self, key: str) -> TableType:
        found = self.view.catalog.find_table(key)
        if found is None:
            raise InternalError(f"no type for {key}")
        return found

    def open(self, key: str, type_: TableType, entry: SubTableEntry | None) -> Table | None:
        if entry is None:
            return None
        table = self._filled(key, type_, open_entry(self.view.root, self.view.catalog, key, entry))
        stored = {f.name: f.type for f in table.schema}
        for declared in type_.arrow_schema:
            if stored.get(declared.name, declared.type) != declared.type:
                raise Conflict(
                    f"{key}.{declared.name} had another type in a commit that this merge needs (schema_boundary)",
                    "Nothing was written. Merges do not reach over a change of a property's type.",
                )
        return table

    def _filled(self, key: str, type_: TableType, table: Table) -> Table:
        """A state from before a required property was added: its rows have what all rows got by that."""
        shown = table.shape.by_name if table.shape is not None else {}
        lacking = [p for p in type_.properties if not p.type.nullable and shown.get(p.name, p.name) is None]
        if not lacking:
            return table
        for member in lacking:
            if member.default is None:
                raise Conflict(
                    f"{key}.{member.name} is required and was added since a commit that this needs (schema_boundary)",
                    "Nothing was written. Give the property a @default, or write the rows anew.",
                )
        literals = {p.name: convert(p.type, [p.default]).array[0] for p in lacking}
        return open_table(table.ref, table.version, key).showing(type_.arrow_schema, literals)

    def _refuse_other_incarnation(
        self, key: str, base: SubTableEntry | None, source: SubTableEntry, target: SubTableEntry | None
    ) -> None:
        places = {entry.location for entry in (base, source, target) if entry is not None}
        if target is None or len(places) > 1:
            raise Conflict(
                f"{key} is another type on either side: it was dropped or made again since they parted",
                "Nothing was written. Bring both branches to the same schema, or load the rows anew.",
            )


def same_version(one: SubTableEntry | None, other: SubTableEntry | None) -> bool:
    """Whether both show the very same rows by the very same files."""
    return one is not None and other is not None and _place(one) == _place(other)


def may_bring(base: SubTableEntry | None, source: SubTableEntry, target: SubTableEntry | None) -> bool:
    """Whether the source may have rows of this table that the target has not."""
    return not same_version(source, target) and not same_version(source, base)


def _place(entry: SubTableEntry) -> tuple[str, str | None, int]:
    return entry.location, entry.table_branch, entry.table_version


def may_be_shown(branch: str | None, base: SubTableEntry | None, source: SubTableEntry, target: SubTableEntry) -> bool:
    """Whether the target may take the source's version by its number alone.

    It must have no version of its own (it never forked the table), show exactly the base's, and read the table from
    the very line that the source's version continues. Otherwise rows that lie between would be lost.
    """
    return (
        branch is not None
        and target.table_branch != branch
        and same_version(base, target)
        and source.table_branch == target.table_branch
        and source.table_version > target.table_version
    )
