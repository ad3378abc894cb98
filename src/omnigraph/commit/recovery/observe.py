"""Looks at the tables and the manifest a sidecar speaks of. Reads only."""

from __future__ import annotations

from omnigraph.base.errors import NotFound
from omnigraph.commit.context import CommitContext
from omnigraph.commit.recovery.classify import Observation, TableObservation
from omnigraph.commit.schema_files import staged_schema
from omnigraph.commit.sidecar import Sidecar, SidecarTable
from omnigraph.manifest.lineage import SCHEMA_HASH_KEY, GraphCommit
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState
from omnigraph.storage.apply import read_slot
from omnigraph.storage.tables import newest_number


def branch_state(ctx: CommitContext, sidecar: Sidecar) -> BranchState | None:
    """The sidecar's branch, or None when that branch is gone or is another one of the same name."""
    try:
        state = ctx.manifest.state(sidecar.branch)
    except NotFound:
        return None
    if sidecar.branch_incarnation is not None and state.incarnation != sidecar.branch_incarnation:
        return None
    return state


def settling_commit(sidecar: Sidecar, state: BranchState) -> GraphCommit | None:
    """The commit that records the outcome of the sidecar's operation."""
    return next((c for c in reversed(state.commits()) if c.operation_id == sidecar.operation_id), None)


def observe(ctx: CommitContext, sidecar: Sidecar, state: BranchState | None) -> Observation:
    return Observation(
        writer_kind=sidecar.writer_kind,
        operation_id=sidecar.operation_id,
        branch_is_gone=state is None,
        is_settled=state is not None and settling_commit(sidecar, state) is not None,
        head_is_parent=state is not None and _is_as_checked(sidecar, state),
        has_recorded_ids=sidecar.graph_commit_id is not None,
        tables=() if state is None else tuple(observe_table(ctx, t, state) for t in sidecar.tables),
        schema_matches=state is not None and _schema_matches(ctx, sidecar, state),
    )


def _is_as_checked(sidecar: Sidecar, state: BranchState) -> bool:
    """Whether the head is the one that the write was checked against. A sidecar without ids does not say which that
    was; of its tables, none may have been dropped since."""
    if sidecar.graph_commit_id is not None:
        return state.head_id == sidecar.parent_commit_id
    created = {r.location for r in sidecar.registrations}
    return all(t.table_path in created or shown_entry(t, state)[1] is not None for t in sidecar.tables)


def _schema_matches(ctx: CommitContext, sidecar: Sidecar, state: BranchState) -> bool:
    """Whether the schema of a schema apply is staged as a whole and fits the tables it would leave."""
    if not sidecar.carries_schema:
        return True
    staged = staged_schema(ctx.objects, sidecar.graph_commit_id) if sidecar.graph_commit_id is not None else None
    if staged is None:
        return False
    ours = sidecar.metadata.get("omnigraph")
    if isinstance(ours, dict) and ours.get(SCHEMA_HASH_KEY, staged.ir_hash) != staged.ir_hash:
        return False
    hidden = {(t.table_key, t.location) for t in sidecar.tombstones}
    left = {key for key, entry in state.entries.items() if (key, entry.location) not in hidden}
    left |= {r.table_key for r in sidecar.registrations}
    return left == {table.table_key for table in staged.catalog.tables()}


def shown_entry(table: SidecarTable, state: BranchState) -> tuple[str, SubTableEntry | None]:
    """The table at the sidecar's place as readers see it, under the name they know: it was perhaps to be renamed."""
    entry = state.entries.get(table.table_key)
    if entry is not None and entry.location == table.table_path:
        return table.table_key, entry
    found = ((k, e) for k, e in state.entries.items() if e.location == table.table_path)
    return next(found, (table.table_key, None))


def observe_table(ctx: CommitContext, table: SidecarTable, state: BranchState) -> TableObservation:
    entry = shown_entry(table, state)[1]
    registered = entry is not None and entry.table_branch == table.table_branch
    # A table or fork that was being created is not pinned yet; its first version follows the one it was expected at.
    pin = entry.table_version if registered and entry is not None else table.expected_version
    ref = ctx.ref(table.table_path, table.table_branch)
    # Of the two versions of a compaction a power cut may keep the second alone: not finding the next proves nothing.
    head = newest_number(ref)
    if not registered:
        head = max(head, pin)
    slots = {v: s for v in range(pin + 1, head + 1) if (s := read_slot(ref, v)) is not None}
    return TableObservation(
        table.table_key, head, pin, table.expected_version, table.post_commit_pin, table.transactions, slots
    )
