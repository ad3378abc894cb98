"""Settles sidecars: rolls an interrupted write forward or back as a whole, records it, and clears the sidecar.

Holds at every return:
  1. The effects come first, then the commit that records them, then the audit row, then the deletion.
  2. Every publish is bound to the head that was observed; a lost one starts over with a fresh look.
  3. Without the branch lock only a roll-forward is done.
"""

from __future__ import annotations

import logging
from typing import Any, ClassVar

from omnigraph.base.errors import Conflict, InternalError, NotFound
from omnigraph.base.failpoints import reach
from omnigraph.base.ids import new_ulid
from omnigraph.catalog.contract import AcceptedSchema, check_recorded, check_tables
from omnigraph.commit.context import CommitContext
from omnigraph.commit.heal import RECOVERY_ACTOR
from omnigraph.commit.locks import HeldLock, LockLost
from omnigraph.commit.recovery.audit import (
    DISCARDED,
    ROLLED_BACK_KIND,
    ROLLED_FORWARD,
    RecoveryRecord,
    TableOutcome,
    record,
)
from omnigraph.commit.recovery.classify import Decision, Observation, StagedFiles, decide, judge_staged
from omnigraph.commit.recovery.observe import branch_state, observe, settling_commit
from omnigraph.commit.restores import restore_moved
from omnigraph.commit.schema_files import (
    adopt_schema,
    discard_schema,
    files_in_force,
    needs_settling,
    promote_schema,
    recorded_commits,
    staged_schema,
    superseded,
)
from omnigraph.commit.sidecar import Sidecar, pending_sidecars
from omnigraph.manifest.lineage import RECOVERY_KEY, ROLLED_BACK, GraphCommit
from omnigraph.manifest.migrations import migrate_internal_schema
from omnigraph.manifest.publisher import BranchReplaced, HeadMoved, LeaseLost, Precondition
from omnigraph.manifest.rows import Changes, CommitIntent, Pin
from omnigraph.manifest.store import BranchState, branch_label
from omnigraph.storage.durable import sync_landed, sync_whole
from omnigraph.storage.tables import open_table, remove_version, torn_versions

_log = logging.getLogger("omnigraph.recovery")
_ROUNDS_MAX = 8


class RecoveryAborted(Conflict):
    """A table's head lies below its pin: something outside OmniGraph removed published versions."""

    code: ClassVar[str] = "recovery_aborted"


def settle_branch(ctx: CommitContext, branch: str | None, lock: HeldLock) -> BranchState:
    """Settle every sidecar of the branch; the branch afterwards. The caller holds its lock."""
    settle_pending(ctx, branch, lock)
    state = migrate_internal_schema(ctx.manifest, branch)
    if not state.table.below_torn:
        return state
    remove_torn_head(ctx, branch)
    return migrate_internal_schema(ctx.manifest, branch)


def settle_pending(ctx: CommitContext, branch: str | None, lock: HeldLock) -> None:
    """Settle every sidecar of a branch, which may be gone."""
    pending = [s for s in pending_sidecars(ctx.objects) if s.branch == branch]
    if pending:
        remove_torn_head(ctx, branch)
    for sidecar in pending:
        settle(ctx, sidecar, lock)


def sweep(ctx: CommitContext) -> None:
    """Settle what can be settled now: fully where the branch lock is free, else by roll-forward only."""
    waiting = [s.branch for s in pending_sidecars(ctx.objects)]
    main = ctx.manifest.state()
    unsettled = [None] if main.table.below_torn or needs_settling(ctx.objects, main) else []
    for branch in dict.fromkeys([*waiting, *unsettled]):
        with ctx.locks.try_hold(branch) as lock:
            if lock is None:
                continue
            try:
                settle_pending(ctx, branch, lock)
                remove_torn_head(ctx, branch)
                if branch is None:
                    settle_staged_schema(ctx, lock)
            except LockLost as error:
                _log.warning("recovery of branch '%s' is left to whoever has it now: %s", branch_label(branch), error)


def remove_torn_head(ctx: CommitContext, branch: str | None) -> None:
    """Remove manifest versions that a power cut tore; they were never acknowledged. The caller holds the lock."""
    try:
        state = ctx.manifest.state(branch)
    except NotFound:
        return
    if not state.table.below_torn:
        return
    for version in torn_versions(state.table.ref):
        _log.warning("version %d of the manifest cannot be read and is removed", version)
        remove_version(state.table.ref, version)
    ctx.manifest.forget(branch)


