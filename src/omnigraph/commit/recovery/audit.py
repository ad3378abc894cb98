"""The recovery audit: one row for each interrupted write that recovery finished, undid or discarded."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from omnigraph.base.clock import now_us
from omnigraph.manifest.audit_table import append_audit, read_audit
from omnigraph.storage.places import Root

ROLLED_FORWARD = "RolledForward"
ROLLED_BACK_KIND = "RolledBack"
DISCARDED = "OrphanedBranchDiscarded"
OUTCOME = pa.struct([("table_key", pa.string()), ("from_version", pa.uint64()), ("to_version", pa.uint64())])
SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.string()),
        pa.field("recovery_kind", pa.string(), nullable=False),
        pa.field("recovery_for_actor", pa.string()),
        pa.field("operation_id", pa.string(), nullable=False),
        pa.field("sidecar_writer_kind", pa.string(), nullable=False),
        pa.field("per_table_outcomes", pa.list_(OUTCOME)),
        pa.field("created_at", pa.int64(), nullable=False),
    ]
)


@dataclass(frozen=True)
class TableOutcome:
    table_key: str
    from_version: int
    to_version: int


@dataclass(frozen=True)
class RecoveryRecord:
    """One audit row."""

    recovery_kind: str
    operation_id: str
    sidecar_writer_kind: str
    graph_commit_id: str | None = None
    recovery_for_actor: str | None = None
    per_table_outcomes: tuple[TableOutcome, ...] = ()
    created_at: int = 0


def record(root: Root, row: RecoveryRecord) -> None:
    """Write the row unless one for its operation is there."""
    if any(r.operation_id == row.operation_id for r in recorded(root)):
        return
    outcomes = [
        {"table_key": o.table_key, "from_version": o.from_version, "to_version": o.to_version}
        for o in row.per_table_outcomes
    ]
    values = {
        "graph_commit_id": row.graph_commit_id,
        "recovery_kind": row.recovery_kind,
        "recovery_for_actor": row.recovery_for_actor,
        "operation_id": row.operation_id,
        "sidecar_writer_kind": row.sidecar_writer_kind,
        "per_table_outcomes": outcomes,
        "created_at": row.created_at or now_us(),
    }
    append_audit(root, pa.Table.from_pylist([values], schema=SCHEMA))


def recorded(root: Root) -> list[RecoveryRecord]:
    """Every audit row, newest first."""
    rows = [
        RecoveryRecord(
            r["recovery_kind"],
            r["operation_id"],
            r["sidecar_writer_kind"],
            r["graph_commit_id"],
            r["recovery_for_actor"],
            tuple(TableOutcome(**o) for o in r["per_table_outcomes"] or ()),
            r["created_at"],
        )
        for r in read_audit(root)
    ]
    return sorted(rows, key=lambda r: r.created_at, reverse=True)
