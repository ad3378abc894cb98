"""What repair does to a branch whose lock it holds: remove torn versions, take late effects back, publish heads.

Holds at every return:
  1. Nothing at or below a pin was removed, and no data was written.
  2. A pin moved only to a head that was looked at under the same lock, by one commit of kind `repair`.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from omnigraph.base.errors import Conflict, OmniError
from omnigraph.base.failpoints import reach
from omnigraph.base.ids import new_ulid
from omnigraph.commit.context import CommitContext
from omnigraph.commit.drift import TableDrift, drift_of
from omnigraph.commit.heal import heal_tables
from omnigraph.commit.locks import HeldLock
from omnigraph.commit.recovery.settle import remove_torn_head
from omnigraph.commit.sidecar import readable_sidecars
from omnigraph.commit.signals import deferred_signals
from omnigraph.manifest.migrations import migrate_internal_schema
from omnigraph.manifest.publisher import Precondition
from omnigraph.manifest.rows import Changes, CommitIntent, Pin, RowEffect
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState, branch_label
from omnigraph.storage.durable import sync_place
from omnigraph.storage.tables import Table, open_table, remove_version, torn_versions

REPAIR_ACTOR = "omnigraph:repair"
FORCE_ACTOR = "omnigraph:repair:force"
_log = logging.getLogger("omnigraph.repair")


@dataclass(frozen=True)
class NewPin:
    """A head that becomes the pin of its table."""

    table_key: str
    entry: SubTableEntry
    head: int
    row_count: int
    counts: RowEffect = field(default_factory=RowEffect)


def refuse_pending(ctx: CommitContext, branch: str | None) -> None:
    """Refuse while an interrupted write of the branch waits. The caller has its lock, so no living writer is meant."""
    pending, unreadable = readable_sidecars(ctx.objects)
    waits = [s.key for s in pending if s.branch == branch]
    if unreadable or waits:
        told = str(unreadable[0]) if unreadable else waits[0]
        raise Conflict(f"recovery pending: {told}", "Open the graph read-write first; that settles it.")


def settled_state(ctx: CommitContext, branch: str | None, lock: HeldLock) -> BranchState:
    """The branch as it is on disk, torn versions of its manifest removed."""
    ctx.manifest.forget(branch)
    lock.check()
    remove_torn_head(ctx, branch)
    state = migrate_internal_schema(ctx.manifest, branch)
    lock.raise_token(state.head.lock_token or 0 if state.head else 0)
    return state


def remove_unreadable(ctx: CommitContext, table_key: str, entry: SubTableEntry, lock: HeldLock) -> list[int]:
    """Remove torn versions above the pin, newest first, down to the first that is whole; those that went."""
    ref = ctx.ref(entry.location, entry.table_branch)
    removed = []
    for version in torn_versions(ref):
        if version <= entry.table_version:
            break
        lock.check()
        _log.warning("version %d of %s is torn and is removed", version, table_key)
        remove_version(ref, version)
        removed.append(version)
        reach("repair.mid_phase_b")
    return removed


def take_back(ctx: CommitContext, state: BranchState, table_key: str, lock: HeldLock) -> BranchState:
    """Undo late effects of our own writers on one table; the branch afterwards."""
    reach("repair.pre_phase_a")
    with deferred_signals():
        return heal_tables(ctx, state, [table_key], lock)


def publish_heads(
    ctx: CommitContext, state: BranchState, pins: Sequence[NewPin], lock: HeldLock, *, forced: bool
) -> BranchState:
    """One commit of kind `repair` that shows these heads; the branch afterwards."""
    reach("repair.pre_phase_a")
    moved = {pin.table_key: _checked(ctx, state, pin) for pin in pins}
    outcome = "forced" if forced else "healed"
    told = {p.table_key: {"from": p.entry.table_version, "to": p.head, "as": outcome} for p in pins}
    intent = CommitIntent(
        new_ulid(),
        new_ulid(),
        "repair",
        FORCE_ACTOR if forced else REPAIR_ACTOR,
        counts={p.table_key: p.counts for p in pins},
        metadata={"omnigraph": {"repaired": told}},
        lock_token=lock.token,
    )
    changes = Changes(
        tuple(Pin(p.table_key, p.entry.location, p.entry.table_branch, p.head, p.row_count) for p in pins)
    )
    condition = Precondition(parent=state.head_id, bind_parent=True, incarnation=state.incarnation)
    relied_on = {p.table_key: p.entry for p in pins}
    with deferred_signals():
        for table in moved.values():
            # Whoever wrote it may not have synced it.
            sync_place(table.ref, "")
        lock.check()
        reach("repair.post_phase_b_pre_manifest_commit")
        after = ctx.publisher.publish(state.branch, changes, relied_on, intent, condition, state.version).state
        reach("repair.post_manifest_commit_pre_phase_d")
        ctx.keep_house(state.branch)
    ctx.tell(state.branch, moved)
    reach("repair.post_phase_d")
    return after


def _checked(ctx: CommitContext, state: BranchState, pin: NewPin) -> Table:
    """The table at its new pin, if its head still is what was judged."""
    now = drift_of(ctx, pin.entry)
    if now.head != pin.head or state.entries.get(pin.table_key) != pin.entry:
        raise Conflict(
            f"{pin.table_key} on branch '{branch_label(state.branch)}' moved while it was repaired",
            "Nothing was published. Run omnigraph repair again.",
        )
    return open_table(ctx.ref(pin.entry.location, pin.entry.table_branch), pin.head, pin.table_key)


def drifts(ctx: CommitContext, state: BranchState) -> Mapping[str, TableDrift]:
    """Every table the branch owns beside its pin, by key; one whose versions cannot be listed is left out."""
    found = {}
    for key, entry in state.entries.items():
        if entry.table_branch == state.branch:
            try:
                found[key] = drift_of(ctx, entry)
            except OmniError as error:
                _log.warning("%s cannot be looked at: %s", key, error)
    return found
