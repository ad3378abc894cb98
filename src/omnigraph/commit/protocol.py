"""The one way a write becomes true, for every writer.

Holds at every return:
  1. Readers see every table of the write, or none of it.
  2. A returned Receipt is in the manifest; a Conflict left nothing visible; RecoveryRequired names the operation.
  3. A table moved only after its sidecar was durable, and only to the version the sidecar plans.
  4. The sidecar is gone only if the manifest holds a commit stamped with its operation id.
"""

from __future__ import annotations

import logging
from contextlib import nullcontext

from omnigraph.base.errors import (
    Conflict,
    ExpectedVersionMismatch,
    OmniError,
    PreconditionFailed,
    RecoveryRequired,
)
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.heal import heal_tables
from omnigraph.commit.locks import HeldLock, LockLost
from omnigraph.commit.plan import DeferredIndex, Effect, Receipt, WritePlan
from omnigraph.commit.recovery.settle import settle_branch
from omnigraph.commit.schema_files import promote_schema, stage_schema
from omnigraph.commit.sidecar import Sidecar, encode, sidecar_of
from omnigraph.commit.signals import deferred_signals
from omnigraph.commit.staging import refuse_outlived
from omnigraph.commit.undo import undo
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.publisher import LeaseLost, Precondition, check
from omnigraph.manifest.snapshot import first_moved
from omnigraph.manifest.store import BranchState
from omnigraph.storage.apply import commit_staged, landed
from omnigraph.storage.durable import sync_commit, sync_staged
from omnigraph.storage.stage import StagedWrite, Stamp, stage_index
from omnigraph.storage.tables import Table, open_table

_log = logging.getLogger("omnigraph.commit")


class _NotInItsSlot(Conflict):
    """A staged commit did not land where it was planned."""


def commit_plan(ctx: CommitContext, plan: WritePlan, held: HeldLock | None = None) -> Receipt:
    """Lock, settle, re-check, then phases A to D. `held`: the branch lock, when the caller prepared under it."""
    with ctx.locks.hold(plan.branch) if held is None else nullcontext(held) as lock:
        found = settle_branch(ctx, plan.branch, lock)
        state = heal_tables(ctx, found, [e.table_key for e in plan.effects], lock)
        recheck(plan, state, lock)
        refuse_outlived(ctx, plan)
        reach(f"{plan.writer.name}.pre_phase_a")
        with deferred_signals():
            moved: dict[str, Table] = {}
            receipt = _arm_to_clear(ctx, plan, state, lock, moved)
            reach(f"{plan.writer.name}.post_phase_d")
            ctx.keep_house(plan.branch)
    ctx.tell(plan.branch, moved)
    return receipt


def recheck(plan: WritePlan, state: BranchState, lock: HeldLock) -> None:
    """Refuse unless the branch is as it was when the write was prepared; its tables are at their pins already."""
    head = state.head
    lock.raise_token(head.lock_token or 0 if head else 0)
    condition = Precondition(plan.if_commit, incarnation=plan.branch_incarnation)
    _refuse_unknown_tables(plan, state)
    check(state, plan.changes, plan.relied_on, plan.intent(lock.token), condition)


def _refuse_unknown_tables(plan: WritePlan, state: BranchState) -> None:
    """A write that knows nothing of a new type cannot know of its edges, which may end in what it deletes."""
    unknown = state.entries.keys() - plan.known_tables if plan.known_tables is not None else ()
    for key in sorted(unknown):
        raise ExpectedVersionMismatch(table_key=key, expected=0, actual=state.entries[key].table_version)


def _arm_to_clear(
    ctx: CommitContext, plan: WritePlan, state: BranchState, lock: HeldLock, moved: dict[str, Table]
) -> Receipt:
    """`moved` gets the tables as this write left them, as far as a handle is at hand."""
    sidecar = sidecar_of(plan, state.head_id, lock.token)
    for effect in plan.effects:
        for step in effect.steps:
            if isinstance(step, StagedWrite):
                sync_staged(step)
    lock.check()
    _arm(ctx, sidecar)
    try:
        if plan.schema is not None:
            reach("schema_apply.pre_schema_staging")
            stage_schema(ctx.objects, plan.schema, lock)
        reach(f"{plan.writer.name}.post_phase_a_pre_phase_b")
        _apply(plan, lock, moved)
        reach(f"{plan.writer.name}.post_phase_b_pre_manifest_commit")
        commit = _publish(ctx, plan, sidecar, state, lock)
    except (LeaseLost, LockLost) as error:
        raise RecoveryRequired(plan.operation_id, str(error)) from error
    except Exception as error:
        commit = _undone_or_raise(ctx, plan, sidecar, lock, state, error)
    reach(f"{plan.writer.name}.post_manifest_commit_pre_phase_d")
    if plan.schema is None or _promoted(ctx, plan, lock):
        _clear(ctx, plan, sidecar)
    return Receipt(plan.operation_id, commit)


