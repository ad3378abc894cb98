"""The accepted schema of a graph, read from its three files and kept while no commit changed it.

Holds at every return:
  1. The schema is the one in force on main, for every branch: a branch may lag behind it with its tables.
  2. A schema apply that is interrupted, or going on, at any place leaves a schema that can be read.
"""

from __future__ import annotations

import threading

from omnigraph.base.errors import Conflict
from omnigraph.catalog.contract import AcceptedSchema, check_tables
from omnigraph.commit.schema_files import files_in_force
from omnigraph.manifest.store import BranchState, ManifestStore

_LOOKS_MAX = 16


class SchemaKeeper:
    """Checks the contract at open and refresh, and again when a commit set a new schema."""

    def __init__(self, manifest: ManifestStore) -> None:
        self._manifest = manifest
        self._lock = threading.Lock()
        self._accepted: AcceptedSchema | None = None
        self._seen_version = 0
        self._incarnation = ""

    def accepted(self, state: BranchState) -> AcceptedSchema:
        """The schema in force, at no cost while `state` of main is one that was seen; a branch asks for main's head."""
        main = state if state.branch is None else self._manifest.state(None)
        known = self._accepted
        if known is not None and main.version <= self._seen_version and main.incarnation == self._incarnation:
            return known
        with self._lock:
            known = self._accepted
            same = known is not None and main.incarnation == self._incarnation
            if known is None or not same or any(c.sets_schema for c in main.commits_since(self._seen_version)):
                known, main = self._read(main)
            self._seen_version = max(self._seen_version, main.version) if same else main.version
            self._incarnation = main.incarnation
            self._accepted = known
            return known

    def forget(self) -> None:
        with self._lock:
            self._accepted = None

    def _read(self, main: BranchState) -> tuple[AcceptedSchema, BranchState]:
        """The schema and a state of main it fits. What does not fit is looked at again if it moved meanwhile."""
        seen: object = None
        for _ in range(_LOOKS_MAX):
            files = files_in_force(self._manifest.objects, lambda commit, at=main: _holds(at, commit))  # type: ignore[misc]
            try:
                accepted = files.accepted()
                check_tables(accepted.catalog, main.entries)
                return accepted, main
            except Conflict as error:
                if seen == (files, main.version):
                    raise
                refused, seen = error, (files, main.version)
            main = self._manifest.state(None)
        raise refused


def _holds(state: BranchState, graph_commit_id: str) -> bool:
    return any(c.graph_commit_id == graph_commit_id for c in state.commits())
