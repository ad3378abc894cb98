"""Changes of a graph as data, one per table, and how each is staged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.errors import BadRequest
from omnigraph.base.failpoints import reach
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import Effect, WritePlan, Writer, check_annotations, effect_of
from omnigraph.engine.view import View
from omnigraph.storage.compaction import stage_fork_compaction
from omnigraph.storage.stage import (
    IndexSpec,
    StagedWrite,
    Stamp,
    stage_append,
    stage_compaction,
    stage_delete,
    stage_delete_where,
    stage_fragments,
    stage_index,
    stage_overwrite,
    stage_rows,
)
from omnigraph.storage.tables import Table


@dataclass(frozen=True)
class Append:
    """Insert rows with new ids."""

    rows: pa.Table


@dataclass(frozen=True)
class Upsert:
    """Replace rows whose id is stored, insert the others, delete `delete_ids`; all in one operation."""

    rows: pa.Table
    delete_ids: tuple[str, ...] = ()


@dataclass(frozen=True)
class Delete:
    ids: tuple[str, ...]


@dataclass(frozen=True)
class DeleteWhere:
    """Delete the rows for which an SQL predicate over the columns is true."""

    predicate: str


@dataclass(frozen=True)
class Overwrite:
    """Replace all rows, possibly by none."""

    rows: pa.Table


@dataclass(frozen=True)
class Fragments:
    """Insert rows that lie in fragments already, written elsewhere against this very version of the table."""

    messages: tuple[str, ...]
    rows: int
    version: int


@dataclass(frozen=True)
class BuildIndexes:
    specs: tuple[IndexSpec, ...]


@dataclass(frozen=True)
class Compact:
    """Fold small fragments together; content is unchanged."""


Change = Append | Upsert | Delete | DeleteWhere | Overwrite | Fragments | BuildIndexes | Compact


@dataclass(frozen=True)
class Annotations:
    """What the caller wants the commit to say."""

    actor: str | None = None
    message: str | None = None
    metadata: Mapping[str, Any] | None = None
    if_commit: str | None = None


def plan_changes(
    view: View, changes: Mapping[str, Change], writer: Writer, notes: Annotations, operation_id: str | None = None
) -> WritePlan:
    """Stage every change against the view; nothing moves."""
    metadata = dict(notes.metadata or {})
    check_annotations(notes.actor, notes.message, metadata)
    operation = operation_id or new_ulid()
    effects: list[Effect] = []
    for table_key, change in sorted(changes.items()):
        staged = _stage(view.table_to_write(table_key), change, Stamp(operation, table_key, "0"), view)
        if staged is not None:
            effects.append(effect_of(staged))
        reach("stage.files_written")
    return WritePlan(
        operation_id=operation,
        graph_commit_id=new_ulid(),
        writer=writer,
        branch=view.branch,
        branch_incarnation=view.incarnation,
        effects=tuple(effects),
        relied_on={key: view.entry(key) for key in changes},
        actor_id=notes.actor,
        message=notes.message,
        metadata=metadata,
        if_commit=view.head_meant(notes.if_commit),
        known_tables=view.catalog.table_keys,
    )


def _stage(table: Table, change: Change, stamp: Stamp, view: View) -> StagedWrite | None:
    match change:
        case Append(rows):
            return stage_append(table, conformed(view, stamp.table_key, rows), stamp)
        case Upsert(rows, delete_ids):
            checked = conformed(view, stamp.table_key, rows)
            _refuse_overlap(stamp.table_key, checked, delete_ids)
            return stage_rows(table, checked, delete_ids, stamp)
        case Delete(ids):
            return stage_delete(table, ids, stamp)
        case DeleteWhere(predicate):
            return stage_delete_where(table, predicate, stamp)
        case Overwrite(rows):
            return stage_overwrite(table, conformed(view, stamp.table_key, rows), stamp)
        case Fragments(messages, rows, version):
            if version != table.version:
                raise BadRequest(f"fragments of {stamp.table_key} were written for version {version}")
            return stage_fragments(table, messages, rows, stamp)
        case BuildIndexes(specs):
            return stage_index(table, specs, stamp)
        case Compact():
            return stage_compaction(table, stamp) if table.ref.branch is None else stage_fork_compaction(table, stamp)


def conformed(view: View, table_key: str, rows: pa.Table) -> pa.Table:
    """The rows in the table's exact columns; unknown columns, wrong types, nulls and repeated ids are refused."""
    wanted = view.catalog.arrow_schema(table_key)
    unknown = sorted(set(rows.column_names) - set(wanted.names))
    if unknown:
        raise BadRequest(f"{table_key} has no property {', '.join(map(repr, unknown))}")
    columns = []
    for field in wanted:
        if field.name not in rows.column_names:
            if not field.nullable:
                raise BadRequest(f"{table_key} needs a value for '{field.name}' in every row")
            columns.append(pa.nulls(rows.num_rows, field.type))
            continue
        column = _cast(table_key, field, rows.column(field.name))
        if not field.nullable and column.null_count:
            raise BadRequest(f"{table_key} needs a value for '{field.name}' in every row")
        columns.append(column)
    table = pa.table(columns, schema=wanted)
    refuse_repeated_ids(table_key, table.column("id"))
    return table


def _cast(table_key: str, field: pa.Field, column: pa.ChunkedArray) -> pa.ChunkedArray:
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type, safe=True)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise BadRequest(f"{table_key}.{field.name} expects {field.type}, not {column.type}: {error}") from error


def refuse_repeated_ids(table_key: str, ids: pa.ChunkedArray) -> None:
    if len(ids) == pc.count_distinct(ids).as_py():
        return
    counts = pc.value_counts(ids).to_pylist()
    repeated = sorted(c["values"] for c in counts if c["counts"] > 1)
    raise BadRequest(f"{table_key}: id {repeated[0]!r} occurs more than once in the rows given")


def _refuse_overlap(table_key: str, rows: pa.Table, delete_ids: Sequence[str]) -> None:
    both = set(delete_ids).intersection(rows.column("id").to_pylist()) if delete_ids else set()
    if both:
        raise BadRequest(f"{table_key}: id {min(both)!r} is both written and deleted")