def settle(ctx: CommitContext, sidecar: Sidecar, lock: HeldLock) -> Decision:
    for _ in range(_ROUNDS_MAX):
        ctx.manifest.forget(sidecar.branch)
        state = branch_state(ctx, sidecar)
        if state is not None:
            state = migrate_internal_schema(ctx.manifest, sidecar.branch)
            lock.raise_token(state.head.lock_token or 0 if state.head else 0)
        seen = observe(ctx, sidecar, state)
        decision = decide(seen)
        reach("recovery.pre_phase_a")
        lock.check()
        _log.warning(
            "operation %s (%s) was interrupted: %s", sidecar.operation_id, sidecar.writer_kind.value, decision.value
        )
        try:
            _act(ctx, sidecar, state, seen, decision, lock)
        except (HeadMoved, LeaseLost, BranchReplaced):
            continue
        ctx.objects.delete(sidecar.key)
        reach("recovery.post_phase_d")
        return decision
    raise InternalError(f"the head of branch '{branch_label(sidecar.branch)}' moved during every recovery attempt")


def _act(
    ctx: CommitContext,
    sidecar: Sidecar,
    state: BranchState | None,
    seen: Observation,
    decision: Decision,
    lock: HeldLock,
) -> None:
    if decision is Decision.DISCARD or state is None:
        record(ctx.root, _row(sidecar, DISCARDED, None, ()))
        return
    if decision is Decision.ABORT:
        broken = next(t for t in seen.tables if t.head < t.pin)
        raise RecoveryAborted(
            f"{sidecar.key}: {broken.table_key} has head {broken.head} below its pin {broken.pin}",
            "Published versions were removed from outside. The sidecar is kept; restore the files from a backup.",
        )
    if decision is Decision.SETTLED:
        # Its writer may have died between the publish and its sync.
        sync_whole(state.table)
        commit = settling_commit(sidecar, state)
        _settle_schema(ctx, sidecar, commit, lock)
        if commit is not None and commit.actor_id == RECOVERY_ACTOR:
            record(ctx.root, _row_of_commit(sidecar, commit))
        return
    reach("recovery.post_phase_a_pre_phase_b")
    if decision is Decision.FORWARD:
        for table in sidecar.tables:
            # Its writer may have died between a table's commit and its sync.
            ref = ctx.ref(table.table_path, table.table_branch)
            sync_landed(ref, table.expected_version, table.post_commit_pin)
        pins = (*_planned_pins(ctx, sidecar), *sidecar.adopted)
        changes = Changes(pins, sidecar.registrations, sidecar.tombstones)
        outcomes = tuple(TableOutcome(t.table_key, t.expected_version, t.post_commit_pin) for t in sidecar.tables)
        kind = ROLLED_FORWARD
    else:
        restored = restore_moved(ctx, sidecar, state, may_remove_foreign=True)
        outcomes = tuple(TableOutcome(pin.table_key, was.head, was.pin) for pin, was in restored)
        changes, kind = Changes(tuple(pin for pin, _ in restored)), ROLLED_BACK_KIND
    reach("recovery.post_phase_b_pre_manifest_commit")
    commit = _publish(ctx, sidecar, state, changes, kind, outcomes, lock)
    reach("recovery.post_manifest_commit_pre_phase_d")
    _settle_schema(ctx, sidecar, commit, lock)
    if commit.actor_id == RECOVERY_ACTOR:
        # Else its own writer was only slow, and its publish came first.
        record(ctx.root, _row_of_commit(sidecar, commit))
    reach("recovery.post_audit")


def _settle_schema(ctx: CommitContext, sidecar: Sidecar, commit: GraphCommit | None, lock: HeldLock) -> None:
    """The commit that settled the operation is published: its schema files follow it, or the sidecar stays."""
    if not sidecar.carries_schema or commit is None:
        return
    if not commit.is_roll_back:
        promote_schema(ctx, commit.graph_commit_id, lock)
    elif sidecar.graph_commit_id is not None:
        discard_schema(ctx.objects, sidecar.graph_commit_id)


