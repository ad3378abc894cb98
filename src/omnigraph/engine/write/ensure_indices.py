"""Builds the indexes the schema declares and folds in rows that came since; content is never changed.

Holds at every return:
  1. Nothing to do made no commit; tables the branch only inherits were left alone.
  2. Every declared index that is missing afterwards is in `pending`, with the reason.
  3. No text index knows words that a row no longer has.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from omnigraph.base.ids import new_ulid
from omnigraph.catalog.catalog import DeclaredIndex, TableType, declared_indexes
from omnigraph.commit.context import CommitContext
from omnigraph.commit.plan import ENSURE_INDICES, Effect, WritePlan, check_annotations, effect_of
from omnigraph.engine.view import View
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.retry import Attempt, commit_with_retries
from omnigraph.storage.stage import IndexKind, IndexSpec, Stamp, stage_index
from omnigraph.storage.tables import Table

# Each segment is asked by every look-up, so an index in many pieces is built again as one.
SEGMENTS_MAX = 8
_KINDS = {"btree": IndexKind.BTREE, "fulltext": IndexKind.TEXT, "vector": IndexKind.VECTOR}
_VECTORS_LOOKED_AT = 4_096
NO_VECTORS, MOSTLY_ZERO = "no vectors yet", "most vectors have no length"
Broken = Mapping[str, Collection[str]]
"""The names of indexes that cannot be used as they are, by table key."""
_SOUND: Broken = MappingProxyType({})


@dataclass(frozen=True)
class PendingIndex:
    table_key: str
    property: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {"table_key": self.table_key, "property": self.property, "reason": self.reason}


@dataclass(frozen=True)
class IndexResult:
    """`commit` is None when there was nothing to do."""

    branch: str
    commit: str | None
    operation_id: str | None
    tables: tuple[str, ...]
    pending: tuple[PendingIndex, ...]

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"branch": self.branch, "commit": self.commit, "operation_id": self.operation_id}
        return told | {"tables": list(self.tables), "pending": [p.to_json() for p in self.pending]}


@dataclass
class IndexWork:
    """What is to be built on one table: whole indexes, and further segments over fragments that came since."""

    whole: list[IndexSpec] = field(default_factory=list)
    parts: dict[IndexSpec, list[int]] = field(default_factory=dict)
    pending: list[PendingIndex] = field(default_factory=list)

    @property
    def is_empty(self) -> bool:
        return not self.whole and not self.parts


def ensure_indices(
    ctx: CommitContext, open_view: Callable[[], View], notes: Annotations, broken: Broken = _SOUND
) -> IndexResult:
    """Build what is missing and commit it, if anything is. What is `broken` is built anew, on inherited tables too."""
    metadata = dict(notes.metadata or {})
    check_annotations(notes.actor, notes.message, metadata)
    built: list[str] = []
    pending: list[PendingIndex] = []

    def prepare(attempt: Attempt) -> WritePlan | None:
        built.clear()
        pending.clear()
        operation = new_ulid()
        effects: list[Effect] = []
        todo = index_work(attempt.view, broken)
        view = attempt.writable([key for key, work in todo.items() if not work.is_empty], notes.actor)
        for table_key, work in todo.items():
            pending.extend(work.pending)
            if not work.is_empty:
                stamp = Stamp(operation, table_key, "0")
                staged = stage_index(view.table_to_write(table_key), work.whole, stamp, work.parts)
                effects.append(effect_of(staged))
                built.append(table_key)
        return None if not effects else _plan(view, operation, effects, notes, metadata)

    receipt = commit_with_retries(ctx, open_view, prepare, retries=ctx.settings.write_retries)
    return IndexResult(
        open_view().branch or "main",
        receipt.graph_commit_id if receipt else None,
        receipt.operation_id if receipt else None,
        tuple(built),
        tuple(pending),
    )


def index_work(view: View, broken: Broken = _SOUND) -> dict[str, IndexWork]:
    """What the tables the branch owns still need, by table key; empty tables need nothing."""
    found: dict[str, IndexWork] = {}
    for type_ in view.catalog.tables():
        entry = view.entries.get(type_.table_key)
        unusable = broken.get(type_.table_key, ())
        if entry is None or entry.row_count == 0 or (entry.table_branch != view.branch and not unusable):
            continue
        table = view.table(type_.table_key)
        if table.has_stable_row_ids:
            found[type_.table_key] = table_work(table, type_, broken=unusable)
    return found


def spec_of(declared: DeclaredIndex) -> IndexSpec:
    """The physical index that a declaration asks for."""
    return IndexSpec(declared.column, _KINDS[declared.kind])


def table_work(
    table: Table, type_: TableType, also: Iterable[IndexSpec] = (), broken: Collection[str] = ()
) -> IndexWork:
    """What one table needs. `also`: indexes to keep up that are not declared; `broken`: those to build anew."""
    # A column that a branch has not caught up with yet has nothing to index.
    names = set(table.field_ids)
    wanted = dict.fromkeys([*map(spec_of, declared_indexes(type_)), *also])
    return _table_work(table, type_.table_key, [spec for spec in wanted if spec.column in names], broken)


def unindexed_rows(table: Table, type_: TableType) -> int:
    """How many rows some declared index does not cover yet, of the index that lacks most."""
    work, states = table_work(table, type_), table.index_states()
    if work.is_empty:
        return 0
    rows = table.fragment_rows()
    lacking = [spec.name for spec in (*work.whole, *work.parts)]
    covered = [states[name].fragment_ids if name in states else frozenset() for name in lacking]
    return max(sum(count for number, count in rows.items() if number not in known) for known in covered)


def _table_work(table: Table, table_key: str, wanted: Iterable[IndexSpec], broken: Collection[str]) -> IndexWork:
    work, rows = IndexWork(), table.fragment_rows()
    states = {name: state for name, state in table.index_states().items() if name not in broken}
    for spec in wanted:
        state = states.get(spec.name)
        new = sorted(set(rows) - state.fragment_ids) if state is not None else sorted(rows)
        if not new:
            continue
        covered = sum(rows.values()) - sum(rows[n] for n in new)
        is_worn = state is None or state.segments >= SEGMENTS_MAX or sum(rows[n] for n in new) > covered
        is_whole = is_worn or _would_be_found_by_old_words(table, spec, new)
        lacking = _lacking(table, spec, sorted(rows) if is_whole else new)
        if lacking is not None:
            if state is None:
                work.pending.append(PendingIndex(table_key, spec.column, lacking))
        elif is_whole:
            work.whole.append(spec)
        else:
            work.parts[spec] = new
    return work


def _lacking(table: Table, spec: IndexSpec, fragments: list[int]) -> str | None:
    """Why these fragments get no index yet: vectors without length do not count in the sample it is trained on."""
    if spec.kind is not IndexKind.VECTOR:
        return None
    directions, zeros = table.count_vectors(spec.column, fragments, _VECTORS_LOOKED_AT)
    return NO_VECTORS if not directions else MOSTLY_ZERO if zeros > directions else None


def _would_be_found_by_old_words(table: Table, spec: IndexSpec, new: list[int]) -> bool:
    """Whether a further segment would bring back what the present ones know of rows that were replaced since.

    Lance asks all segments of a text index about all rows that any of them covers, and a replaced row keeps its id.
    """
    return spec.kind is IndexKind.TEXT and table.has_replaced_rows(new)


def _plan(view: View, operation: str, effects: list[Effect], notes: Annotations, metadata: dict[str, Any]) -> WritePlan:
    return WritePlan(
        operation_id=operation,
        graph_commit_id=new_ulid(),
        writer=ENSURE_INDICES,
        branch=view.branch,
        branch_incarnation=view.incarnation,
        effects=tuple(effects),
        relied_on={e.table_key: view.entry(e.table_key) for e in effects},
        actor_id=notes.actor,
        message=notes.message,
        metadata=metadata,
        if_commit=notes.if_commit,
        known_tables=view.catalog.table_keys,
    )
