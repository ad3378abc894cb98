"""What a graph's operator wants to know at a glance. Reads only."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.base.errors import OmniError
from omnigraph.catalog.catalog import Catalog
from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import Holder
from omnigraph.commit.recovery.audit import RecoveryRecord, recorded
from omnigraph.commit.sidecar import BadSidecar, Sidecar, readable_sidecars
from omnigraph.commit.staging import Heartbeat, list_heartbeats
from omnigraph.engine.write.ensure_indices import unindexed_rows
from omnigraph.manifest import layout
from omnigraph.manifest.branches import visible_branches
from omnigraph.manifest.projections import projected_ids
from omnigraph.manifest.store import branch_label, branch_name, refuse_internal
from omnigraph.storage.tables import head_version, open_table


@dataclass(frozen=True)
class TableStatus:
    table_key: str
    pinned: int
    head: int
    rows: int
    fragments: int
    unindexed_rows: int
    owned: bool
    """Whether the branch writes to it, not only reads it from where it was made."""

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
    error: str | None = None
    """Why the branch could not be looked at; then nothing but its name and its lock is known."""


@dataclass(frozen=True)
class GraphStatus:
    uri: str
    branches: tuple[BranchStatus, ...]
    pending: tuple[Sidecar, ...]
    last_recovery: RecoveryRecord | None
    unreadable: tuple[BadSidecar, ...] = ()
    loads: tuple[Heartbeat, ...] = ()
    """Bulk loads that are staging, and those that died while they were."""


def read_locks(ctx: CommitContext) -> tuple[Holder, ...]:
    """The lock of every branch; one nobody ever took is free. Then those of branch control and applies, if held."""
    labels = visible_branches(ctx.manifest)
    found = [ctx.locks.holder(branch_name(n)) or Holder(n, False, 0, "", "", looks="free") for n in labels]
    others = map(ctx.locks.holder, (layout.BRANCH_CONTROL_LOCK, layout.SCHEMA_LOCK_BRANCH))
    return (*found, *(one for one in others if one is not None and one.held))


def breakable_lock(ctx: CommitContext, branch: str | None) -> Holder | None:
    """Whom `break_lock` would take the lock from, None when it is free; raises where breaking would be refused."""
    _refuse_unknown(ctx, branch)
    holder = ctx.locks.holder(branch)
    if holder is None or not holder.held:
        return None
    return holder if ctx.locks.can_break else ctx.locks.break_lock(branch)


def break_lock(ctx: CommitContext, branch: str | None) -> Holder | None:
    """Free the branch's lock; who had it, or None when it was free."""
    _refuse_unknown(ctx, branch)
    return ctx.locks.break_lock(branch)


def _refuse_unknown(ctx: CommitContext, branch: str | None) -> None:
    if branch != layout.BRANCH_CONTROL_LOCK:
        refuse_internal(branch)
        ctx.manifest.state(branch)


def read_status(ctx: CommitContext, catalog: Catalog) -> GraphStatus:
    found = (_looked_at(ctx, branch_name(label), catalog) for label in visible_branches(ctx.manifest))
    branches = tuple(branch for branch in found if branch is not None)
    done = recorded(ctx.root)
    pending, unreadable = readable_sidecars(ctx.objects)
    last = done[0] if done else None
    return GraphStatus(ctx.root.uri, branches, tuple(pending), last, tuple(unreadable), tuple(list_heartbeats(ctx)))


def _looked_at(ctx: CommitContext, branch: str | None, catalog: Catalog) -> BranchStatus | None:
    """One branch, None if it was deleted meanwhile; what is broken about it hides no other."""
    try:
        return _branch(ctx, branch, catalog)
    except OmniError as error:
        if branch is not None and ctx.manifest.branch(branch) is None:
            return None
        return BranchStatus(branch_label(branch), None, 0, 0, 0, 0, ctx.locks.holder(branch), (), str(error))


def _branch(ctx: CommitContext, branch: str | None, catalog: Catalog) -> BranchStatus:
    state = ctx.manifest.state(branch)
    types = {type_.table_key: type_ for type_ in catalog.tables()}
    known = projected_ids(ctx.root, branch)
    tables = []
    for key, entry in state.entries.items():
        ref = ctx.ref(entry.location, entry.table_branch)
        table = open_table(ref, entry.table_version, key)
        # A table that the branch only reads is its owner's, who may have gone on since.
        head = head_version(ref, entry.table_version) if entry.table_branch == branch else entry.table_version
        fresh = unindexed_rows(table, types[key]) if key in types and entry.row_count else 0
        counts = entry.row_count, table.fragment_count(), fresh
        tables.append(TableStatus(key, entry.table_version, head, *counts, entry.table_branch == branch))
    return BranchStatus(
        branch_label(branch),
        state.head_id,
        state.version,
        state.stamp,
        state.table.fragment_count(),
        sum(1 for c in state.commits() if c.graph_commit_id not in known),
        ctx.locks.holder(branch),
        tuple(tables),
    )
