"""What every writer of one graph shares: its manifest, its locks, its settings."""

from __future__ import annotations

import logging
from dataclasses import dataclass

from omnigraph.commit.lease import LeaseLocks
from omnigraph.commit.locks import BranchLocks, FileLocks
from omnigraph.manifest.projections import Projections
from omnigraph.manifest.publisher import ManifestBatchPublisher
from omnigraph.manifest.store import ManifestStore
from omnigraph.manifest.upkeep import compact_manifest
from omnigraph.settings import Settings
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.places import Root
from omnigraph.storage.tables import TableRef

_log = logging.getLogger("omnigraph.commit")


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

    @staticmethod
    def of(root: Root, settings: Settings) -> CommitContext:
        manifest = ManifestStore(root)
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
