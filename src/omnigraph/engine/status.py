"""What a graph's operator wants to know at a glance. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import Holder
from omnigraph.commit.recovery.audit import RecoveryRecord, recorded
from omnigraph.commit.sidecar import BadSidecar, Sidecar, readable_sidecars
from omnigraph.manifest.branches import visible_branches
from omnigraph.manifest.projections import projected_ids
from omnigraph.manifest.store import branch_name
from omnigraph.storage.tables import head_version, open_table


@dataclass(frozen=True)
class TableStatus:
    table_key: str
    pinned: int
    head: int
    rows: int
    fragments: int

    @property
    def drifted(self) -> bool:
        return self.head != self.pinned


@dataclass(frozen=True)
class BranchStatus:
    branch: str
    head_commit_id: str | None
    graph_version: int
    internal_schema: int
    manifest_fragments: int
    projection_lag: int
    lock: Holder | None
    tables: tuple[TableStatus, ...]


@dataclass(frozen=True)
class GraphStatus:
    uri: str
    branches: tuple[BranchStatus, ...]
    pending: tuple[Sidecar, ...]
    last_recovery: RecoveryRecord | None
    unreadable: tuple[BadSidecar, ...] = ()


def read_status(ctx: CommitContext) -> GraphStatus:
    branches = tuple(_branch(ctx, branch_name(label)) for label in visible_branches(ctx.manifest))
    done = recorded(ctx.root)
    pending, unreadable = readable_sidecars(ctx.objects)
    return GraphStatus(ctx.root.uri, branches, tuple(pending), done[0] if done else None, tuple(unreadable))


def _branch(ctx: CommitContext, branch: str | None) -> BranchStatus:
    state = ctx.manifest.state(branch)
    known = projected_ids(ctx.root, branch)
    tables = []
    for key, entry in state.entries.items():
        ref = ctx.ref(entry.location, entry.table_branch)
        table = open_table(ref, entry.table_version, key)
        head = head_version(ref, entry.table_version)
        tables.append(TableStatus(key, entry.table_version, head, entry.row_count, table.fragment_count()))
    return BranchStatus(
        branch or "main",
        state.head_id,
        state.version,
        state.stamp,
        state.table.fragment_count(),
        sum(1 for c in state.commits() if c.graph_commit_id not in known),
        ctx.locks.holder(branch),
        tuple(tables),
    )
