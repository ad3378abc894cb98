"""Manifest rows: their Arrow shape, their keys, and the stamp every row of one commit carries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson
import pyarrow as pa

TABLE = "table"
TABLE_VERSION = "table_version"
TABLE_TOMBSTONE = "table_tombstone"
GRAPH_COMMIT = "graph_commit"

INTERNAL_MANIFEST_SCHEMA_VERSION = 4
STAMP_KEY = "omnigraph:internal_schema_version"
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}
CREATED_AT_VERSION = "_row_created_at_version"

FIELDS = (
    pa.field("object_id", pa.string(), nullable=False, metadata=PRIMARY_KEY),
    pa.field("object_type", pa.string()),
    pa.field("location", pa.string()),
    pa.field("metadata", pa.string()),
    pa.field("base_objects", pa.list_(pa.string())),
    pa.field("table_key", pa.string()),
    pa.field("table_version", pa.uint64()),
    pa.field("table_branch", pa.string()),
    pa.field("row_count", pa.uint64()),
)
SCHEMA = pa.schema(FIELDS, metadata={STAMP_KEY: str(INTERNAL_MANIFEST_SCHEMA_VERSION)})
READ_COLUMNS = (*(f.name for f in FIELDS if f.name != "base_objects"), CREATED_AT_VERSION)


@dataclass(frozen=True)
class Row:
    """One manifest row; `created_at_version` is the manifest version that brought it."""

    object_id: str
    object_type: str
    location: str | None = None
    metadata: str = "{}"
    table_key: str | None = None
    table_version: int | None = None
    table_branch: str | None = None
    row_count: int | None = None
    created_at_version: int = 0


@dataclass(frozen=True)
class RowEffect:
    """How many rows of one table a commit changed."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    @property
    def any(self) -> bool:
        return bool(self.inserts or self.updates or self.deletes)


@dataclass(frozen=True)
class CommitIntent:
    """What a commit will say of itself; minted once per operation and kept across attempts."""

    graph_commit_id: str
    operation_id: str
    kind: str
    actor_id: str | None = None
    merged_parent_commit_id: str | None = None
    message: str | None = None
    counts: Mapping[str, RowEffect] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    lock_token: int | None = None


@dataclass(frozen=True)
class Registration:
    table_key: str
    location: str


@dataclass(frozen=True)
class Pin:
    """A table version made visible, with its row count."""

    table_key: str
    location: str
    table_branch: str | None
    version: int
    row_count: int


@dataclass(frozen=True)
class Tombstone:
    table_key: str
    location: str
    version: int


@dataclass(frozen=True)
class Changes:
    """What a commit changes in the manifest beside its own row."""

    pins: tuple[Pin, ...] = ()
    registrations: tuple[Registration, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()


def commit_key(parent: str | None) -> str:
    return f"graph_commit:after:{parent or 'genesis'}"


def build_rows(changes: Changes, intent: CommitIntent, parent: str | None, created_at: int) -> list[Row]:
    """The rows of one publish, all with the same stamp."""
    stamp = stamp_of(intent, parent, created_at)
    text = orjson.dumps(stamp).decode()
    commit_text = orjson.dumps({**stamp, **_commit_members(intent)}).decode()
    rows = [
        Row(f"table:{r.table_key}@{r.location}", TABLE, r.location, text, r.table_key) for r in changes.registrations
    ]
    rows += [
        Row(
            f"table_version:{p.table_key}@{p.location}@{p.table_branch or 'main'}@{p.version:020d}",
            TABLE_VERSION,
            p.location,
            text,
            p.table_key,
            p.version,
            p.table_branch,
            p.row_count,
        )
        for p in changes.pins
    ]
    rows += [
        Row(
            f"table_tombstone:{t.table_key}@{t.location}@{t.version:020d}",
            TABLE_TOMBSTONE,
            t.location,
            text,
            t.table_key,
            t.version,
        )
        for t in changes.tombstones
    ]
    rows.append(Row(commit_key(parent), GRAPH_COMMIT, metadata=commit_text))
    return rows


def stamp_of(intent: CommitIntent, parent: str | None, created_at: int) -> dict[str, Any]:
    members = {
        "graph_commit_id": intent.graph_commit_id,
        "parent_commit_id": parent,
        "merged_parent_commit_id": intent.merged_parent_commit_id,
        "actor_id": intent.actor_id,
        "created_at": created_at,
        "operation_id": intent.operation_id,
        "lock_token": intent.lock_token,
    }
    return {k: v for k, v in members.items() if v is not None}


def counts_json(counts: Mapping[str, RowEffect]) -> dict[str, dict[str, int]]:
    return {
        key: {"inserts": c.inserts, "updates": c.updates, "deletes": c.deletes}
        for key, c in sorted(counts.items())
        if c.any
    }


def counts_from_json(value: Any) -> dict[str, RowEffect]:
    if not isinstance(value, dict):
        return {}
    return {
        str(key): RowEffect(int(c.get("inserts", 0)), int(c.get("updates", 0)), int(c.get("deletes", 0)))
        for key, c in value.items()
        if isinstance(c, dict)
    }


def _commit_members(intent: CommitIntent) -> dict[str, Any]:
    members: dict[str, Any] = {"kind": intent.kind}
    if intent.message is not None:
        members["message"] = intent.message
    if counts := counts_json(intent.counts):
        members["counts"] = counts
    if intent.metadata:
        members["metadata"] = dict(intent.metadata)
    return members


def to_arrow(rows: Sequence[Row]) -> pa.Table:
    return pa.table(
        {
            "object_id": [r.object_id for r in rows],
            "object_type": [r.object_type for r in rows],
            "location": [r.location for r in rows],
            "metadata": [r.metadata for r in rows],
            "base_objects": pa.nulls(len(rows), pa.list_(pa.string())),
            "table_key": [r.table_key for r in rows],
            "table_version": [r.table_version for r in rows],
            "table_branch": [r.table_branch for r in rows],
            "row_count": [r.row_count for r in rows],
        },
        schema=SCHEMA,
    )


def from_arrow(table: pa.Table) -> list[Row]:
    """Rows in the order they were published."""
    values = zip(*(table.column(name).to_pylist() for name in READ_COLUMNS), strict=True)
    rows = [Row(v[0], v[1], v[2], v[3] or "{}", v[4], v[5], v[6], v[7], v[8]) for v in values]
    rows.sort(key=lambda r: r.created_at_version)
    return rows
