"""One snapshot and one catalog, fixed for one call."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from omnigraph.base.errors import Conflict, InternalError, NotFound, Reclaimed
from omnigraph.catalog.catalog import Catalog
from omnigraph.manifest.snapshot import Snapshot, SubTableEntry
from omnigraph.storage.places import Root
from omnigraph.storage.tables import Table, TableRef, has_version, open_table


@dataclass(frozen=True)
class View:
    """Tables as one snapshot pins them."""

    root: Root
    snapshot: Snapshot
    catalog: Catalog
    incarnation: str = ""
    forks: Mapping[str, Table] = field(default_factory=dict)
    """Tables to write that the branch only inherits, as forks of its own."""

    @property
    def branch(self) -> str | None:
        return self.snapshot.branch

    @property
    def entries(self) -> Mapping[str, SubTableEntry]:
        return self.snapshot.tables

    def entry(self, table_key: str) -> SubTableEntry:
        found = self.entries.get(table_key)
        if found is None:
            raise NotFound(f"there is no table '{table_key}'", "See omnigraph schema show.")
        return found

    def table(self, table_key: str) -> Table:
        entry = self.entry(table_key)
        ref = TableRef(self.root, entry.location, entry.table_branch)
        return open_table(ref, entry.table_version, table_key)

    def refuse_reclaimed(self) -> None:
        """Say so if a version that this view shows is gone: its files go with it, and a table that is open fails."""
        for table_key, entry in self.entries.items():
            if not has_version(TableRef(self.root, entry.location, entry.table_branch), entry.table_version):
                raise Reclaimed(table_key, entry.table_version)

    def table_to_write(self, table_key: str) -> Table:
        table = self.forks.get(table_key) or self.table(table_key)
        if self.branch is not None and table.ref.branch != self.branch:
            raise InternalError(f"{table_key} has no fork on branch '{self.branch}'")
        if not table.has_stable_row_ids:
            raise Conflict(
                f"{table_key} has no stable row ids; export the graph and load it into a new one",
                "Reads and export still work.",
            )
        return table
