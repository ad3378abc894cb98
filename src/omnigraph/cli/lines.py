"""Sidecars, recoveries, loads and locks as one line of text each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from omnigraph.base.clock import iso_us
from omnigraph.cli.bodies import age_s, load_body
from omnigraph.cli.output import one_line
from omnigraph.cli.times import age_text

if TYPE_CHECKING:
    from omnigraph.commit.locks import Holder
    from omnigraph.commit.recovery.audit import RecoveryRecord
    from omnigraph.commit.sidecar import BadSidecar, Sidecar
    from omnigraph.commit.staging import Heartbeat

_LOOKS: Mapping[str, str] = {
    "alive": "looks alive",
    "gone": "its process is gone",
    "stale": "not renewed for a lifetime",
    "unknown": "nothing tells whether it lives",
}


def lock_text(holder: Holder | None) -> str:
    """`free`, or who holds a lock, since when, and whether that one looks alive."""
    if holder is None or not holder.held:
        return "free"
    age, renewed = age_s(holder.since), age_s(holder.renewed_at)
    words = [f"held by {holder.holder}", f"token {holder.token}"]
    words += [f"for {age_text(age)}"] if age is not None else []
    words += [f"renewed {age_text(renewed)} ago"] if renewed is not None else []
    return one_line(", ".join([*words, _LOOKS.get(holder.looks, holder.looks)]))


def sidecar_line(sidecar: Sidecar) -> str:
    age = age_s(sidecar.started_at)
    words = [
        f"pending {sidecar.operation_id}",
        f"writer={sidecar.writer_kind.value}",
        f"branch={sidecar.branch or 'main'}",
        f"actor={sidecar.actor_id or '-'}",
        f"age={age_text(age) if age is not None else 'unknown'}",
        f"tables={','.join(t.table_key for t in sidecar.tables) or '-'}",
    ]
    return one_line(" ".join(words))


def load_line(heartbeat: Heartbeat) -> str:
    told = load_body(heartbeat)
    if not heartbeat.readable:
        return one_line(f"load {heartbeat.operation_id} its heartbeat cannot be read; omnigraph cleanup")
    words = [
        f"load {heartbeat.operation_id}",
        f"branch={told['branch']}",
        f"actor={heartbeat.actor or '-'}",
        f"process={heartbeat.host}:{heartbeat.pid}",
        f"age={age_text(told['age_s'] or 0)}",
        f"renewed {age_text(told['renewed_age_s'] or 0)} ago",
    ]
    return one_line(" ".join(words) + ("" if told["alive"] else ", looks dead; omnigraph cleanup"))


def unreadable_line(error: BadSidecar) -> str:
    return one_line(f"unreadable {error.describe()}; {error.hint}")


def record_line(record: RecoveryRecord) -> str:
    moved = [f"{o.table_key} v{o.from_version} → v{o.to_version}" for o in record.per_table_outcomes]
    words = [
        f"{record.recovery_kind} {record.operation_id}",
        f"writer={record.sidecar_writer_kind}",
        f"for={record.recovery_for_actor or '-'}",
        f"commit={record.graph_commit_id or '-'}",
        f"at={iso_us(record.created_at)}",
    ]
    return one_line(" ".join(words) + ("  " + ", ".join(moved) if moved else ""))
