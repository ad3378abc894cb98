"""The commit tables: derived from the manifest, allowed to lag, brought up to date in batches.

Rows are added and never removed. Nothing here decides the outcome of a write.
"""

from __future__ import annotations

import logging
import threading

import pyarrow as pa

from omnigraph.manifest import layout
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.store import BranchState
from omnigraph.storage.ledger import append_to_projection, compact_now
from omnigraph.storage.tables import TableRef, open_table, table_exists

COMMITS_SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("manifest_branch", pa.string()),
        pa.field("manifest_version", pa.uint64()),
        pa.field("parent_commit_id", pa.string()),
        pa.field("merged_parent_commit_id", pa.string()),
        pa.field("created_at", pa.int64()),
    ]
)
ACTORS_SCHEMA = pa.schema(
    [pa.field("graph_commit_id", pa.string(), nullable=False), pa.field("actor_id", pa.string(), nullable=False)]
)
_log = logging.getLogger("omnigraph.manifest")


class Projections:
    """The commit tables of one graph, as one handle keeps them."""

    def __init__(self, root: str, compact_fragments: int) -> None:
        self._root = root
        self._compact_fragments = compact_fragments
        self._lock = threading.Lock()
        self._known: dict[str | None, int] = {}

    def lag(self, state: BranchState) -> int:
        """How many commits of the branch this handle has not seen in the commit tables."""
        return state.commit_count - self._known.get(state.branch, 0)

    def catch_up(self, state: BranchState) -> None:
        """Add what is missing; a failure is logged and the next call tries again."""
        with self._lock:
            if self.lag(state) == 0:
                return
            try:
                self._catch_up(state)
            except Exception as error:
                _log.warning("commit tables were not brought up to date: %s", error)

    def _catch_up(self, state: BranchState) -> None:
        ref = TableRef(self._root, layout.COMMITS, state.branch)
        if state.branch is not None and not table_exists(ref):
            return
        commits = state.commits()
        present = _ids(ref)
        missing = [c for c in commits if c.graph_commit_id not in present]
        if missing:
            self._append(ref, _commit_rows(missing))
        acting = [c for c in commits if c.actor_id is not None]
        if acting:
            actors = TableRef(self._root, layout.COMMIT_ACTORS)
            known = _ids(actors)
            rows = [c for c in acting if c.graph_commit_id not in known]
            if rows:
                self._append(actors, _actor_rows(rows))
        self._known[state.branch] = len(commits)

    def _append(self, ref: TableRef, rows: pa.Table) -> None:
        table = append_to_projection(ref, rows)
        if table.fragment_count() >= self._compact_fragments:
            compact_now(ref)


def projected_ids(root: str, branch: str | None) -> set[str]:
    """The commits the commit table of a branch holds."""
    return _ids(TableRef(root, layout.COMMITS, branch))


def _ids(ref: TableRef) -> set[str]:
    if not table_exists(ref):
        return set()
    return set(open_table(ref, None).read(["graph_commit_id"]).column("graph_commit_id").to_pylist())


def _commit_rows(commits: list[GraphCommit]) -> pa.Table:
    names = COMMITS_SCHEMA.names
    return pa.table({n: [getattr(c, n) for c in commits] for n in names}, schema=COMMITS_SCHEMA)


def _actor_rows(commits: list[GraphCommit]) -> pa.Table:
    return pa.table({n: [getattr(c, n) for c in commits] for n in ACTORS_SCHEMA.names}, schema=ACTORS_SCHEMA)
