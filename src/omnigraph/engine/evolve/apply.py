"""Schema apply: brings a new schema into force as one commit on main.

Holds at every return:
  1. The schema and every table are the old ones, or all are the new ones, for every reader.
  2. Nothing was planned on something that moved: from planning to the end the lock of main is held.
  3. Branches see a schema that their rows fit: others than additions are refused while there are any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.base.errors import Conflict
from omnigraph.base.failpoints import reach
from omnigraph.base.ids import new_ulid
from omnigraph.catalog.contract import AcceptedSchema, hash_bytes
from omnigraph.catalog.evolution.plan import SchemaPlan
from omnigraph.commit.context import CommitContext
from omnigraph.commit.heal import heal_tables
from omnigraph.commit.locks import HeldLock
from omnigraph.commit.plan import SCHEMA_APPLY, Receipt, WritePlan, check_annotations
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.recovery.settle import settle_branch, settle_staged_schema
from omnigraph.commit.schema_lock import Turn, applying
from omnigraph.engine.evolve.reclaim import Lost, reclaim, refuse_tagged
from omnigraph.engine.evolve.tables import TableShift, accept_next, shifts, stage_tables
from omnigraph.engine.schema_plan import SchemaApplyResult, checked_plan
from omnigraph.engine.upkeep.seen import refuse_pending
from omnigraph.engine.write.changes import Annotations
from omnigraph.manifest.branches import visible_branches
from omnigraph.manifest.lineage import SCHEMA_HASH_KEY, SCHEMA_SOURCE_HASH_KEY
from omnigraph.manifest.store import BranchState

AcceptedOf = Callable[[BranchState], AcceptedSchema]
Progress = Callable[[str], None]


@dataclass(frozen=True)
class ApplyCall:
    """What is to be applied. `queries`: the texts of stored queries by their paths; all must fit the new schema."""

    source: str
    allow_data_loss: bool = False
    file: str | None = None
    queries: Mapping[str, str] | None = None
    dry_run: bool = False


def schema_apply(
    ctx: CommitContext, accepted_of: AcceptedOf, call: ApplyCall, notes: Annotations, told: Progress | None = None
) -> SchemaApplyResult:
    """Make the source the schema in force; no commit when it is already, nothing at all when it cannot be."""
    metadata = dict(notes.metadata or {})
    check_annotations(notes.actor, notes.message, metadata)
    state = ctx.manifest.state(None)
    plan = _planned(accepted_of, state, call)
    if call.dry_run or not plan.steps:
        return SchemaApplyResult(plan, False, state.version)
    refuse_pending(ctx)
    # Looked at again under the lock; who is refused here holds nobody up by taking it.
    _refuse_branches(ctx, plan.additive)
    reach("schema_apply.planned")
    with applying(ctx) as turn, ctx.locks.hold(None) as lock:
        applied = _Apply(ctx, accepted_of, call, notes, lock, turn, told or _nobody)
        result = applied.run(plan)
    if applied.lost and result.applied:
        reach("schema_apply.pre_reclaim")
        reclaim(ctx, applied.lost)
    return result


def _nobody(_table_key: str) -> None:
    return


def _planned(accepted_of: AcceptedOf, state: BranchState, call: ApplyCall) -> SchemaPlan:
    return checked_plan(
        accepted_of(state),
        state.snapshot(),
        call.source,
        file=call.file,
        allow_data_loss=call.allow_data_loss,
        queries=call.queries,
    )


@dataclass
class _Apply:
    """One apply, under the lock of main."""

    ctx: CommitContext
    accepted_of: AcceptedOf
    call: ApplyCall
    notes: Annotations
    lock: HeldLock
    turn: Turn
    told: Progress
    lost: tuple[Lost, ...] = ()
    is_additive: bool = False

    def run(self, wanted: SchemaPlan) -> SchemaApplyResult:
        """`wanted`: the plan before the lock was held. Another one could drop what somebody else has just added."""
        state = self._settled()
        plan = _planned(self.accepted_of, state, self.call)
        if not plan.steps:
            return SchemaApplyResult(plan, False, state.version)
        if _told(plan) != _told(wanted):
            raise Conflict("the schema changed meanwhile", "Nothing was written. Plan again, then apply.")
        self.is_additive = plan.additive
        _refuse_branches(self.ctx, self.is_additive)
        before = self.accepted_of(state)
        commit_id = new_ulid()
        after = accept_next(self.ctx, state, before.ir, self.call.source, commit_id)
        changed = shifts(before.catalog, after.catalog)
        if self.call.allow_data_loss:
            self.lost = _lost(state, changed)
            refuse_tagged(self.ctx, state, self.lost)
        receipt = self._commit(state, after, changed, commit_id)
        return SchemaApplyResult(plan, True, receipt.graph_version, receipt.graph_commit_id)

    def _settled(self) -> BranchState:
        state = settle_branch(self.ctx, None, self.lock)
        settle_staged_schema(self.ctx, self.lock)
        return heal_tables(self.ctx, state, state.entries, self.lock)

    def _commit(
        self, state: BranchState, after: AcceptedSchema, changed: tuple[TableShift, ...], commit_id: str
    ) -> Receipt:
        operation = new_ulid()
        staged = stage_tables(self.ctx, state, changed, operation, self.told)
        ours = {SCHEMA_HASH_KEY: after.ir_hash, SCHEMA_SOURCE_HASH_KEY: hash_bytes(after.source_bytes)}
        metadata: dict[str, Any] = {**(self.notes.metadata or {}), "omnigraph": ours}
        plan = WritePlan(
            operation_id=operation,
            graph_commit_id=commit_id,
            writer=SCHEMA_APPLY,
            branch=None,
            branch_incarnation=state.incarnation,
            effects=staged.effects,
            relied_on=staged.relied_on,
            registrations=staged.registrations,
            tombstones=staged.tombstones,
            actor_id=self.notes.actor,
            message=self.notes.message,
            metadata=metadata,
            if_commit=self.notes.if_commit,
            schema=after,
        )
        # Whoever slept while staging may have lost his turn, and branches may have been made since.
        self.turn.check()
        _refuse_branches(self.ctx, self.is_additive)
        return commit_plan(self.ctx, plan, self.lock)


def _refuse_branches(ctx: CommitContext, is_additive: bool) -> None:
    others = visible_branches(ctx.manifest)[1:]
    if others and not is_additive:
        raise Conflict(
            f"schema apply requires a graph with only main; found non-main branches: {', '.join(others)}",
            "Nothing was written. Merge or delete them first; additions alone can be applied while there are branches.",
        )


def _told(plan: SchemaPlan) -> list[dict[str, Any]]:
    """The steps; whether a drop loses rows may change from one write to the next, and is none of them."""
    return [{k: v for k, v in step.to_json().items() if k not in ("code", "tier")} for step in plan.steps]


def _lost(state: BranchState, changed: tuple[TableShift, ...]) -> tuple[Lost, ...]:
    """The tables whose past goes for good: those of dropped types, and those that lose a column."""
    return tuple(
        Lost(shift.before.table_key, state.entries[shift.before.table_key].location, shift.after is None)
        for shift in changed
        if shift.before is not None and (shift.after is None or shift.drops_columns)
    )