def _arm(ctx: CommitContext, sidecar: Sidecar) -> None:
    """Phase A: the sidecar is durable, or nothing happened."""
    data = encode(sidecar)
    try:
        if ctx.objects.put_if_absent(sidecar.key, data) is None:
            raise Conflict(f"{sidecar.key} exists already; an operation id was used twice")
    except OmniError:
        try:
            written = ctx.objects.get(sidecar.key)
        except OmniError as unknown:
            raise RecoveryRequired(sidecar.operation_id, f"its sidecar may be written: {unknown}") from unknown
        if written is None or written.data != data:
            raise


def _apply(plan: WritePlan, lock: HeldLock, moved: dict[str, Table]) -> None:
    """Phase B: commit each staged step, in key order; each must land in exactly its slot."""
    for effect in plan.ordered_effects:
        at = effect.expected_version
        for number, step in enumerate(effect.steps):
            staged = _staged_now(plan, effect, step, at, number) if isinstance(step, DeferredIndex) else step
            lock.check()
            answer = commit_staged(staged)
            if not landed(staged, at, answer):
                raise answer.error or _NotInItsSlot(
                    f"{effect.table_key} did not land at version {at + staged.versions}"
                )
            at += staged.versions
            sync_commit(staged, at)
            if answer.table is not None:
                moved[effect.table_key] = answer.table
            reach(f"{plan.writer.name}.mid_phase_b")


def _staged_now(plan: WritePlan, effect: Effect, step: DeferredIndex, at: int, number: int) -> StagedWrite:
    """Loose writers are matched by operation id and step, so a later step's uuid need not be known to the sidecar."""
    stamp = Stamp(plan.operation_id, effect.table_key, str(number))
    staged = stage_index(open_table(effect.ref, at, effect.table_key), step.specs, stamp)
    sync_staged(staged)
    return staged


def _publish(ctx: CommitContext, plan: WritePlan, sidecar: Sidecar, state: BranchState, lock: HeldLock) -> GraphCommit:
    """Phase C: exactly the planned pins, on exactly the head that was re-checked."""
    lock.check()
    condition = Precondition(plan.if_commit, sidecar.parent_commit_id, True, plan.branch_incarnation)
    published = ctx.publisher.publish(
        plan.branch, plan.changes, plan.relied_on, plan.intent(lock.token), condition, state.version, state
    )
    return published.commit


def _undone_or_raise(
    ctx: CommitContext, plan: WritePlan, sidecar: Sidecar, lock: HeldLock, state: BranchState, error: Exception
) -> GraphCommit:
    """The commit, if the write turns out to have been published after all; else what the caller is told."""
    try:
        commit = undo(ctx, sidecar, lock, plan.actor_id, state.version)
    except Exception as failed:
        _log.warning("operation %s could not be undone: %s", plan.operation_id, failed)
        raise RecoveryRequired(plan.operation_id, f"{error}; and its undo failed: {failed}") from error
    if commit is not None:
        return commit
    if isinstance(error, ExpectedVersionMismatch | PreconditionFailed):
        raise error
    if isinstance(error, Conflict):
        raise _mismatch(ctx, plan) from error
    raise RecoveryRequired(plan.operation_id, f"{error}; the write was rolled back") from error


def _mismatch(ctx: CommitContext, plan: WritePlan) -> ExpectedVersionMismatch:
    moved = first_moved(ctx.manifest.state(plan.branch).entries, plan.relied_on)
    return moved or ExpectedVersionMismatch(table_key="__manifest", expected=0, actual=0)


def _promoted(ctx: CommitContext, plan: WritePlan, lock: HeldLock) -> bool:
    """Whether the schema files are in their place; if not, they are read where they are, and the sidecar stays."""
    try:
        promote_schema(ctx, plan.graph_commit_id, lock)
    except OmniError as error:
        _log.warning("the schema files of %s stay staged until the next write: %s", plan.operation_id, error)
        return False
    return True


def _clear(ctx: CommitContext, plan: WritePlan, sidecar: Sidecar) -> None:
    """Phase D: the write is true; its sidecar may go. A sidecar that stays is settled by the next writer."""
    if plan.branch is not None:
        try:
            found = ctx.manifest.branch(plan.branch)
        except OmniError as error:
            raise RecoveryRequired(plan.operation_id, f"it is published, its branch cannot be seen: {error}") from error
        if found is None or found.incarnation != plan.branch_incarnation:
            raise RecoveryRequired(plan.operation_id, f"branch '{plan.branch}' was deleted during the write")
    try:
        ctx.objects.delete(sidecar.key)
    except OmniError as error:
        _log.warning("%s stays until the next write: %s", sidecar.key, error)
