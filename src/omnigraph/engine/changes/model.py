"""What a reader is told of changes, and the JSON of it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Literal

import orjson

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.store import branch_label

Op = Literal["insert", "update", "delete"]
KINDS, OPS = ("node", "edge"), ("insert", "update", "delete")


@dataclass(frozen=True)
class ChangeFilter:
    """Which changes are wanted; an empty member means all."""

    kinds: frozenset[str] = frozenset()
    type_names: frozenset[str] = frozenset()
    ops: frozenset[str] = frozenset()

    @staticmethod
    def of(kinds: Iterable[str] = (), type_names: Iterable[str] = (), ops: Iterable[str] = ()) -> ChangeFilter:
        """A filter in its one form: naming all kinds or all ops is the same as naming none."""
        chosen = {"kind": frozenset(kinds), "op": frozenset(ops)}
        for what, allowed in (("kind", KINDS), ("op", OPS)):
            for name in sorted(chosen[what]):
                if name not in allowed:
                    raise BadRequest(f"unknown {what} '{name}'", f"Use {', '.join(allowed)}.")
            if chosen[what] == frozenset(allowed):
                chosen[what] = frozenset()
        return ChangeFilter(chosen["kind"], frozenset(type_names), chosen["op"])

    def refuse_unknown(self, table_keys: Iterable[str]) -> None:
        """A name that no table ever had would be waited for in vain."""
        known = {key.partition(":")[2] for key in table_keys}
        for name in sorted(self.type_names):
            if name not in known:
                raise NotFound(f"unknown type '{name}'", did_you_mean(name, known) or "See omnigraph schema show.")

    def wants_table(self, *table_keys: str | None) -> bool:
        """Whether a table is wanted under one of the names it has or had."""
        split = [key.split(":", 1) for key in table_keys if key is not None]
        kind = not self.kinds or any(k in self.kinds for k, _ in split)
        return kind and (not self.type_names or any(name in self.type_names for _, name in split))

    def wants_op(self, op: Op) -> bool:
        return not self.ops or op in self.ops

    @property
    def digest(self) -> str:
        parts = [sorted(self.kinds), sorted(self.type_names), sorted(self.ops)]
        return sha256(orjson.dumps(parts)).hexdigest()[:32]


@dataclass(frozen=True)
class Image:
    """A node or edge in one state: all its properties, and the ends of an edge."""

    properties: dict[str, Any]
    endpoints: tuple[str, str] | None = None

    def to_json(self) -> dict[str, Any]:
        if self.endpoints is None:
            return {"properties": self.properties}
        src, dst = self.endpoints
        return {"endpoints": {"from": src, "to": dst}, "properties": self.properties}


@dataclass(frozen=True)
class Change:
    """One node or edge that differs. `type_id` outlives a rename and changes when a name is dropped and added again."""

    table_key: str
    type_id: str
    id: str
    before: Image | None
    after: Image | None

    @property
    def kind(self) -> str:
        return self.table_key.partition(":")[0]

    @property
    def type_name(self) -> str:
        return self.table_key.partition(":")[2]

    @property
    def op(self) -> Op:
        if self.before is None:
            return "insert"
        return "delete" if self.after is None else "update"

    @property
    def endpoints(self) -> tuple[str, str] | None:
        """Where an edge runs, or ran before it was deleted."""
        shown = self.after or self.before
        return shown.endpoints if shown is not None else None

    def to_json(self) -> dict[str, Any]:
        """As a member of a block."""
        told: dict[str, Any] = {
            "kind": self.kind,
            "type": {"id": self.type_id, "name": self.type_name},
            "id": self.id,
            "op": self.op,
        }
        return {**told, **images_json(self.before, self.after)}

    def net_json(self) -> dict[str, Any]:
        """As a member of a change set."""
        told: dict[str, Any] = {
            "kind": self.kind,
            "table_key": self.table_key,
            "type_name": self.type_name,
            "id": self.id,
            "op": self.op,
        }
        if self.endpoints is not None:
            told["endpoints"] = {"src": self.endpoints[0], "dst": self.endpoints[1]}
        return told


def images_json(before: Image | None, after: Image | None) -> dict[str, Any]:
    shown = {"before": before, "after": after}
    return {name: image.to_json() for name, image in shown.items() if image is not None}


@dataclass
class Counts:
    """How many entities of one table were inserted, updated and deleted."""

    inserts: int = 0
    updates: int = 0
    deletes: int = 0

    def add(self, op: Op, by: int = 1) -> None:
        match op:
            case "insert":
                self.inserts += by
            case "update":
                self.updates += by
            case "delete":
                self.deletes += by

    def to_json(self) -> dict[str, int]:
        return {"inserts": self.inserts, "updates": self.updates, "deletes": self.deletes}


@dataclass
class ChangeStats:
    """Counts by table key, of tables that changed, sorted."""

    tables: dict[str, Counts] = field(default_factory=dict)

    def add(self, table_key: str, op: Op, by: int = 1) -> None:
        if by:
            self.tables.setdefault(table_key, Counts()).add(op, by)

    @property
    def total(self) -> Counts:
        counts = self.tables.values()
        return Counts(sum(c.inserts for c in counts), sum(c.updates for c in counts), sum(c.deletes for c in counts))

    @property
    def types_affected(self) -> list[str]:
        return sorted({key.partition(":")[2] for key in self.tables})

    def to_json(self) -> dict[str, Any]:
        return {**self.total.to_json(), "types_affected": self.types_affected}

    def tables_json(self) -> list[dict[str, Any]]:
        return [{"table_key": key, **counts.to_json()} for key, counts in sorted(self.tables.items())]


@dataclass(frozen=True)
class ChangeSet:
    """The net difference of two targets, by table key and id. Without `changes` only the counts were asked for."""

    from_version: int
    to_version: int
    branch: str
    changes: Sequence[Change]
    stats: ChangeStats

    def to_json(self) -> dict[str, Any]:
        return {
            "from_version": self.from_version,
            "to_version": self.to_version,
            "branch": self.branch,
            "changes": [change.net_json() for change in self.changes],
            "stats": self.stats.to_json(),
        }


@dataclass(frozen=True)
class Block:
    """The changes of one commit against its first parent, or a part of them."""

    cause: GraphCommit
    changes: Sequence[Change]
    boundary: str | None = None
    next_page_token: str | None = None

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"cause": cause_json(self.cause), "changes": [c.to_json() for c in self.changes]}
        if self.boundary is not None:
            told["boundary"] = self.boundary
        if self.next_page_token is not None:
            told["next_page_token"] = self.next_page_token
        return told


@dataclass(frozen=True)
class FeedPage:
    """What one poll gives: either it ended inside a block, or a cursor says where the next poll starts."""

    blocks: Sequence[Block]
    next_page_token: str | None = None
    cursor: str | None = None
    caught_up: bool = False

    def to_json(self) -> dict[str, Any]:
        blocks = [block.to_json() for block in self.blocks]
        if self.next_page_token is not None:
            return {"blocks": blocks, "next_page_token": self.next_page_token}
        return {"blocks": blocks, "cursor": self.cursor, "caught_up": self.caught_up}


@dataclass(frozen=True)
class Past:
    """One change of an entity. Without a cause: cleanup removed what is older, from `first_unreadable_commit_id` on."""

    cause: GraphCommit | None
    op: Op | None = None
    before: Image | None = None
    after: Image | None = None
    first_unreadable_commit_id: str | None = None

    @property
    def reclaimed(self) -> bool:
        return self.cause is None

    def to_json(self) -> dict[str, Any]:
        if self.cause is None:
            return {"reclaimed": True, "first_unreadable_commit_id": self.first_unreadable_commit_id}
        return {"cause": cause_json(self.cause), "op": self.op, **images_json(self.before, self.after)}


def cause_json(commit: GraphCommit) -> dict[str, Any]:
    return {
        "graph_commit_id": commit.graph_commit_id,
        "parent_commit_id": commit.parent_commit_id,
        "merged_parent_commit_id": commit.merged_parent_commit_id,
        "authored_branch": branch_label(commit.manifest_branch),
        "actor_id": commit.actor_id,
        "authored_at": commit.created_at,
        "kind": commit.kind,
        "message": commit.message,
    }
