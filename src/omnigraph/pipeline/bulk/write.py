"""The change of one table, staged by executors; the driver only gathers what they wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.errors import InternalError
from omnigraph.engine.write.changeset import TableChange
from omnigraph.engine.write.staging import is_insert
from omnigraph.engine.write.validate.rules import Rule
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.questions import Questions, answer_schema
from omnigraph.pipeline.bulk.rows import StagedRows
from omnigraph.pipeline.bulk.spread import SpreadRelation, stored_relation, stored_table
from omnigraph.pipeline.worker.pieces import PART
from omnigraph.pipeline.worker.write import ADDRESSES, Dealt, WriteTask, Written, thin, write_matched, write_rows
from omnigraph.records.decode import POSITION
from omnigraph.sets.scratch import Relation
from omnigraph.storage.fragments import Thinned
from omnigraph.storage.row_files import RowFile
from omnigraph.storage.stage import (
    StagedWrite,
    Stamp,
    stage_fragments,
    stage_overwrite_fragments,
    stage_update_fragments,
)
from omnigraph.storage.tables import Table

# A fragment smaller than this costs readers more than a task costs us.
ROWS_PER_TASK_MIN = 200_000
_STORED = pa.schema([("id", pa.string()), ("row_id", pa.uint64()), ("address", pa.uint64())])
_MATCHES = pa.schema(
    [("part", pa.int32()), ("position", pa.int64()), ("row_id", pa.uint64()), ("address", pa.uint64())]
)
_MATCHED = Rule(
    "SELECT i.part, i.position, s.row_id, s.address FROM input i LEFT JOIN stored s ON i.id = s.id",
    {"input": ["id"], "stored": ["id"]},
)


_DELETED = Rule(
    """
SELECT CAST(s.address // 4294967296 AS BIGINT) AS fragment, s.address
FROM stored s WHERE EXISTS (SELECT 1 FROM deleted d WHERE d.id = s.id)
""",
    {"stored": ["id"], "deleted": ["id"]},
)


@dataclass(frozen=True)
class Upsert:
    """Rows written to take the place of stored ones, before those are taken away, and others that only go."""

    messages: tuple[str, ...]
    replaced: tuple[RowFile, ...]
    updates: int
    inserts: int
    deletes: int = 0


@dataclass(frozen=True)
class StagedOnSpark:
    write: StagedWrite
    upsert: Upsert | None = None


def stage_on_spark(
    questions: Questions, desk: Desk, table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp
) -> StagedOnSpark:
    """The change as fragments; its rows, if any, lie in files."""
    rows = change.rows if change.rows is not None else StagedRows(desk, schema, ())
    if not isinstance(rows, StagedRows):
        raise InternalError(f"{change.table_key} cannot be staged on Spark")
    task = WriteTask(
        stored_table(table), schema.serialize().to_pybytes(), rows.reading(), desk.folder, change.replaces_all
    )
    adds_only = not len(change.delete_ids) and (is_insert(change) or table.count_rows() == 0)
    if change.replaces_all or adds_only:
        written = desk.answers(_writing_groups(desk, rows.files), partial(write_rows, task=task), _doing(change))
        messages, count = _gathered(written, rows.num_rows, change)
        if change.replaces_all:
            return StagedOnSpark(stage_overwrite_fragments(table, schema, messages, count, stamp))
        return StagedOnSpark(stage_fragments(table, messages, count, stamp))
    upsert = _written_upsert(questions, desk, table, rows, task, change)
    return StagedOnSpark(_stage_upsert(questions, desk, table, upsert, change, stamp), upsert)


def restage_upsert(
    questions: Questions, desk: Desk, table: Table, upsert: Upsert, change: TableChange, stamp: Stamp
) -> StagedWrite | None:
    """The same rows on a later version of the table; None if the rows they replace have moved."""
    fragments = set(table.fragment_rows())
    for batch in StagedRows(desk, ADDRESSES, upsert.replaced).batches(["fragment"]):
        if not set(pc.unique(batch.column(0)).to_pylist()) <= fragments:
            return None
    return _stage_upsert(questions, desk, table, upsert, change, stamp)


def _writing_groups(desk: Desk, files: Sequence[RowFile]) -> list[list[RowFile]]:
    whole = sum(file.rows for file in files)
    return desk.grouped(files, max(1, min(desk.cores * 3, whole // ROWS_PER_TASK_MIN)))


def _stage_upsert(
    questions: Questions, desk: Desk, table: Table, upsert: Upsert, change: TableChange, stamp: Stamp
) -> StagedWrite:
    thinned: list[Thinned] = []
    if upsert.replaced:
        addresses = StagedRows(desk, ADDRESSES, upsert.replaced).spread(ADDRESSES.names)
        dealt = _dealt(questions, addresses, "fragment", desk.cores * 3)
        task = partial(thin, addresses=dealt, table=stored_table(table))
        groups = desk.grouped(list(range(dealt.deal.buckets)))
        thinned = [one for answer in desk.answers(groups, task, _doing(change)) for one in answer]
    counts = (upsert.updates, upsert.inserts, upsert.deletes)
    return stage_update_fragments(table, upsert.messages, thinned, *counts, stamp)


def _written_upsert(
    questions: Questions, desk: Desk, table: Table, rows: StagedRows, task: WriteTask, change: TableChange
) -> Upsert:
    stored = stored_relation(desk, table, _STORED, ["id", "_rowid", "_rowaddr"], table.count_rows())
    removed, deletes = _deleted_addresses(questions, stored, change)
    if not rows.num_rows:
        return Upsert((), removed, 0, 0, deletes)
    fresh = rows.spread(["id", POSITION, PART]).renamed(["id", "position", "part"])
    told = questions.ask(_MATCHED, {"input": fresh, "stored": stored})
    answers = StagedRows(desk, answer_schema(told) or _MATCHES, [one.file for one in told if one.file is not None])
    matches = _dealt(questions, answers.spread(_MATCHES.names), "part", min(len(rows.files), desk.cores * 3))
    write = partial(write_matched, matches=matches, files=rows.files, task=task)
    groups = desk.grouped(list(range(matches.deal.buckets)))
    written = [one for answer in desk.answers(groups, write, _doing(change)) for one in answer]
    messages, count = _gathered(written, rows.num_rows, change)
    updates = sum(one.updates for one in written)
    replaced = tuple(one.replaced for one in written if one.replaced is not None)
    return Upsert(tuple(messages), (*replaced, *removed), updates, count - updates, deletes)


def _deleted_addresses(
    questions: Questions, stored: SpreadRelation, change: TableChange
) -> tuple[tuple[RowFile, ...], int]:
    """Files with the addresses of the stored rows that the change deletes, and how many there are."""
    if not len(change.delete_ids):
        return (), 0
    deleted = Relation.of(pa.table({"id": change.delete_ids}))
    told = questions.ask(_DELETED, {"stored": stored, "deleted": deleted})
    return tuple(one.file for one in told if one.file is not None), sum(one.count for one in told)


def _dealt(questions: Questions, relation: SpreadRelation, key: str, buckets: int) -> Dealt:
    deal = questions.deal_of(relation, [key], buckets)
    return Dealt(questions.deal({"rows": relation}, {"rows": deal})["rows"], deal)


def _gathered(written: Sequence[Written], expected: int, change: TableChange) -> tuple[list[str], int]:
    count = sum(one.rows for one in written)
    if count != expected:
        raise InternalError(f"{change.table_key}: {expected} rows were checked, {count} were written")
    return [message for one in written for message in one.messages], count


def _doing(change: TableChange) -> str:
    return f"staging {change.table_key}"
