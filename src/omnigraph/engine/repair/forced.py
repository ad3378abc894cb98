"""Whether what another tool wrote may become part of the graph.

Holds for every head that is not refused:
  1. Its columns are those of the pin, and all its files are there.
  2. Every row that claims to be older than the pin is in the pin, with the same values: all that tells states of a
     table apart relies on it.
  3. With the other tables of its branch it keeps every rule of the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.commit.context import CommitContext
from omnigraph.commit.drift import drift_of
from omnigraph.commit.repairs import NewPin
from omnigraph.engine.changes.rows import row_changes
from omnigraph.engine.verify.content import faults
from omnigraph.engine.verify.files import check_files
from omnigraph.engine.verify.inspection import UNREADABLE, Inspection
from omnigraph.engine.view import Current
from omnigraph.engine.write.intake import Progress
from omnigraph.manifest.rows import RowEffect
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import BranchState
from omnigraph.records.packed import packed_rows
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.row_deltas import ROW_ID, UPDATED, delta_between, rows_with
from omnigraph.storage.tables import Table, open_table


@dataclass(frozen=True)
class Judgement:
    """What was found of some tables of one branch at one commit."""

    head_id: str | None
    pins: tuple[NewPin, ...]
    refusals: Mapping[str, str]

    def still_holds(self, ctx: CommitContext, state: BranchState) -> bool:
        return state.head_id == self.head_id and all(drift_of(ctx, p.entry).head == p.head for p in self.pins)


def judge(
    ctx: CommitContext, state: BranchState, table_keys: Iterable[str], current: Current, progress: Progress | None
) -> Judgement:
    """Look at the heads of these tables, each by itself and then together; one that is refused refuses all."""
    refusals: dict[str, str] = {}
    heads: dict[str, tuple[Table, Table]] = {}
    for key in table_keys:
        try:
            found = _opened(ctx, key, state.entries[key])
            why = _refusal(ctx, key, *found)
        except UNREADABLE as error:
            refusals[key] = f"its head cannot be read: {error}"
            continue
        heads[key] = found
        if why is not None:
            refusals[key] = why
    if not refusals and heads:
        refusals = _together(ctx, state, heads, current, progress)
    if refusals:
        first = f"{min(refusals)} is refused: {refusals[min(refusals)]}"
        return Judgement(state.head_id, (), {key: refusals.get(key, first) for key in table_keys})
    return Judgement(state.head_id, tuple(_pins(ctx, state, heads)), {})


def _opened(ctx: CommitContext, key: str, entry: SubTableEntry) -> tuple[Table, Table]:
    ref = ctx.ref(entry.location, entry.table_branch)
    head = drift_of(ctx, entry).head
    return open_table(ref, entry.table_version, key), open_table(ref, head, key)


def _refusal(ctx: CommitContext, key: str, before: Table, after: Table) -> str | None:
    """Why one head cannot be shown, whatever the other tables hold."""
    if not after.has_stable_row_ids:
        return f"v{after.version} has no stable row ids"
    if _columns(after.schema) != _columns(before.schema):
        return f"v{after.version} has other columns than v{before.version}"
    look = Inspection.of(ctx, None)
    check_files(look, after.ref.branch, key, after)
    if look.findings:
        return look.findings[0].message
    if not all(_carried(before, after)):
        return (
            f"v{after.version} brings back or rewrites rows that claim to be older than v{before.version}; restore "
            f"v{before.version} with the tool that wrote it, and bring old content back with omnigraph branch reset"
        )
    return None


def _columns(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema]


def _carried(before: Table, after: Table) -> Iterator[bool]:
    """Batch by batch: whether rows that were not written since the pin are those of the pin."""
    fields = pa.schema([field.with_nullable(True).remove_metadata() for field in before.schema])
    delta = delta_between(before, after, fields.names)
    columns = [*fields.names, ROW_ID]
    # Rows that the pin had deleted or replaced, at the place where they were.
    yield not delta.after.thinned
    for batch in delta.after.rows(columns, f"{UPDATED} <= {before.version}"):
        if not batch.num_rows:
            continue
        numbers = np.sort(batch.column(batch.num_columns - 1).to_numpy())
        known = list(rows_with(before, numbers, columns))
        was = pa.Table.from_batches(known).combine_chunks().to_batches() if known else []
        if not was or was[0].num_rows != batch.num_rows:
            yield False
            return
        yield _image(was[0], fields).equals(_image(batch, fields))


def _image(batch: pa.RecordBatch, fields: pa.Schema) -> pa.StructArray:
    """The rows in the order of their numbers, as values that can be compared."""
    order = pc.array_sort_indices(batch.column(batch.num_columns - 1))
    return packed_rows(batch.select(fields.names).take(order), fields)


def _together(
    ctx: CommitContext,
    state: BranchState,
    heads: Mapping[str, tuple[Table, Table]],
    current: Current,
    progress: Progress | None,
) -> dict[str, str]:
    """What the branch would break with these heads shown."""
    shown = {
        key: replace(state.entries[key], table_version=after.version, row_count=after.count_rows())
        for key, (_, after) in heads.items()
    }
    snapshot = replace(state.snapshot(), tables={**state.entries, **shown})
    view, catalog = current.view(snapshot, state.incarnation), current.catalog
    named = {current.key_at(state.entries[key].location) or key for key in heads}
    types = [type_ for key in sorted(named) if (type_ := catalog.find_table(key)) is not None]
    touched = [
        edge for edge in catalog.edges if named & {edge.table_key, f"node:{edge.src_type}", f"node:{edge.dst_type}"}
    ]
    told = progress or (lambda stage, rows: None)
    with Scratch(ctx.settings) as scratch:
        found = faults(view, types, touched, scratch, told)
    blamed = min(heads)
    return {key if key in heads else blamed: f"{key}: {message}" for _, key, message in reversed(found)}


def _pins(ctx: CommitContext, state: BranchState, heads: Mapping[str, tuple[Table, Table]]) -> Iterator[NewPin]:
    for key, (before, after) in heads.items():
        counts = _counts(ctx, before, after)
        yield NewPin(key, state.entries[key], after.version, after.count_rows(), counts)


def _counts(ctx: CommitContext, before: Table, after: Table) -> RowEffect:
    fields = pa.schema([field.with_nullable(True).remove_metadata() for field in after.schema])
    inserts = updates = deletes = 0
    with Scratch(ctx.settings) as scratch:
        changes = row_changes(scratch, before, after, fields)
        for had, has in changes.presence():
            was, is_ = np.asarray(had.to_numpy(zero_copy_only=False)), np.asarray(has.to_numpy(zero_copy_only=False))
            inserts += int((~was & is_).sum())
            updates += int((was & is_).sum())
            deletes += int((was & ~is_).sum())
        changes.close()
    return RowEffect(inserts, updates, deletes)