def settle_staged_schema(ctx: CommitContext, lock: HeldLock) -> None:
    """Judge records of schemas that no sidecar speaks of. The caller holds the lock of main and has settled it."""
    objects = ctx.objects
    # In this order: an apply writes its sidecar before its record, and its commit is there before the sidecar goes.
    recorded = recorded_commits(objects)
    pending = {s.graph_commit_id for s in pending_sidecars(objects)}
    if not recorded or not pending.isdisjoint(recorded):
        return
    main = migrate_internal_schema(ctx.manifest, None)
    if not needs_settling(objects, main):
        return
    gone = set(superseded(recorded, main))
    for name in recorded:
        if name not in gone:
            _settle_record(ctx, name, main, lock)
    if gone and main.schema_commit is not None:
        promote_schema(ctx, main.schema_commit.graph_commit_id, lock)


def _settle_record(ctx: CommitContext, name: str, main: BranchState, lock: HeldLock) -> None:
    """The record of the newest schema commit, or of one that the manifest does not hold: it can come no more."""
    try:
        live = files_in_force(ctx.objects, main).accepted()
    except Conflict:
        live = None
    staged, published = staged_schema(ctx.objects, name), main.holds(name)
    outcome = judge_staged(_fits(live, main), _fits(staged, main), published)
    what = "are not in place" if published else "were left, though it was not made"
    _log.warning("the schema files of commit %s %s: %s", name, what, outcome.value)
    if outcome is StagedFiles.FINISH and published:
        promote_schema(ctx, name, lock)
    elif outcome is StagedFiles.FINISH and staged is not None:
        adopt_schema(ctx.objects, staged, lock)
    elif outcome is StagedFiles.DELETE:
        discard_schema(ctx.objects, name)


def _fits(schema: AcceptedSchema | None, main: BranchState) -> bool:
    """Whether a schema is the one that main's newest schema commit tells of, and fits main's tables."""
    if schema is None:
        return False
    newest = main.schema_commit
    try:
        check_tables(schema.catalog, main.entries)
        if newest is not None:
            check_recorded(schema.ir_hash, newest.schema_hashes[0], newest.graph_commit_id)
    except Conflict:
        return False
    return True


def _planned_pins(ctx: CommitContext, sidecar: Sidecar) -> list[Pin]:
    return [
        Pin(
            t.table_key,
            t.table_path,
            t.table_branch,
            t.post_commit_pin,
            t.row_count
            if t.row_count is not None
            else open_table(ctx.ref(t.table_path, t.table_branch), t.post_commit_pin, t.table_key).count_rows(),
        )
        for t in sidecar.tables
    ]


def _publish(
    ctx: CommitContext,
    sidecar: Sidecar,
    state: BranchState,
    changes: Changes,
    kind: str,
    outcomes: tuple[TableOutcome, ...],
    lock: HeldLock,
) -> GraphCommit:
    forward = kind == ROLLED_FORWARD
    ours: dict[str, Any] = {
        RECOVERY_KEY: "rolled_forward" if forward else ROLLED_BACK,
        "outcomes": [[o.table_key, o.from_version, o.to_version] for o in outcomes],
    }
    intent = CommitIntent(
        (sidecar.graph_commit_id if forward else None) or new_ulid(),
        sidecar.operation_id,
        "recovery",
        RECOVERY_ACTOR,
        sidecar.merge_source_commit_id if forward else None,
        sidecar.message if forward else None,
        sidecar.counts if forward else {},
        {**(sidecar.metadata if forward else {}), "omnigraph": {**_ours(sidecar, forward), **ours}},
        lock.token,
    )
    condition = Precondition(parent=state.head_id, bind_parent=True, incarnation=state.incarnation)
    return ctx.publisher.publish(sidecar.branch, changes, {}, intent, condition, state.version).commit


def _ours(sidecar: Sidecar, forward: bool) -> dict[str, Any]:
    kept = sidecar.metadata.get("omnigraph") if forward else None
    return dict(kept) if isinstance(kept, dict) else {}


def _row(sidecar: Sidecar, kind: str, commit: GraphCommit | None, outcomes: tuple[TableOutcome, ...]) -> RecoveryRecord:
    return RecoveryRecord(
        kind,
        sidecar.operation_id,
        sidecar.writer_kind.value,
        commit.graph_commit_id if commit else None,
        sidecar.actor_id,
        outcomes,
    )


def _row_of_commit(sidecar: Sidecar, commit: GraphCommit) -> RecoveryRecord:
    """The audit row a recovery commit describes; the commit carries what each table went through."""
    ours = commit.metadata.get("omnigraph") or {}
    outcomes = tuple(TableOutcome(k, int(a), int(b)) for k, a, b in ours.get("outcomes", ()))
    return _row(sidecar, ROLLED_BACK_KIND if commit.is_roll_back else ROLLED_FORWARD, commit, outcomes)
