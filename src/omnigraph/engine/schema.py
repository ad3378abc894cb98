"""The accepted schema of a graph, read from its three files and kept while no commit changed it.

Holds at every return:
  1. The schema is the one in force on main, for every branch: a branch may lag behind it with its tables.
  2. It is the one that the newest schema commit of that state of main recorded, and never one that was not published.
  3. A schema apply that is interrupted, or going on, at any place leaves a schema that can be read.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass, replace

from omnigraph.base.errors import Conflict
from omnigraph.catalog.contract import AcceptedSchema, check_recorded, check_tables
from omnigraph.commit.schema_files import files_in_force
from omnigraph.manifest.store import BranchState, ManifestStore

_LOOKS_MAX = 16


@dataclass(frozen=True)
class _Kept:
    """A schema, and the newest state of main it is known to hold for."""

    schema: AcceptedSchema
    version: int
    incarnation: str


class SchemaKeeper:
    """Checks the contract at open and refresh, and again when a commit set a new schema."""

    def __init__(self, manifest: ManifestStore) -> None:
        self._manifest = manifest
        self._lock = threading.Lock()
        self._kept: _Kept | None = None
        """Replaced as a whole, so that who does not hold the lock sees what belongs together."""

    def accepted(self, state: BranchState) -> AcceptedSchema:
        """The schema in force, at no cost while `state` of main is one that was seen; a branch asks for main's head."""
        main = state if state.branch is None else self._manifest.state(None)
        kept = self._kept
        if kept is not None and main.version <= kept.version and main.incarnation == kept.incarnation:
            return kept.schema
        with self._lock:
            kept = self._kept if self._kept is not None and self._kept.incarnation == main.incarnation else None
            if kept is not None and not any(c.sets_schema for c in main.commits_since(kept.version)):
                self._kept = replace(kept, version=max(kept.version, main.version))
                return kept.schema
            schema, main = self._read(main)
            version = main.version if kept is None else max(kept.version, main.version)
            self._kept = _Kept(schema, version, main.incarnation)
            return schema

    def forget(self) -> None:
        with self._lock:
            self._kept = None

    def _read(self, main: BranchState) -> tuple[AcceptedSchema, BranchState]:
        """The schema and a state of main it fits. What does not fit is looked at again if it moved meanwhile."""
        seen: object = None
        for _ in range(_LOOKS_MAX):
            files, commit = files_in_force(self._manifest.objects, main), main.schema_commit
            try:
                accepted = files.accepted()
                check_tables(accepted.catalog, main.entries)
                if commit is not None:
                    check_recorded(accepted.ir_hash, commit.schema_hashes[0], commit.graph_commit_id)
                return accepted, main
            except Conflict as error:
                if seen == (files, main.version):
                    raise
                refused, seen = error, (files, main.version)
            main = self._manifest.state(None)
        raise refused
