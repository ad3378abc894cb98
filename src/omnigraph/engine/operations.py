"""What became of an operation, answered from storage on any handle."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.base.errors import BadRequest
from omnigraph.base.ids import is_ulid
from omnigraph.commit.context import CommitContext
from omnigraph.commit.recovery.audit import DISCARDED, RecoveryRecord, recorded
from omnigraph.commit.sidecar import BadSidecar, Sidecar, readable_sidecars
from omnigraph.manifest import layout
from omnigraph.manifest.lineage import GraphCommit


@dataclass(frozen=True)
class OperationOutcome:
    """`status` is committed, pending, rolled_back or refused."""

    operation_id: str
    status: str
    commit: GraphCommit | None = None


@dataclass(frozen=True)
class Recoveries:
    """Sidecars that wait for recovery, and what recovery did before, newest first."""

    pending: tuple[Sidecar, ...]
    records: tuple[RecoveryRecord, ...]
    unreadable: tuple[BadSidecar, ...] = ()


def outcome_of(ctx: CommitContext, operation_id: str) -> OperationOutcome:
    if not is_ulid(operation_id):
        raise BadRequest(f"'{operation_id}' is not an operation id", "It is printed with the result of a write.")
    # The sidecar is looked at first: it goes only after the manifest knows, so the manifest read then is decisive.
    waits = ctx.objects.exists(layout.sidecar_key(operation_id))
    for branch in (None, *sorted(ctx.manifest.branches())):
        for commit in reversed(ctx.manifest.state(branch).commits()):
            if commit.operation_id == operation_id:
                status = "rolled_back" if commit.is_roll_back else "committed"
                return OperationOutcome(operation_id, status, commit)
    if waits:
        return OperationOutcome(operation_id, "pending")
    if any(r.operation_id == operation_id and r.recovery_kind == DISCARDED for r in recorded(ctx.root)):
        return OperationOutcome(operation_id, "rolled_back")
    return OperationOutcome(operation_id, "refused")


def recoveries(ctx: CommitContext) -> Recoveries:
    pending, unreadable = readable_sidecars(ctx.objects)
    return Recoveries(tuple(pending), tuple(recorded(ctx.root)), tuple(unreadable))
