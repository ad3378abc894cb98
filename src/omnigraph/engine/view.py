"""One snapshot and one catalog, fixed for one call; snapshots of any time and branch by the schema in force.

Holds for every View that `Current` makes:
  1. It has an entry for each type of the catalog and no other. A type keeps its location when it is renamed, so that
     is what entries are found by; a type that the snapshot does not know yet is at version 0 and has no rows.
  2. A table shows the columns the catalog declares, whatever its version stores.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import pyarrow as pa

from omnigraph.base.errors import Conflict, ExpectedVersionMismatch, InternalError, NotFound, Reclaimed
from omnigraph.catalog.catalog import Catalog
from omnigraph.manifest.snapshot import Entries, Snapshot, SubTableEntry
from omnigraph.storage.places import Root
from omnigraph.storage.tables import Table, TableRef, has_version, head_version, open_declared, open_table


@dataclass(frozen=True)
class View:
    """Tables as one snapshot pins them."""

    root: Root
    snapshot: Snapshot
    catalog: Catalog
    incarnation: str = ""
    forks: Mapping[str, Table] = field(default_factory=dict)
    """Tables to write, opened: forks of those that the branch only inherited, and its own."""
    caught_up: tuple[str, str] | None = None
    """The head that was read, and the one since the branch caught up with the schema; their content is the same."""

    @property
    def branch(self) -> str | None:
        return self.snapshot.branch

    @property
    def entries(self) -> Entries:
        return self.snapshot.tables

    def entry(self, table_key: str) -> SubTableEntry:
        found = self.entries.get(table_key)
        if found is None:
            raise NotFound(f"there is no table '{table_key}'", "See omnigraph schema show.")
        return found

    def table(self, table_key: str) -> Table:
        return open_entry(self.root, self.catalog, table_key, self.entry(table_key))

    def columns_id(self, table_key: str) -> str:
        """Which names the view knows the columns of a table by."""
        found = self.catalog.find_table(table_key)
        return "" if found is None else found.columns_id

    def refuse_reclaimed(self) -> None:
        """Say so if a version that this view shows is gone: its files go with it, and a table that is open fails."""
        for table_key, entry in self.entries.items():
            ref = TableRef(self.root, entry.location, entry.table_branch)
            if entry.table_version and not has_version(ref, entry.table_version):
                raise Reclaimed(table_key, entry.table_version)

    def table_to_write(self, table_key: str) -> Table:
        table = self.forks.get(table_key) or self.table(table_key)
        if self.branch is not None and table.ref.branch != self.branch:
            raise InternalError(f"{table_key} has no fork on branch '{self.branch}'")
        if table.shape is not None:
            # A schema apply came between the snapshot and the catalog: what is prepared here would be refused.
            actual = head_version(table.ref, table.version)
            raise ExpectedVersionMismatch(table_key=table_key, expected=table.version, actual=actual)
        if not table.has_stable_row_ids:
            raise Conflict(
                f"{table_key} has no stable row ids; export the graph and load it into a new one",
                "Reads and export still work.",
            )
        return table

    def head_meant(self, commit_id: str | None) -> str | None:
        """A head that a caller named before the branch caught up, as it is now."""
        return self.caught_up[1] if self.caught_up is not None and commit_id == self.caught_up[0] else commit_id


def open_entry(root: Root, catalog: Catalog, table_key: str, entry: SubTableEntry) -> Table:
    """A table at the version of an entry, with the columns the catalog declares."""
    type_ = catalog.find_table(table_key)
    ref = TableRef(root, entry.location, entry.table_branch)
    if type_ is None:
        return open_table(ref, entry.table_version, table_key)
    return open_declared(ref, entry.table_version, table_key, type_.arrow_schema)


@dataclass(frozen=True)
class Current:
    """The schema in force and the tables of main, which say where each type lies."""

    root: Root
    catalog: Catalog
    entries: Entries

    def view(self, snapshot: Snapshot, incarnation: str = "") -> View:
        tables = entries_now(snapshot.tables, self.entries)
        shown = snapshot if tables is snapshot.tables else replace(snapshot, tables=tables)
        return View(self.root, shown, self.catalog, incarnation)

    def named(self, entries: Entries) -> Entries:
        return entries_now(entries, self.entries)

    def key_at(self, location: str) -> str | None:
        """The name of the type that lies there; None if the schema has it no more."""
        return next((key for key, entry in self.entries.items() if entry.location == location), None)

    def declared_at(self, location: str) -> pa.Schema | None:
        """The columns of the type that lies there."""
        type_ = self.catalog.find_table(self.key_at(location) or "")
        return None if type_ is None else type_.arrow_schema


def entries_now(entries: Entries, current: Entries) -> Entries:
    """The entries by the names that the current ones have; the very same ones where that changes nothing."""
    if entries is current or (
        len(entries) == len(current)
        and all((now := current.get(key)) is not None and now.location == e.location for key, e in entries.items())
    ):
        return entries
    places = {entry.location: entry for entry in entries.values()}
    return {key: places.get(now.location) or SubTableEntry(now.location, 0, None, 0) for key, now in current.items()}
