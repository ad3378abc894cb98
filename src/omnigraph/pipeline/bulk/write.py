"""The change of one table, staged by executors; the driver only gathers what they wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import functions as sf

from omnigraph.base.errors import InternalError
from omnigraph.engine.write.changeset import TableChange
from omnigraph.engine.write.staging import is_insert
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.rows import StagedRows
from omnigraph.pipeline.bulk.stored import stored_frame, stored_table
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.worker.carry import as_unsigned
from omnigraph.pipeline.worker.rows import PART, read_packed
from omnigraph.pipeline.worker.write import ADDRESSES, WriteTask, Written, thin, write_matched, write_rows
from omnigraph.records.decode import POSITION
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
_STORED_DDL = "id string, row_id bigint, address bigint"


@dataclass(frozen=True)
class Upsert:
    """Rows written to take the place of stored ones, before those are taken away."""

    messages: tuple[str, ...]
    replaced: tuple[RowFile, ...]
    updates: int
    inserts: int


@dataclass(frozen=True)
class StagedOnSpark:
    write: StagedWrite
    upsert: Upsert | None = None


def stage_on_spark(desk: Desk, table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp) -> StagedOnSpark:
    """The change as fragments; it has rows in files and deletes nothing."""
    rows = change.rows
    if not isinstance(rows, StagedRows) or len(change.delete_ids):
        raise InternalError(f"{change.table_key} cannot be staged on Spark")
    task = WriteTask(
        stored_table(table), schema.serialize().to_pybytes(), rows.reading(), desk.folder, change.replaces_all
    )
    if change.replaces_all or is_insert(change) or table.count_rows() == 0:
        written = desk.answers(_writing_groups(desk, rows.files), partial(write_rows, task=task), _doing(change))
        messages, count = _gathered(written, rows.num_rows, change)
        if change.replaces_all:
            return StagedOnSpark(stage_overwrite_fragments(table, schema, messages, count, stamp))
        return StagedOnSpark(stage_fragments(table, messages, count, stamp))
    upsert = _written_upsert(desk, table, rows, task, change)
    return StagedOnSpark(_stage_upsert(desk, table, upsert, change, stamp), upsert)


def restage_upsert(desk: Desk, table: Table, upsert: Upsert, change: TableChange, stamp: Stamp) -> StagedWrite | None:
    """The same rows on a later version of the table; None if the rows they replace have moved."""
    fragments = set(table.fragment_rows())
    addresses = StagedRows(desk, ADDRESSES, upsert.replaced)
    for batch in addresses.batches():
        if not set((as_unsigned(batch.column(0)) >> np.uint64(32)).tolist()) <= fragments:
            return None
    return _stage_upsert(desk, table, upsert, change, stamp)


def _writing_groups(desk: Desk, files: Sequence[RowFile]) -> list[list[RowFile]]:
    whole = sum(file.rows for file in files)
    return desk.grouped(files, max(1, min(desk.cores * 3, whole // ROWS_PER_TASK_MIN)))


def _stage_upsert(desk: Desk, table: Table, upsert: Upsert, change: TableChange, stamp: Stamp) -> StagedWrite:
    thinned = _thinned(desk, table, upsert.replaced, _doing(change))
    return stage_update_fragments(table, upsert.messages, thinned, upsert.updates, upsert.inserts, stamp)


def _written_upsert(desk: Desk, table: Table, rows: StagedRows, task: WriteTask, change: TableChange) -> Upsert:
    doing = _doing(change)
    with spark_failures(doing):
        fresh = rows.spread(["id", POSITION], numbered=True).frame.alias("fresh")
        stored = stored_frame(desk, table, ["id", "_rowid", "_rowaddr"], _STORED_DDL).alias("stored")
        matched = fresh.join(stored, sf.col("fresh.id") == sf.col("stored.id"), "left").select(
            PART, POSITION, "row_id", "address"
        )
        ordered = matched.repartition(max(1, min(len(rows.files), desk.cores * 3)), PART).sortWithinPartitions(PART)
    written: list[Written] = desk.collected(ordered, partial(write_matched, files=rows.files, task=task), doing)
    messages, count = _gathered(written, rows.num_rows, change)
    updates = sum(one.updates for one in written)
    replaced = tuple(one.replaced for one in written if one.replaced is not None)
    return Upsert(tuple(messages), replaced, updates, count - updates)


def _thinned(desk: Desk, table: Table, replaced: Sequence[RowFile], doing: str) -> list[Thinned]:
    if not replaced:
        return []
    reading = StagedRows(desk, ADDRESSES, replaced).reading()
    groups = desk.grouped(list(enumerate(replaced)))
    with spark_failures(doing):
        addresses = desk.frame(groups, partial(read_packed, reading=reading, numbered=False), "address bigint")
        by_fragment = addresses.repartition(desk.cores * 3, sf.shiftrightunsigned("address", 32))
    return desk.collected(by_fragment, partial(thin, table=stored_table(table)), doing)


def _gathered(written: Sequence[Written], expected: int, change: TableChange) -> tuple[list[str], int]:
    count = sum(one.rows for one in written)
    if count != expected:
        raise InternalError(f"{change.table_key}: {expected} rows were checked, {count} were written")
    return [message for one in written for message in one.messages], count


def _doing(change: TableChange) -> str:
    return f"staging {change.table_key}"
