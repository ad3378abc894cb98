"""Reads the manifest of each branch, and remembers it while its head has not moved.

Holds at every return:
  1. A state is one manifest version: its rows, no earlier and no later ones.
  2. A warm read costs one existence test, two on a local disk; a moved head costs the rows that are new.
  3. Nothing here writes.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import orjson
import pyarrow as pa

from omnigraph.base.errors import BadRequest, Conflict, NotFound, OmniError
from omnigraph.manifest import layout
from omnigraph.manifest.legacy import legacy_commit_rows
from omnigraph.manifest.lineage import SCHEMA_HASH_KEY, CommitLog, GraphCommit, Origin
from omnigraph.manifest.rows import (
    CREATED_AT_VERSION,
    GRAPH_COMMIT,
    INTERNAL_MANIFEST_SCHEMA_VERSION,
    READ_COLUMNS,
    STAMP_KEY,
    Row,
    from_arrow,
)
from omnigraph.manifest.snapshot import Snapshot, SubTableEntry, TableState, reconstruct
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.places import Root
from omnigraph.storage.refs import BranchRef, list_branches, read_branch
from omnigraph.storage.tables import Table, TableRef, open_newest, open_table, table_exists

_PAST_MAX = 256


@dataclass(frozen=True)
class BranchState:
    """A branch at one manifest version."""

    branch: str | None
    incarnation: str
    stamp: int
    table: Table
    tables: TableState
    log: CommitLog
    commit_count: int
    entries: Mapping[str, SubTableEntry]
    head: GraphCommit | None

    @property
    def version(self) -> int:
        return self.table.version

    @cached_property
    def own_file(self) -> str:
        """The object that makes this version exist."""
        return self.table.ref.version_file(self.version)

    @cached_property
    def next_file(self) -> str:
        """The object that the next version would be made by."""
        return self.table.ref.version_file(self.version + 1)

    @property
    def head_id(self) -> str | None:
        return self.head.graph_commit_id if self.head else None

    def commits(self) -> list[GraphCommit]:
        return self.log.upto(self.commit_count)

    @cached_property
    def _snapshot(self) -> Snapshot:
        return Snapshot(self.branch, self.version, self.head_id, self.entries)

    def snapshot(self) -> Snapshot:
        return self._snapshot

    @cached_property
    def schema_commit(self) -> GraphCommit | None:
        """The commit that set the schema last."""
        return next(self.schema_commits(), None)

    def schema_commits(self) -> Iterator[GraphCommit]:
        """Every commit that set a schema, newest first."""
        named = self.log.naming(self.commit_count, SCHEMA_HASH_KEY, '"schema_apply"', '"init"')
        return (commit for commit in named if commit.sets_schema)

    def holds(self, graph_commit_id: str) -> bool:
        named = self.log.naming(self.commit_count, graph_commit_id)
        return any(commit.graph_commit_id == graph_commit_id for commit in named)

    def commits_since(self, version: int) -> list[GraphCommit]:
        return list(self.log.since(self.commit_count, version))


def branch_label(branch: str | None) -> str:
    return branch or "main"


def branch_name(label: str | None) -> str | None:
    """None for main, in any spelling a caller may use; space around a name is no part of it."""
    name = None if label is None else label.strip()
    return None if name == "main" else name


class ManifestStore:
    """The manifest of one graph, all branches; shared by every room that reads or publishes."""

    def __init__(self, root: Root) -> None:
        self.root = root
        self._lock = threading.Lock()
        self._states: dict[str | None, BranchState] = {}
        # What a version of a branch's one life showed never changes.
        self._past: dict[tuple[str | None, str, int, str | None], Snapshot] = {}

    @property
    def objects(self) -> ObjectStore:
        return self.root.objects

    def ref(self, branch: str | None = None) -> TableRef:
        return TableRef(self.root, layout.MANIFEST, branch)

    def exists(self) -> bool:
        return table_exists(self.ref())

    def branches(self) -> dict[str, BranchRef]:
        """Every branch but main, internal and legacy ones included."""
        return list_branches(self.ref())

    def branch(self, name: str) -> BranchRef | None:
        return read_branch(self.ref(), name)

    def state(self, branch: str | None = None) -> BranchState:
        """The branch at its newest version."""
        known = self._states.get(branch)
        if known is not None and self._is_current(known):
            return known
        with self._lock:
            fresh = self._load(branch, self._states.get(branch))
            self._states[branch] = fresh
            return fresh

    def adopt(self, before: BranchState, table: Table, rows: list[Row]) -> BranchState:
        """The state after our own publish of `rows`, without reading it back."""
        with self._lock:
            landed = [replace(r, created_at_version=table.version) for r in rows]
            after = _advanced(before, table, landed)
            self._states[before.branch] = after
            return after

    def remembered(self, branch: str | None = None) -> BranchState:
        """The branch as it was last seen, at no cost; for work that does not mind a newer head."""
        return self._states.get(branch) or self.state(branch)

    def forget(self, branch: str | None = None) -> None:
        with self._lock:
            self._states.pop(branch, None)

    def snapshot_at(self, branch: str | None, version: int, owner: str | Literal["same"] | None = "same") -> Snapshot:
        """The branch as it was at graph version `version`. `owner`: the branch the version was published on."""
        owner = branch if owner == "same" else owner
        state = self.state(branch)
        named = (branch, state.incarnation, version, owner)
        known = self._past.get(named)
        if known is None:
            known = self._snapshot_at(state, version, owner)
            with self._lock:
                self._past[named] = known
                while len(self._past) > _PAST_MAX:
                    self._past.pop(next(iter(self._past)))
        return known

    def _snapshot_at(self, state: BranchState, version: int, owner: str | None) -> Snapshot:
        commits = [c for c in state.commits() if c.manifest_version <= version]
        if version > state.version or (state.commit_count and not commits) or version < 1:
            raise NotFound(f"graph version {version} not found", "See omnigraph commit list for the versions.")
        if not state.table.has_stable_row_ids:
            return Snapshot(state.branch, version, None, self._entries_at_lance_version(state.branch, version))
        entries = reconstruct(self.rows(state), owner, version)
        return Snapshot(owner, version, commits[-1].graph_commit_id if commits else None, entries)

    def rows(self, state: BranchState) -> list[Row]:
        return _read_rows(state.table)

    def _entries_at_lance_version(self, branch: str | None, version: int) -> Mapping[str, SubTableEntry]:
        tables = TableState()
        tables.apply(_read_rows(open_table(self.ref(branch), version, "__manifest")))
        return tables.resolve(branch)

    def _is_current(self, known: BranchState) -> bool:
        exists = self.objects.exists
        if known.table.below_torn or exists(known.next_file):
            return False
        # Where asking is cheap, also notice that another graph lies here now.
        if self.root.is_local and not exists(known.own_file):
            return False
        return known.branch is None or self._is_live(known.branch, known.incarnation)

    def _load(self, branch: str | None, known: BranchState | None) -> BranchState:
        own = self.branch(branch) if branch is not None else None
        if branch is not None and own is None:
            self._states.pop(branch, None)
            raise NotFound(f"branch '{branch}' not found", "See omnigraph branch list.")
        try:
            return self._load_newest(branch, own, known)
        except OmniError:
            if own is None or self._is_live(branch, own.incarnation):
                raise
            # It was deleted while its files were read, and perhaps made again.
            return self._load(branch, None)

    def _is_live(self, branch: str | None, incarnation: str) -> bool:
        found = self.branch(branch) if branch is not None else None
        return found is not None and found.incarnation == incarnation

    def _load_newest(self, branch: str | None, own: BranchRef | None, known: BranchState | None) -> BranchState:
        table = open_newest(self.ref(branch), "__manifest")
        same = known is not None and (own is None or known.incarnation == own.incarnation)
        # Only today's shape tells by itself which rows are new; an older one keeps its commits elsewhere.
        current = stamp_of(table) == INTERNAL_MANIFEST_SCHEMA_VERSION and table.has_stable_row_ids
        if known is not None and same and current and known.stamp == stamp_of(table) and known.version < table.version:
            return _advanced(known, table, _read_rows(table, f"{CREATED_AT_VERSION} > {known.version}"))
        return self._load_all(branch, table, own)

    def _load_all(self, branch: str | None, table: Table, own: BranchRef | None) -> BranchState:
        rows = _read_rows(table)
        tables = TableState()
        tables.apply(rows)
        if stamp_of(table) < INTERNAL_MANIFEST_SCHEMA_VERSION:
            commit_rows = legacy_commit_rows(self.root, branch)
        else:
            commit_rows = sorted((r for r in rows if r.object_type == GRAPH_COMMIT), key=_commit_order)
        log = CommitLog(commit_rows, origin_of(branch, self.branches() if own is not None else {}))
        first = log.upto(1)[0].graph_commit_id if commit_rows else ""
        incarnation = first if own is None else own.incarnation
        entries = tables.resolve(branch)
        return BranchState(
            branch, incarnation, stamp_of(table), table, tables, log, len(log), entries, log.head(len(log))
        )


def _commit_order(row: Row) -> tuple[int, int]:
    """Migrated rows share one manifest version; the version they speak of orders them."""
    if '"manifest_version"' in row.metadata:
        return (0, int(orjson.loads(row.metadata)["manifest_version"]))
    return (1, row.created_at_version)


def _advanced(known: BranchState, table: Table, rows: list[Row]) -> BranchState:
    tables = known.tables
    if any(r.object_type != GRAPH_COMMIT for r in rows):
        tables = known.tables.copy()
        tables.apply(rows)
    known.log.extended_to(known.commit_count, [r for r in rows if r.object_type == GRAPH_COMMIT])
    added = sum(1 for r in rows if r.object_type == GRAPH_COMMIT)
    entries = known.entries if tables is known.tables else tables.resolve(known.branch)
    return replace(
        known,
        table=table,
        tables=tables,
        commit_count=known.commit_count + added,
        entries=entries,
        head=known.log.head(known.commit_count + added),
    )


def _read_rows(table: Table, where: str | None = None) -> list[Row]:
    if table.has_stable_row_ids:
        return from_arrow(table.read(READ_COLUMNS, where))
    plain = table.read([c for c in READ_COLUMNS if c != CREATED_AT_VERSION])
    zeros = pa.array([0] * plain.num_rows, pa.int64())
    return from_arrow(plain.append_column(CREATED_AT_VERSION, zeros))


class NewerGraph(Conflict):
    """A newer omnigraph wrote it; what it means is not known here."""


def stamp_of(table: Table) -> int:
    """The internal schema version a manifest carries; no stamp is the oldest shape."""
    value = (table.schema.metadata or {}).get(STAMP_KEY.encode())
    stamp = int(value) if value is not None else 1
    if stamp > INTERNAL_MANIFEST_SCHEMA_VERSION:
        raise NewerGraph(
            f"internal schema version {stamp} is newer than supported {INTERNAL_MANIFEST_SCHEMA_VERSION}; "
            "upgrade omnigraph first",
            "Install a newer omnigraph and open the graph again.",
        )
    return stamp


def origin_of(branch: str | None, refs: Mapping[str, BranchRef]) -> Origin:
    forks: list[tuple[int, str | None]] = []
    current = branch
    while current is not None:
        found = refs.get(current)
        if found is None:
            break
        parent = branch_name(found.parent_branch)
        forks.append((found.parent_version, parent))
        current = parent
    return Origin(branch, tuple(reversed(forks)))


def refuse_internal(branch: str | None) -> None:
    if branch is not None and branch.startswith(layout.SCHEMA_LOCK_BRANCH):
        raise BadRequest(f"'{branch}' does not allow internal system ref")
