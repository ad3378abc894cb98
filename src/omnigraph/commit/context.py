"""What every writer of one graph shares: its manifest, its locks, its settings."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from omnigraph.commit.lease import LeaseLocks
from omnigraph.commit.locks import BranchLocks, FileLocks
from omnigraph.manifest.projections import Projections
from omnigraph.manifest.publisher import ManifestBatchPublisher
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import ManifestStore
from omnigraph.manifest.upkeep import compact_manifest
from omnigraph.settings import Settings
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.places import Root
from omnigraph.storage.tables import Table, TableRef

_log = logging.getLogger("omnigraph.commit")
Watcher = Callable[[str, Mapping[str, tuple[SubTableEntry, Table]]], None]
"""Takes the graph's incarnation and, by table key, the tables that moved."""


def _is_shown(entry: SubTableEntry, table: Table) -> bool:
    ref = table.ref
    return (entry.location, entry.table_branch, entry.table_version) == (ref.location, ref.branch, table.version)


def locks_of(root: Root, settings: Settings) -> BranchLocks:
    """Locks of the system on a local disk, leases on an object store."""
    if root.is_local:
        return FileLocks(root.uri, settings.write_lock_timeout_ms)
    return LeaseLocks(
        root.objects,
        settings.write_lock_timeout_ms,
        settings.write_lease_lifetime_ms,
        settings.write_lease_heartbeat_ms,
    )


@dataclass(frozen=True)
class CommitContext:
    root: Root
    manifest: ManifestStore
    publisher: ManifestBatchPublisher
    locks: BranchLocks
    projections: Projections
    settings: Settings
    watchers: list[Watcher] = field(default_factory=list)
    """Told of each commit made through this context, after it is true."""

    @staticmethod
    def of(root: Root, settings: Settings, manifest: ManifestStore | None = None) -> CommitContext:
        manifest = manifest or ManifestStore(root)
        return CommitContext(
            root,
            manifest,
            ManifestBatchPublisher(manifest),
            locks_of(root, settings),
            Projections(root, settings.manifest_compact_fragments),
            settings,
        )

    @property
    def objects(self) -> ObjectStore:
        return self.root.objects

    def ref(self, location: str, branch: str | None) -> TableRef:
        return TableRef(self.root, location, branch)

    def tell(self, branch: str | None, moved: Mapping[str, Table]) -> None:
        """A commit is true; whoever keeps something of its tables may follow."""
        entries = self.manifest.remembered(branch).entries
        found = {
            key: (entries[key], table)
            for key, table in moved.items()
            if key in entries and _is_shown(entries[key], table)
        }
        for watch in self.watchers:
            try:
                watch(self.manifest.remembered(None).incarnation, found)
            except Exception as error:
                _log.warning("a watcher failed after a commit: %s", error)

    def keep_house(self, branch: str | None) -> None:
        """After a commit, while its lock is still held: compact the manifest, let the commit tables catch up.

        A compaction loses against every publish, so it is worth trying only while nobody else may publish.
        """
        try:
            state = self.manifest.remembered(branch)
            if self.projections.lag(state) >= self.settings.projections_max_lag:
                self.projections.catch_up(state)
            compact_manifest(self.manifest, state, self.settings.manifest_compact_fragments)
        except Exception as error:
            _log.warning("housekeeping after a commit failed: %s", error)
