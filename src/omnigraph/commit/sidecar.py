"""Sidecars: the durable intent of a write, from before the first table moves until the manifest knows the outcome.

Holds:
  1. A sidecar is written once, whole, before any table of its write moves.
  2. It is deleted only when the manifest holds a commit stamped with its operation id, or its branch is gone.
  3. A file that cannot be understood is kept and named.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import orjson

from omnigraph.base.clock import iso_us, now_us
from omnigraph.base.errors import Conflict
from omnigraph.commit.plan import WritePlan, WriterKind
from omnigraph.manifest import layout
from omnigraph.manifest.rows import Pin, Registration, RowEffect, Tombstone, counts_from_json, counts_json
from omnigraph.storage.objects import ObjectStore
from omnigraph.storage.stage import StagedWrite

SIDECAR_SCHEMA_VERSION = 1
_KINDS = {str: "text", int: "whole number", list: "list", dict: "object"}


class BadSidecar(Conflict):
    """A sidecar that this version cannot read; it is kept for the operator."""

    code: ClassVar[str] = "bad_sidecar"


@dataclass(frozen=True)
class SidecarTable:
    table_key: str
    table_path: str
    table_branch: str | None
    expected_version: int
    post_commit_pin: int
    transactions: tuple[str, ...] = ()
    row_count: int | None = None


@dataclass(frozen=True)
class Sidecar:
    operation_id: str
    started_at: str
    branch: str | None
    actor_id: str | None
    writer_kind: WriterKind
    tables: tuple[SidecarTable, ...]
    graph_commit_id: str | None = None
    parent_commit_id: str | None = None
    branch_incarnation: str | None = None
    merge_source_commit_id: str | None = None
    lock_token: int | None = None
    registrations: tuple[Registration, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    message: str | None = None
    counts: Mapping[str, RowEffect] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    adopted: tuple[Pin, ...] = ()
    """Versions of other branches that the commit shows; a roll-back has nothing to do with them."""

    @property
    def carries_schema(self) -> bool:
        """Whether schema files may be staged for it. A branch that catches up with the schema stages none."""
        return self.writer_kind is WriterKind.SCHEMA_APPLY and self.branch is None

    @property
    def key(self) -> str:
        return layout.sidecar_key(self.operation_id)


def sidecar_of(plan: WritePlan, parent: str | None, lock_token: int) -> Sidecar:
    tables = tuple(
        SidecarTable(
            e.table_key,
            e.ref.location,
            e.ref.branch,
            e.expected_version,
            e.post_commit_pin,
            tuple(s.uuid for s in e.steps if isinstance(s, StagedWrite) and s.uuid),
            e.row_count,
        )
        for e in plan.ordered_effects
    )
    return Sidecar(
        operation_id=plan.operation_id,
        started_at=iso_us(now_us()),
        branch=plan.branch,
        actor_id=plan.actor_id,
        writer_kind=plan.writer.sidecar,
        tables=tables,
        graph_commit_id=plan.graph_commit_id,
        parent_commit_id=parent,
        branch_incarnation=plan.branch_incarnation,
        merge_source_commit_id=plan.merged_parent_commit_id,
        lock_token=lock_token,
        registrations=plan.registrations,
        tombstones=plan.tombstones,
        message=plan.message,
        counts=plan.counts,
        metadata=plan.metadata,
        adopted=tuple(a.pin for a in plan.adopted),
    )


def encode(sidecar: Sidecar) -> bytes:
    tables = [
        {
            "table_key": t.table_key,
            "table_path": t.table_path,
            "table_branch": t.table_branch,
            "expected_version": t.expected_version,
            "post_commit_pin": t.post_commit_pin,
            "transactions": list(t.transactions),
            "row_count": t.row_count,
        }
        for t in sidecar.tables
    ]
    members: dict[str, Any] = {
        "schema_version": SIDECAR_SCHEMA_VERSION,
        "operation_id": sidecar.operation_id,
        "started_at": sidecar.started_at,
        "branch": sidecar.branch,
        "actor_id": sidecar.actor_id,
        "writer_kind": sidecar.writer_kind.value,
        "graph_commit_id": sidecar.graph_commit_id,
        "parent_commit_id": sidecar.parent_commit_id,
        "branch_incarnation": sidecar.branch_incarnation,
        "merge_source_commit_id": sidecar.merge_source_commit_id,
        "lock_token": sidecar.lock_token,
        "tables": tables,
        "additional_registrations": [
            {"table_key": r.table_key, "table_path": r.location, "table_branch": None} for r in sidecar.registrations
        ],
        "tombstones": [
            {"table_key": t.table_key, "location": t.location, "tombstone_version": t.version}
            for t in sidecar.tombstones
        ],
        "message": sidecar.message,
        "counts": counts_json(sidecar.counts),
        "metadata": dict(sidecar.metadata),
    }
    if sidecar.adopted:
        members["adopted"] = [
            {
                "table_key": p.table_key,
                "table_path": p.location,
                "table_branch": p.table_branch,
                "table_version": p.version,
                "row_count": p.row_count,
            }
            for p in sidecar.adopted
        ]
    return orjson.dumps(members)


def decode(key: str, data: bytes) -> Sidecar:
    """The sidecar in `data`; one that cannot be read is an error naming its file."""
    try:
        members = orjson.loads(data)
    except ValueError as error:
        raise BadSidecar(
            f"{key} is not valid JSON", "Look at the file; move it away if it is not a sidecar."
        ) from error
    if not isinstance(members, dict):
        raise BadSidecar(f"{key} is not valid JSON: a sidecar is an object", "Look at the file.")
    version = members.get("schema_version")
    if version != SIDECAR_SCHEMA_VERSION:
        raise BadSidecar(
            f"{key} has schema_version {version}, this omnigraph knows {SIDECAR_SCHEMA_VERSION}",
            "Upgrade omnigraph, then open the graph again.",
        )
    try:
        sidecar = _decoded(members)
    except (KeyError, TypeError, ValueError) as error:
        raise BadSidecar(f"{key} lacks or misspells {error}", "Look at the file; it is kept as it is.") from error
    if sidecar.key != key:
        # Settling deletes the key that the operation id spells; that must be this file and no other.
        raise BadSidecar(f"{key} speaks of operation {sidecar.operation_id!r}", "Give the file back its own name.")
    return sidecar


def _decoded(members: dict[str, Any]) -> Sidecar:
    tables = tuple(
        SidecarTable(
            _text(t, "table_key"),
            _text(t, "table_path"),
            _text_or_none(t, "table_branch"),
            _whole(t, "expected_version"),
            _whole(t, "post_commit_pin"),
            tuple(_entry(uuid, str, "transactions") for uuid in _several(t, "transactions")),
            None if t.get("row_count") is None else _whole(t, "row_count"),
        )
        for t in _objects(members, "tables", required=True)
    )
    return Sidecar(
        operation_id=_text(members, "operation_id"),
        started_at=_text_or_none(members, "started_at") or "",
        branch=_text_or_none(members, "branch"),
        actor_id=_text_or_none(members, "actor_id"),
        writer_kind=WriterKind(_text(members, "writer_kind")),
        tables=tables,
        graph_commit_id=_text_or_none(members, "graph_commit_id"),
        parent_commit_id=_text_or_none(members, "parent_commit_id"),
        branch_incarnation=_text_or_none(members, "branch_incarnation"),
        merge_source_commit_id=_text_or_none(members, "merge_source_commit_id"),
        lock_token=None if members.get("lock_token") is None else _whole(members, "lock_token"),
        registrations=tuple(
            Registration(_text(r, "table_key"), _text(r, "table_path"))
            for r in _objects(members, "additional_registrations")
        ),
        tombstones=tuple(
            Tombstone(_text(t, "table_key"), _text(t, "location"), _whole(t, "tombstone_version"))
            for t in _objects(members, "tombstones")
        ),
        message=_text_or_none(members, "message"),
        counts=counts_from_json(members.get("counts")),
        metadata=_entry(members.get("metadata") or {}, dict, "metadata"),
        adopted=tuple(
            Pin(
                _text(p, "table_key"),
                _text(p, "table_path"),
                _text_or_none(p, "table_branch"),
                _whole(p, "table_version"),
                _whole(p, "row_count"),
            )
            for p in _objects(members, "adopted")
        ),
    )


def _text(members: dict[str, Any], name: str) -> str:
    return str(_entry(members[name], str, name))


def _text_or_none(members: dict[str, Any], name: str) -> str | None:
    return None if members.get(name) is None else _text(members, name)


def _whole(members: dict[str, Any], name: str) -> int:
    number = int(_entry(members[name], int, name))
    if number < 0:
        raise ValueError(f"{name!r}: {number} is below zero")
    return number


def _several(members: dict[str, Any], name: str) -> list[Any]:
    return list(_entry(members.get(name) or [], list, name))


def _objects(members: dict[str, Any], name: str, required: bool = False) -> list[dict[str, Any]]:
    found = _entry(members[name], list, name) if required else _several(members, name)
    return [_entry(one, dict, name) for one in found]


def _entry(value: Any, kind: type, name: str) -> Any:
    """`value`, if it is of exactly this JSON kind; a truth value is no number."""
    if type(value) is not kind:
        raise TypeError(f"{name!r}: {value!r} is no {_KINDS[kind]}")
    return value


def pending_sidecars(objects: ObjectStore) -> list[Sidecar]:
    """Every sidecar on disk, oldest first."""
    found, unreadable = readable_sidecars(objects)
    if unreadable:
        raise unreadable[0]
    return found


def readable_sidecars(objects: ObjectStore) -> tuple[list[Sidecar], list[BadSidecar]]:
    """For those who only look: every sidecar that can be read, and for each other one why it cannot."""
    found, unreadable = [], []
    for key in objects.list(layout.RECOVERY_DIR):
        if key.endswith(".json"):
            stored = objects.get(key)
            if stored is not None:
                try:
                    found.append(decode(key, stored.data))
                except BadSidecar as error:
                    unreadable.append(error)
    return found, unreadable
