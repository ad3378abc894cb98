"""The commit tables: derived from the manifest, allowed to lag, brought up to date in batches.

Rows are added and never removed. Nothing here decides the outcome of a write.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from omnigraph.manifest import layout
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.store import BranchState
from omnigraph.storage.failures import CommitLost
from omnigraph.storage.ledger import append_if_head, compact_now, create_now, open_mended
from omnigraph.storage.places import Root
from omnigraph.storage.tables import Table, TableRef, open_newest, table_exists

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

    def __init__(self, root: Root, compact_fragments: int) -> None:
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
            except CommitLost as error:
                _log.debug("another handle brings the commit tables up to date: %s", error)
            except Exception as error:
                _log.warning("commit tables were not brought up to date: %s", error)

    def _catch_up(self, state: BranchState) -> None:
        ref = TableRef(self._root, layout.COMMITS, state.branch)
        if state.branch is not None and not table_exists(ref):
            return
        commits = state.commits()
        self._add_missing(ref, commits, _commit_rows)
        acting = [c for c in commits if c.actor_id is not None]
        if acting:
            self._add_missing(TableRef(self._root, layout.COMMIT_ACTORS), acting, _actor_rows)
        self._known[state.branch] = len(commits)

    def _add_missing(
        self, ref: TableRef, commits: list[GraphCommit], rows: Callable[[list[GraphCommit]], pa.Table]
    ) -> None:
        """Append to exactly the head that was read: handles that catch up at once must not add a commit twice."""
        if not table_exists(ref):
            create_now(ref, rows([]).schema, rows(commits))
            return
        table = open_mended(ref)
        present = _ids(table)
        missing = [c for c in commits if c.graph_commit_id not in present]
        if missing:
            table = append_if_head(table, rows(missing), {})
            if table.fragment_count() >= self._compact_fragments:
                compact_now(ref)


def projected_ids(root: Root, branch: str | None) -> set[str]:
    """The commits the commit table of a branch holds."""
    ref = TableRef(root, layout.COMMITS, branch)
    return _ids(open_newest(ref)) if table_exists(ref) else set()


def read_commits(root: Root, branch: str | None) -> list[dict[str, Any]]:
    """Every row of the commit table of a branch; none where there is no table."""
    ref = TableRef(root, layout.COMMITS, branch)
    return open_newest(ref).read(COMMITS_SCHEMA.names).to_pylist() if table_exists(ref) else []


def read_actors(root: Root) -> list[tuple[str, str]]:
    """Every commit that the table of actors knows, and who made it."""
    ref = TableRef(root, layout.COMMIT_ACTORS)
    rows = open_newest(ref).read(ACTORS_SCHEMA.names).to_pylist() if table_exists(ref) else []
    return [(row["graph_commit_id"], row["actor_id"]) for row in rows]


def _ids(table: Table) -> set[str]:
    return set(table.read(["graph_commit_id"]).column("graph_commit_id").to_pylist())


def _commit_rows(commits: list[GraphCommit]) -> pa.Table:
    names = COMMITS_SCHEMA.names
    return pa.table({n: [getattr(c, n) for c in commits] for n in names}, schema=COMMITS_SCHEMA)


def _actor_rows(commits: list[GraphCommit]) -> pa.Table:
    return pa.table({n: [getattr(c, n) for c in commits] for n in ACTORS_SCHEMA.names}, schema=ACTORS_SCHEMA)
