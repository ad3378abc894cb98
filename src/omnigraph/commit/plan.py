"""A write as data: what it will do to which table, what it relied on, and what its commit will say."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import orjson

from omnigraph.base.errors import BadRequest, InternalError
from omnigraph.catalog.contract import AcceptedSchema
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.rows import Changes, CommitIntent, Pin, Registration, RowEffect, Tombstone
from omnigraph.manifest.snapshot import Entries
from omnigraph.storage.stage import IndexSpec, StagedWrite
from omnigraph.storage.tables import TableRef

TEXT_BYTES_MAX = 64 * 1024


class WriterKind(Enum):
    """Who wrote a sidecar; decides how strictly its landing is matched."""

    MUTATION = "Mutation"
    LOAD = "Load"
    SCHEMA_APPLY = "SchemaApply"
    BRANCH_MERGE = "BranchMerge"
    ENSURE_INDICES = "EnsureIndices"
    OPTIMIZE = "Optimize"
    SCHEMA_CATCH_UP = "SchemaCatchUp"

    @property
    def is_loose(self) -> bool:
        return self in (WriterKind.SCHEMA_APPLY, WriterKind.ENSURE_INDICES, WriterKind.OPTIMIZE)

    @property
    def preserves_content(self) -> bool:
        return self in (WriterKind.ENSURE_INDICES, WriterKind.OPTIMIZE)


@dataclass(frozen=True)
class Writer:
    """A writer's three names: in failpoints, in sidecars, in commits."""

    name: str
    sidecar: WriterKind
    commit_kind: str


MUTATION = Writer("mutation", WriterKind.MUTATION, "mutation")
LOAD = Writer("load", WriterKind.LOAD, "load")
SCHEMA_APPLY = Writer("schema_apply", WriterKind.SCHEMA_APPLY, "schema_apply")
BRANCH_MERGE = Writer("branch_merge", WriterKind.BRANCH_MERGE, "merge")
ENSURE_INDICES = Writer("ensure_indices", WriterKind.ENSURE_INDICES, "ensure_indices")
OPTIMIZE = Writer("optimize", WriterKind.OPTIMIZE, "optimize")
REVERT = Writer("revert", WriterKind.BRANCH_MERGE, "revert")
# Says `schema_apply`, for it gives a branch the columns of one; it never sets a schema.
SCHEMA_CATCH_UP = Writer("schema_catch_up", WriterKind.SCHEMA_CATCH_UP, "schema_apply")
RESET = Writer("reset", WriterKind.BRANCH_MERGE, "reset")


@dataclass(frozen=True)
class DeferredIndex:
    """An index build that can be staged only after the step before it has landed."""

    specs: tuple[IndexSpec, ...]
    versions: int = 1


Step = StagedWrite | DeferredIndex


@dataclass(frozen=True)
class Effect:
    """What one table goes through. `row_count` holds afterwards."""

    table_key: str
    ref: TableRef
    expected_version: int
    steps: tuple[Step, ...]
    row_count: int
    counts: RowEffect = RowEffect()

    @property
    def post_commit_pin(self) -> int:
        return self.expected_version + sum(s.versions for s in self.steps)

    @property
    def pin(self) -> Pin:
        return Pin(self.table_key, self.ref.location, self.ref.branch, self.post_commit_pin, self.row_count)


def effect_of(staged: StagedWrite, *later: DeferredIndex) -> Effect:
    """The effect of one staged write, and of index builds that follow it."""
    counts = RowEffect(staged.inserts, staged.updates, staged.deletes)
    return Effect(staged.stamp.table_key, staged.ref, staged.read_version, (staged, *later), staged.rows_after, counts)


@dataclass(frozen=True)
class Adoption:
    """A version that another branch made of a table, shown by this one too: nothing is written, no table moves."""

    pin: Pin
    counts: RowEffect = RowEffect()


@dataclass(frozen=True)
class WritePlan:
    """Everything a commit needs. `relied_on` are all tables read or written while preparing, as they were shown then;
    one at version 0 was not there."""

    operation_id: str
    graph_commit_id: str
    writer: Writer
    branch: str | None
    branch_incarnation: str
    effects: tuple[Effect, ...] = ()
    relied_on: Entries = field(default_factory=dict)
    registrations: tuple[Registration, ...] = ()
    tombstones: tuple[Tombstone, ...] = ()
    actor_id: str | None = None
    message: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    merged_parent_commit_id: str | None = None
    if_commit: str | None = None
    adopted: tuple[Adoption, ...] = ()
    schema: AcceptedSchema | None = None
    """The schema the commit puts in force."""
    known_tables: frozenset[str] | None = None
    """The tables of the schema the write was prepared with; None when it does not matter that there are others."""

    def __post_init__(self) -> None:
        unsaid = {pin.table_key for pin in self.changes.pins} - self.relied_on.keys()
        if unsaid:
            raise InternalError(f"a write to {', '.join(sorted(unsaid))} does not say what it was prepared on")

    @property
    def ordered_effects(self) -> tuple[Effect, ...]:
        return tuple(sorted(self.effects, key=lambda e: e.table_key))

    @property
    def changes(self) -> Changes:
        pins = (*(e.pin for e in self.ordered_effects), *(a.pin for a in self.adopted))
        return Changes(pins, self.registrations, self.tombstones)

    @property
    def counts(self) -> dict[str, RowEffect]:
        """How many rows of each table readers see changed."""
        return {e.table_key: e.counts for e in self.effects} | {a.pin.table_key: a.counts for a in self.adopted}

    def intent(self, lock_token: int | None) -> CommitIntent:
        return CommitIntent(
            self.graph_commit_id,
            self.operation_id,
            self.writer.commit_kind,
            self.actor_id,
            self.merged_parent_commit_id,
            self.message,
            self.counts,
            self.metadata,
            lock_token,
        )


@dataclass(frozen=True)
class Receipt:
    """The answer to a write that is committed."""

    operation_id: str
    commit: GraphCommit

    @property
    def graph_commit_id(self) -> str:
        return self.commit.graph_commit_id

    @property
    def graph_version(self) -> int:
        return self.commit.manifest_version


def check_annotations(actor: str | None, message: str | None, metadata: Mapping[str, Any]) -> None:
    """Refuse what a commit may not carry, or could not be stored with one."""
    if actor is not None and (not actor.strip() or actor.startswith("omnigraph:")):
        raise BadRequest(f"'{actor}' cannot be an actor", "Names that start with 'omnigraph:' are reserved.")
    if actor is not None:
        _encoded(actor, "actor")
    if message is not None and len(_encoded(message, "commit message")) > TEXT_BYTES_MAX:
        raise BadRequest("the commit message is longer than 64 KiB")
    if len(_encoded(dict(metadata), "commit metadata")) > TEXT_BYTES_MAX:
        raise BadRequest("the commit metadata is larger than 64 KiB")
    if "omnigraph" in metadata:
        raise BadRequest("the metadata member 'omnigraph' is reserved")


def _encoded(value: str | dict[str, Any], what: str) -> bytes:
    """As it is stored. An argument of a command line may hold bytes that are no text in any encoding."""
    try:
        return value.encode() if isinstance(value, str) else orjson.dumps(value)
    except UnicodeEncodeError:
        raise BadRequest(f"the {what} is not valid Unicode text", "Nothing was written. Give it as UTF-8.") from None
    except orjson.JSONEncodeError as error:
        hint = "Nothing was written. It may hold texts, numbers, true, false, null, lists, and objects of them."
        raise BadRequest(f"the {what} cannot be stored as JSON: {error}", hint) from None
