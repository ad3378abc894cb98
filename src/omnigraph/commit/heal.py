"""Versions above a pin that no sidecar explains: late effects of a sleeping writer, maintenance, or a foreign tool.

Runs under the branch lock, after every sidecar was settled. `verdict` decides and is pure; `heal_tables` acts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from enum import Enum

from omnigraph.base.errors import Drift, InternalError
from omnigraph.base.ids import new_ulid
from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import HeldLock, LockLost
from omnigraph.manifest.publisher import HeadMoved, LeaseLost, Precondition
from omnigraph.manifest.rows import Changes, CommitIntent, Pin
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState, branch_label
from omnigraph.storage.apply import Slot, read_slot, restore
from omnigraph.storage.durable import sync_place
from omnigraph.storage.inventory import lacks_index_files
from omnigraph.storage.stage import RESTORE_STEP, Stamp
from omnigraph.storage.tables import head_version, open_table

RECOVERY_ACTOR = "omnigraph:recovery"
_log = logging.getLogger("omnigraph.recovery")
_ROUNDS_MAX = 8


class Verdict(Enum):
    RESTORE = "restored"
    ADOPT = "adopted"
    FOREIGN = "foreign"


def verdict(slots: Sequence[Slot | None]) -> Verdict:
    """What to do about the versions above a pin."""
    if all(s is not None and s.operation_id is not None for s in slots):
        return Verdict.RESTORE
    if all(s is not None and s.is_maintenance and s.operation_id is None for s in slots):
        return Verdict.ADOPT
    return Verdict.FOREIGN


def heal_tables(ctx: CommitContext, state: BranchState, table_keys: Iterable[str], lock: HeldLock) -> BranchState:
    """Make head == pin on these tables, or raise Drift naming one that a foreign tool wrote; the branch afterwards.

    A table the branch only inherits is another branch's to heal.
    """
    branch, keys = state.branch, sorted(table_keys)
    for _ in range(_ROUNDS_MAX):
        owned = [(k, e) for k in keys if (e := state.entries.get(k)) is not None and e.table_branch == branch]
        drifted = [(k, e) for k, e in owned if _head(ctx, e) != e.table_version]
        if not drifted:
            return state
        lock.raise_token(state.head.lock_token or 0 if state.head else 0)
        lock.check()
        operation_id = new_ulid()
        healed = [_heal(ctx, branch, key, entry, operation_id) for key, entry in drifted]
        intent = CommitIntent(
            new_ulid(),
            operation_id,
            "recovery",
            RECOVERY_ACTOR,
            metadata={"omnigraph": {"healed": {pin.table_key: outcome.value for pin, outcome in healed}}},
            lock_token=lock.token,
        )
        condition = Precondition(parent=state.head_id, bind_parent=True, incarnation=state.incarnation)
        try:
            pins = Changes(tuple(p for p, _ in healed))
            return ctx.publisher.publish(branch, pins, {}, intent, condition, state.version).state
        except (HeadMoved, LeaseLost):
            state = ctx.manifest.state(branch)
    raise InternalError(f"the head of branch '{branch_label(branch)}' moved during every attempt to heal")


def heal_branch(ctx: CommitContext, branch: str | None) -> None:
    """Heal what late effects left on any table of the branch, if its lock is free; foreign drift is left to repair."""
    entries = ctx.manifest.state(branch).entries
    drifted = [k for k, e in entries.items() if e.table_branch == branch and _head(ctx, e) != e.table_version]
    if not drifted:
        return
    with ctx.locks.try_hold(branch) as lock:
        for key in drifted if lock is not None else ():
            assert lock is not None
            try:
                heal_tables(ctx, ctx.manifest.state(branch), [key], lock)
            except Drift as error:
                _log.warning("%s; %s", error, error.hint)
            except LockLost as error:
                _log.warning("late effects on branch '%s' wait for its holder: %s", branch_label(branch), error)
                return


def _head(ctx: CommitContext, entry: SubTableEntry) -> int:
    return head_version(ctx.ref(entry.location, entry.table_branch), entry.table_version)


def _heal(
    ctx: CommitContext, branch: str | None, table_key: str, entry: SubTableEntry, operation_id: str
) -> tuple[Pin, Verdict]:
    ref = ctx.ref(entry.location, entry.table_branch)
    head = _head(ctx, entry)
    above = [read_slot(ref, v) for v in range(entry.table_version + 1, head + 1)]
    outcome = verdict(above) if above else Verdict.FOREIGN
    # Lance's own compaction of a fork leaves indexes that the fork inherited without files; repair builds them again.
    breaks = outcome is Verdict.ADOPT and lacks_index_files(open_table(ref, head, table_key))
    if outcome is Verdict.FOREIGN or breaks:
        raise Drift(table_key, branch_label(branch), entry.table_version, head)
    version = head
    if outcome is Verdict.ADOPT:
        sync_place(ref, "")
    if outcome is Verdict.RESTORE:
        version = restore(ref, entry.table_version, Stamp(operation_id, table_key, RESTORE_STEP))
    return Pin(table_key, entry.location, entry.table_branch, version, entry.row_count), outcome
