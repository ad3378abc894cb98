"""The JSON shape of commits, recoveries, sidecars, loads and locks, the same wherever they are printed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from omnigraph.base.clock import now_us
from omnigraph.base.errors import BadRequest
from omnigraph.base.moments import time_us

if TYPE_CHECKING:
    from omnigraph.commit.locks import Holder
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.commit.sidecar import BadSidecar, Sidecar
    from omnigraph.commit.staging import Heartbeat
    from omnigraph.manifest.lineage import GraphCommit
    from omnigraph.manifest.tags import Tag


def commit_body(commit: GraphCommit) -> dict[str, Any]:
    counts = {
        table_key: {"inserts": effect.inserts, "updates": effect.updates, "deletes": effect.deletes}
        for table_key, effect in commit.counts.items()
    }
    return {
        "graph_commit_id": commit.graph_commit_id,
        "manifest_branch": commit.manifest_branch,
        "manifest_version": commit.manifest_version,
        "parent_commit_id": commit.parent_commit_id,
        "merged_parent_commit_id": commit.merged_parent_commit_id,
        "actor_id": commit.actor_id,
        "created_at": commit.created_at,
        "kind": commit.kind,
        "message": commit.message,
        "counts": counts,
        "metadata": dict(commit.metadata),
        "operation_id": commit.operation_id,
    }


def tag_body(tag: Tag) -> dict[str, Any]:
    return {
        "name": tag.name,
        "graph_commit_id": tag.graph_commit_id,
        "branch": tag.branch,
        "actor_id": tag.actor_id,
        "message": tag.message,
        "created_at": tag.created_at,
    }


def recovery_body(record: RecoveryRecord) -> dict[str, Any]:
    outcomes = [
        {"table_key": o.table_key, "from_version": o.from_version, "to_version": o.to_version}
        for o in record.per_table_outcomes
    ]
    return {
        "graph_commit_id": record.graph_commit_id,
        "recovery_kind": record.recovery_kind,
        "recovery_for_actor": record.recovery_for_actor,
        "operation_id": record.operation_id,
        "sidecar_writer_kind": record.sidecar_writer_kind,
        "per_table_outcomes": outcomes,
        "created_at": record.created_at,
    }


def sidecar_body(sidecar: Sidecar) -> dict[str, Any]:
    return {
        "path": sidecar.key,
        "operation_id": sidecar.operation_id,
        "writer_kind": sidecar.writer_kind.value,
        "branch": sidecar.branch or "main",
        "actor_id": sidecar.actor_id,
        "started_at": sidecar.started_at,
        "age_s": age_s(sidecar.started_at),
        "tables": [t.table_key for t in sidecar.tables],
    }


def lock_body(holder: Holder) -> dict[str, Any]:
    return {
        "branch": holder.branch,
        "held": holder.held,
        "holder": holder.holder,
        "token": holder.token,
        "since": holder.since,
        "age_s": age_s(holder.since),
        "renewed_at": holder.renewed_at,
        "looks": holder.looks,
    }


def load_body(heartbeat: Heartbeat) -> dict[str, Any]:
    told = heartbeat.to_json()
    return {
        **{name: told[name] for name in ("operation_id", "branch", "actor", "host", "pid", "started_at", "renewed_at")},
        "branch": heartbeat.branch or "main",
        "age_s": age_s(told["started_at"]),
        "renewed_age_s": age_s(told["renewed_at"]),
        "alive": heartbeat.is_alive(now_us()),
        "pins": told["pins"],
    }


def unreadable_body(error: BadSidecar) -> dict[str, Any]:
    return {"error": error.describe(), "hint": error.hint}


def age_s(started_at: str) -> int | None:
    """Whole seconds since a recorded time; None when it is not one."""
    try:
        return max(0, (now_us() - time_us(started_at)) // 1_000_000)
    except BadRequest:
        return None
