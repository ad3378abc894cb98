"""The accepted schema of a graph, read from its three files and kept while no commit changed it."""

from __future__ import annotations

import threading

from omnigraph.catalog.contract import AcceptedSchema, check, check_tables
from omnigraph.manifest import layout
from omnigraph.manifest.store import BranchState
from omnigraph.storage.objects import ObjectStore

_SETS_SCHEMA = ("init", "schema_apply")


class SchemaKeeper:
    """Checks the contract at open and refresh, and again when a commit set a new schema."""

    def __init__(self, objects: ObjectStore) -> None:
        self._objects = objects
        self._lock = threading.Lock()
        self._accepted: AcceptedSchema | None = None
        self._seen_version = 0

    def accepted(self, state: BranchState) -> AcceptedSchema:
        """The schema in force on a branch state."""
        with self._lock:
            known = self._accepted
            if known is not None and state.version <= self._seen_version:
                return known
            if known is None or any(c.kind in _SETS_SCHEMA for c in state.commits_since(self._seen_version)):
                known = self._accepted = self._read(state)
            self._seen_version = max(self._seen_version, state.version)
            return known

    def forget(self) -> None:
        with self._lock:
            self._accepted = None

    def _read(self, state: BranchState) -> AcceptedSchema:
        files = [self._objects.get(k) for k in (layout.SCHEMA_SOURCE, layout.SCHEMA_IR, layout.SCHEMA_STATE)]
        accepted = check(*(f.data if f else None for f in files))
        check_tables(accepted.catalog, state.entries)
        return accepted
