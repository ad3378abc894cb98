"""From a combination to a commit: staged on the target's own tables, one operation for each, published once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from omnigraph.base.errors import Conflict, Reclaimed
from omnigraph.base.ids import new_ulid
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import Adoption, Receipt, WritePlan, Writer
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.staging import StagingBeat, StagingPin, staging_heartbeat
from omnigraph.engine.merge.combine import Combined
from omnigraph.engine.merge.history import refuse_schema_apply
from omnigraph.engine.view import View
from omnigraph.engine.write.bench import Bench
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.changeset import ChangeSet
from omnigraph.engine.write.intake import Progress
from omnigraph.engine.write.planning import plan_changeset
from omnigraph.engine.write.retry import told_if_deleted, writable
from omnigraph.manifest.rows import Pin, Registration
from omnigraph.manifest.store import branch_label
from omnigraph.storage.refs import read_branch
from omnigraph.storage.tables import has_version

# As many rows take long enough to stage that cleanup has to be told of them.
_BULK_ROWS = 200_000


@dataclass(frozen=True)
class Said:
    """What the commit will say: `ours` are its members of `metadata.omnigraph`."""

    writer: Writer
    notes: Annotations
    ours: Mapping[str, Any]
    merged_parent: str | None = None


def commit_combined(
    ctx: CommitContext,
    view: View,
    made: Combined,
    said: Said,
    bench: Bench,
    progress: Progress,
    beat: StagingBeat | None = None,
) -> Receipt:
    """Write the changes; without any, one commit that only records that the histories met.

    `beat` is the sign of life that the merge gives already, if it does; its operation is that of the commit.
    """
    operation_id = new_ulid() if beat is None else beat.operation_id
    adopted = _adoptions(ctx, view.branch, made) if said.merged_parent is not None else ()
    shown = {adoption.pin.table_key for adoption in adopted}
    written = ChangeSet({key: change for key, change in made.changes.tables.items() if key not in shown})
    progress("stage", 0)
    with (
        _sign_of_life(ctx, operation_id, view, made, bool(adopted), said.notes.actor, beat) as held,
        told_if_deleted(ctx, view),
    ):
        ready = writable(ctx, view, written.tables, said.notes.actor)
        if held is not None:
            held.pin([*_pins(ready), *(_pin(adoption.pin) for adoption in adopted)])
        plan = plan_changeset(ready, written, made.relied_on, said.writer, said.notes, bench, operation_id)
        plan = replace(
            plan,
            metadata={**plan.metadata, "omnigraph": dict(said.ours)},
            merged_parent_commit_id=said.merged_parent,
            adopted=adopted,
            registrations=_unknown(view, adopted),
        )
        refuse_schema_apply(ctx.manifest)
        progress("commit", 0)
        return _commit(ctx, plan)


def _unknown(view: View, adopted: Iterable[Adoption]) -> tuple[Registration, ...]:
    """Types that the target has not had so far."""
    pins = [adoption.pin for adoption in adopted if not view.entry(adoption.pin.table_key).table_version]
    return tuple(Registration(pin.table_key, pin.location) for pin in pins)


def _commit(ctx: CommitContext, plan: WritePlan) -> Receipt:
    if not plan.adopted:
        return commit_plan(ctx, plan)
    with ctx.locks.hold(plan.branch) as held:
        for adoption in plan.adopted:
            _refuse_collected(ctx, adoption.pin)
            if _has_fork(ctx, plan.branch, adoption.pin.location):
                # It was made for the version shown so far, and would be of no use on the one taken over.
                raise Conflict(
                    f"another write to {adoption.pin.table_key} has begun on branch '{branch_label(plan.branch)}'",
                    "Nothing was written. Merge again.",
                )
        return commit_plan(ctx, plan, held)


def _adoptions(ctx: CommitContext, branch: str | None, made: Combined) -> tuple[Adoption, ...]:
    """The tables that the target takes over by their version alone."""
    counts = {table.table_key: table.counts for table in made.tables}
    return tuple(
        Adoption(Pin(key, e.location, e.table_branch, e.table_version, e.row_count), counts[key])
        for key, e in sorted(made.adoptable.items())
        if not _has_fork(ctx, branch, e.location)
    )


def _has_fork(ctx: CommitContext, branch: str | None, location: str) -> bool:
    """Whether somebody has begun to write to the table on the branch, and perhaps died before it was recorded."""
    return branch is not None and read_branch(ctx.ref(location, None), branch) is not None


@contextmanager
def _sign_of_life(
    ctx: CommitContext,
    operation_id: str,
    view: View,
    made: Combined,
    adopts: bool,
    actor: str | None,
    beat: StagingBeat | None,
) -> Iterator[StagingBeat | None]:
    """Cleanup must neither take the files of a long write nor a version that is about to be shown."""
    rows = sum(change.row_count for change in made.changes.tables.values())
    if beat is not None or (not adopts and rows < _BULK_ROWS):
        yield beat
        return
    with staging_heartbeat(ctx, operation_id, view.branch, actor) as fresh:
        yield fresh


def _pins(view: View) -> list[StagingPin]:
    read = [StagingPin(k, e.location, e.table_branch, e.table_version) for k, e in view.entries.items()]
    return [*read, *(StagingPin(k, t.ref.location, t.ref.branch, t.version) for k, t in view.forks.items())]


def _pin(pin: Pin) -> StagingPin:
    return StagingPin(pin.table_key, pin.location, pin.table_branch, pin.version)


def _refuse_collected(ctx: CommitContext, pin: Pin) -> None:
    if not has_version(ctx.ref(pin.location, pin.table_branch), pin.version):
        raise Reclaimed(pin.table_key, pin.version)
