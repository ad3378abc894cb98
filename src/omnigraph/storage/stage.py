"""Staged writes: files and a Lance transaction that no table version references yet.

Holds at every return:
  1. No table moved: staging writes new files only.
  2. Each transaction is stamped with its operation, table and step, so that its landing can be recognised.
  3. Rows that are replaced keep their stable row id and the version that created them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import chain
from typing import Any, TypeAlias

import lance
import numpy as np
import pyarrow as pa
from lance.fragment import write_fragments
from lance.optimize import Compaction

from omnigraph.base.errors import KeyConflict
from omnigraph.storage.failures import translated
from omnigraph.storage.fragments import Thinned, continue_rows, read_fragment_messages
from omnigraph.storage.search import TEXT_SETTINGS
from omnigraph.storage.tables import Addresses, Table, TableRef

OPERATION_ID = "omnigraph.operation_id"
TABLE_KEY = "omnigraph.table_key"
STEP = "omnigraph.step"
RESTORE_STEP = "restore"

_OP = lance.LanceOperation
Rows: TypeAlias = pa.Table | pa.RecordBatchReader
Numbers: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Stamp:
    """Who a transaction belongs to; travels in its properties."""

    operation_id: str
    table_key: str
    step: str

    def properties(self) -> dict[str, str]:
        return {OPERATION_ID: self.operation_id, TABLE_KEY: self.table_key, STEP: self.step}


@dataclass(frozen=True)
class StagedWrite:
    """A prepared change of one table. `versions` is how far its commit moves the table."""

    ref: TableRef
    stamp: Stamp
    read_version: int
    uuid: str
    rows_after: int
    inserts: int = 0
    updates: int = 0
    deletes: int = 0
    versions: int = 1
    table: Table | None = dataclasses.field(default=None, repr=False, compare=False)
    transaction: Any = dataclasses.field(default=None, repr=False)
    rewrites: tuple[Any, ...] = dataclasses.field(default=(), repr=False)
    files: tuple[str, ...] | None = None
    """The files it brings, below its table, where its operation mentions others too."""


class IndexKind(Enum):
    BTREE = "BTREE"
    TEXT = "INVERTED"
    VECTOR = "IVF_FLAT"


@dataclass(frozen=True)
class IndexSpec:
    """One physical index: `{column}_{kind}_idx`."""

    column: str
    kind: IndexKind

    @property
    def name(self) -> str:
        return f"{self.column}_{self.kind.name.lower()}_idx"


def stage_append(table: Table, rows: pa.Table, stamp: Stamp) -> StagedWrite:
    """Insert rows whose ids are new; an id the table has is a KeyConflict."""
    stored = table.find(rows.column("id").to_pylist(), ["id"]).column("id").to_pylist()
    if stored:
        raise KeyConflict(table_key=stamp.table_key, ids=tuple(sorted(stored)[:5]), count=len(stored))
    return stage_new_rows(table, rows, stamp)


def stage_new_rows(table: Table, rows: Rows, stamp: Stamp) -> StagedWrite:
    """Insert rows that are known to have new ids."""
    with translated(f"write {stamp.table_key}"):
        fragments = list(write_fragments(rows, table.dataset, mode="append"))
    inserts = _row_count(fragments)
    return _staged(table, stamp, _OP.Append(fragments), table.count_rows() + inserts, inserts=inserts)


def stage_fragments(table: Table, messages: Sequence[str], rows: int, stamp: Stamp) -> StagedWrite:
    """Adopt fragments that were written elsewhere, for example by Spark executors."""
    fragments = read_fragment_messages(list(messages))
    return _staged(table, stamp, _OP.Append(fragments), table.count_rows() + rows, inserts=rows)


def restage_append(table: Table, before: StagedWrite, stamp: Stamp) -> StagedWrite | None:
    """The same new rows on a later version of the table; None if it was another kind of write or another place."""
    operation = before.transaction.operation if before.transaction is not None else None
    if not isinstance(operation, _OP.Append) or before.ref != table.ref:
        return None
    return _staged(table, stamp, operation, table.count_rows() + before.inserts, inserts=before.inserts)


def stage_overwrite_fragments(
    table: Table, schema: pa.Schema, messages: Sequence[str], rows: int, stamp: Stamp
) -> StagedWrite:
    """Replace everything by fragments that were written elsewhere."""
    fragments, before = read_fragment_messages(list(messages)), table.count_rows()
    return _staged(table, stamp, _OP.Overwrite(schema, fragments), rows, inserts=rows, deletes=before)


def stage_update_fragments(
    table: Table,
    messages: Sequence[str],
    thinned: Sequence[Thinned],
    updates: int,
    inserts: int,
    deletes: int,
    stamp: Stamp,
) -> StagedWrite:
    """Upserts and deletes that were written elsewhere."""
    gone = [one.fragment_id for one in thinned if one.message is None]
    left = read_fragment_messages([one.message for one in thinned if one.message is not None])
    return _staged_update(table, gone, left, read_fragment_messages(list(messages)), stamp, inserts, updates, deletes)


def stage_upsert(table: Table, rows: pa.Table, stamp: Stamp) -> StagedWrite:
    """Replace the rows whose id is stored, insert the others."""
    return stage_rows(table, rows, (), stamp)


def stage_delete(table: Table, ids: Sequence[str], stamp: Stamp) -> StagedWrite:
    return stage_rows(table, None, ids, stamp)


def stage_delete_where(table: Table, where: str, stamp: Stamp) -> StagedWrite:
    """Delete the rows for which the predicate is true."""
    return _stage_removal(table, None, [], [], table.addresses_where(where), stamp)


def stage_rows(table: Table, upserts: pa.Table | None, delete_ids: Sequence[str], stamp: Stamp) -> StagedWrite:
    """Upserts and deletes in one operation; no id may be in both."""
    ids: list[str] = upserts.column("id").to_pylist() if upserts is not None else []
    found = table.addresses([*ids, *delete_ids])
    stored = dict(zip(found.ids, found.row_ids, strict=True))
    updated = [i for i, key in enumerate(ids) if key in stored]
    inserted = [i for i, key in enumerate(ids) if key not in stored]
    kept_row_ids = [stored[ids[i]] for i in updated]
    ordered = upserts.take(updated + inserted) if upserts is not None and ids else None
    return _stage_removal(table, ordered, kept_row_ids, inserted, found, stamp)


@dataclass(frozen=True)
class Replacement:
    """Many upserts and deletes of one table whose stored rows were found already; each member is read once.

    `updated` take the place of the rows with `row_ids`, in the same order, and `inserted` follow them. `removed` are
    the addresses of all rows that go, replaced or deleted, ascending.
    """

    updated: Iterator[pa.RecordBatch]
    inserted: Iterator[pa.RecordBatch]
    row_ids: Iterable[Numbers]
    removed: Iterable[Numbers]
    updates: int
    inserts: int
    deletes: int


def stage_replacement(table: Table, schema: pa.Schema, found: Replacement, stamp: Stamp) -> StagedWrite:
    """Upserts and deletes in one operation, in bounded memory."""
    rows = pa.RecordBatchReader.from_batches(schema, chain(found.updated, found.inserted))
    with translated(f"write {stamp.table_key}"):
        gone, thinned = _thinned(table, _by_fragment(found.removed))
        fresh = list(write_fragments(rows, table.dataset, mode="append")) if found.updates + found.inserts else []
        continue_rows(fresh, found.row_ids)
    return _staged_update(table, gone, thinned, fresh, stamp, found.inserts, found.updates, found.deletes)


def _by_fragment(addresses: Iterable[Numbers]) -> Iterator[tuple[int, list[int]]]:
    """Ascending row addresses as one list of offsets for each fragment."""
    fragment, offsets = -1, [np.array([], np.uint64)]
    for part in addresses:
        numbers = part >> np.uint64(32)
        for number in np.unique(numbers):
            if number != fragment and fragment >= 0:
                yield fragment, np.concatenate(offsets).tolist()
                offsets = []
            fragment = int(number)
            offsets.append(part[numbers == number] & np.uint64(0xFFFFFFFF))
    if fragment >= 0:
        yield fragment, np.concatenate(offsets).tolist()


def _stage_removal(
    table: Table,
    new_rows: pa.Table | None,
    kept_row_ids: list[int],
    inserted: list[int],
    removed: Addresses,
    stamp: Stamp,
) -> StagedWrite:
    """Take `removed` away and write `new_rows`, the first of which continue the rows with `kept_row_ids`."""
    deletes = len(removed.ids) - len(kept_row_ids)
    offsets: dict[int, list[int]] = {}
    for address in removed.row_addresses:
        offsets.setdefault(address >> 32, []).append(address & 0xFFFFFFFF)
    with translated(f"write {stamp.table_key}"):
        gone, thinned = _thinned(table, sorted(offsets.items()))
        fresh = list(write_fragments(new_rows, table.dataset, mode="append")) if new_rows else []
        continue_rows(fresh, [np.array(kept_row_ids, np.uint64)])
    return _staged_update(table, gone, thinned, fresh, stamp, len(inserted), len(kept_row_ids), deletes)


def _staged_update(
    table: Table,
    gone: list[int],
    thinned: list[Any],
    fresh: list[Any],
    stamp: Stamp,
    inserts: int,
    updates: int,
    deletes: int,
) -> StagedWrite:
    # Every field is named as rewritten: text and vector indexes would otherwise claim to cover the new fragments.
    operation = _OP.Update(
        removed_fragment_ids=gone,
        updated_fragments=thinned,
        new_fragments=fresh,
        fields_for_preserving_frag_bitmap=_field_ids(table.dataset.lance_schema.fields()),
        update_mode="rewrite_rows",
    )
    rows_after = table.count_rows() + inserts - deletes
    return _staged(table, stamp, operation, rows_after, inserts=inserts, updates=updates, deletes=deletes)


def _field_ids(fields: Sequence[Any]) -> list[int]:
    return [i for f in fields for i in (f.id(), *_field_ids(f.children()))]


def _thinned(table: Table, offsets: Iterable[tuple[int, list[int]]]) -> tuple[list[int], list[Any]]:
    """Delete rows by fragment: the ids of fragments nothing is left of, and the others as they are afterwards."""
    gone: list[int] = []
    thinned: list[Any] = []
    for fragment_id, rows in offsets:
        fragment: Any = table.dataset.get_fragment(fragment_id)
        left = fragment.delete_rows(rows)
        if left is None:
            gone.append(fragment_id)
        else:
            thinned.append(left)
    return gone, thinned


def _row_count(fragments: Iterable[Any]) -> int:
    return sum(int(fragment.physical_rows) for fragment in fragments)


def stage_overwrite(table: Table, rows: Rows, stamp: Stamp) -> StagedWrite:
    """Replace everything the table holds, possibly by nothing."""
    before, schema = table.count_rows(), rows.schema
    is_empty = isinstance(rows, pa.Table) and not rows.num_rows
    with translated(f"write {stamp.table_key}"):
        fragments = [] if is_empty else list(write_fragments(rows, table.dataset, mode="overwrite"))
    inserts = _row_count(fragments)
    return _staged(table, stamp, _OP.Overwrite(schema, fragments), inserts, inserts=inserts, deletes=before)


def stage_create(ref: TableRef, schema: pa.Schema, stamp: Stamp) -> StagedWrite:
    """A new empty table with stable row ids; it exists once committed."""
    transaction = lance.Transaction(0, _OP.Overwrite(schema, []), transaction_properties=stamp.properties())
    return StagedWrite(ref, stamp, 0, transaction.uuid, 0, transaction=transaction)


def stage_index(
    table: Table, specs: Sequence[IndexSpec], stamp: Stamp, parts: Mapping[IndexSpec, Sequence[int]] | None = None
) -> StagedWrite:
    """Build indexes over all fragments; one commit makes all of them visible and drops those of the same name.

    `parts`: indexes that stay and get a further segment, over these fragments.
    """
    fragment_ids = [f.fragment_id for f in table.dataset.get_fragments()]
    with translated(f"index {stamp.table_key}"):
        segments = [_segment(table, spec, fragment_ids) for spec in specs]
        segments += [_segment(table, spec, list(chosen)) for spec, chosen in (parts or {}).items()]
        replaced = _segments_named(table, {spec.name for spec in specs})
        replaced += _segments_named(table, {spec.name for spec in parts or ()}, only_empty=True)
    return _staged(table, stamp, _OP.CreateIndex(segments, replaced), table.count_rows())


def index_removal(table: Table, names: set[str], stamp: Stamp) -> StagedWrite:
    """Drop the indexes with these names."""
    with translated(f"index {stamp.table_key}"):
        return _staged(table, stamp, _OP.CreateIndex([], _segments_named(table, names)), table.count_rows())


def _segments_named(table: Table, names: set[str], only_empty: bool = False) -> list[Any]:
    """The present segments of the indexes with these names; Lance goes by their uuids alone.

    `only_empty`: those that cover no fragment any more.
    """
    nothing: Any = set()
    return [
        lance.Index(segment.uuid, index.name, [], 0, nothing, 0)
        for index in table.dataset.describe_indices()
        if index.name in names
        for segment in index.segments
        if not (only_empty and segment.fragment_ids)
    ]


def _segment(table: Table, spec: IndexSpec, fragment_ids: list[int]) -> Any:
    build = table.dataset.create_index_uncommitted
    match spec.kind:
        case IndexKind.BTREE:
            return build(spec.column, "BTREE", name=spec.name, replace=True, fragment_ids=fragment_ids)
        case IndexKind.TEXT:
            # A raw full-text segment stays unreadable until it went through a merge.
            raw = build(
                spec.column,
                "INVERTED",
                name=spec.name,
                replace=True,
                fragment_ids=fragment_ids,
                with_position=True,
                **TEXT_SETTINGS,
            )
            return table.dataset.merge_existing_index_segments([raw])
        case IndexKind.VECTOR:
            # Lance makes no more partitions than there are vectors to put into them.
            vectors, _ = table.count_vectors(spec.column, fragment_ids)
            partitions = max(1, min(round(vectors**0.5), vectors // 256))
            return build(
                spec.column,
                spec.kind.value,
                name=spec.name,
                replace=True,
                metric="cosine",
                num_partitions=partitions,
                fragment_ids=fragment_ids,
            )


def stage_compaction(table: Table, stamp: Stamp, target_rows: int = 1_048_576) -> StagedWrite | None:
    """Rewrite small fragments into larger ones; None when there is nothing to gain."""
    with translated(f"compact {stamp.table_key}"):
        plan = Compaction.plan(table.dataset, {"target_rows_per_fragment": target_rows})
        rewrites = tuple(task.execute(table.dataset) for task in plan.tasks)
    if not rewrites:
        return None
    rows = table.count_rows()
    return StagedWrite(table.ref, stamp, table.version, "", rows, versions=2, table=table, rewrites=rewrites)


def _staged(
    table: Table, stamp: Stamp, operation: Any, rows_after: int, inserts: int = 0, updates: int = 0, deletes: int = 0
) -> StagedWrite:
    transaction = lance.Transaction(table.version, operation, transaction_properties=stamp.properties())
    return StagedWrite(
        table.ref,
        stamp,
        table.version,
        transaction.uuid,
        rows_after,
        inserts,
        updates,
        deletes,
        table=table,
        transaction=transaction,
    )
