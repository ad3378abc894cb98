"""Stages the change of one table in this process: files are written, a transaction is prepared, nothing moves.

Few rows are staged from memory; many stream from their spool to the table's files and back out of memory.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.engine.write.changeset import TableChange
from omnigraph.engine.write.parted import asked
from omnigraph.engine.write.spool import Numbers, Rows, RowSpool
from omnigraph.records.decode import POSITION
from omnigraph.sets.scratch import Relation, Scratch
from omnigraph.storage.stage import (
    Replacement,
    StagedWrite,
    Stamp,
    stage_new_rows,
    stage_overwrite,
    stage_replacement,
    stage_rows,
)
from omnigraph.storage.tables import Table

# Up to here the stored rows are looked up with lists and dictionaries in memory.
_FEW_ROWS = 20_000

_MATCHED = "SELECT i.place, s.row_id, s.address FROM input i JOIN stored s ON i.id = s.id"
_BY_PLACE = "SELECT place, row_id, address FROM matches ORDER BY place"
_DELETED = "SELECT s.address FROM stored s WHERE EXISTS (SELECT 1 FROM deleted d WHERE d.id = s.id)"
_IN_ORDER = "SELECT address FROM removed ORDER BY address"
_BY_ID = {"input": ["id"], "stored": ["id"], "deleted": ["id"]}
_ADDRESSED = ("id", "_rowid", "_rowaddr")
_STORED = pa.schema([("id", pa.string()), ("row_id", pa.uint64()), ("address", pa.uint64())])
_PLACED = pa.schema([("id", pa.string()), ("place", pa.int64())])
_MATCHES = pa.schema([("place", pa.int64()), ("row_id", pa.uint64()), ("address", pa.uint64())])
_ADDRESSES = pa.schema([("address", pa.uint64())])


def stage_change(table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp, scratch: Scratch) -> StagedWrite:
    rows = change.rows
    if change.replaces_all:
        return stage_overwrite(table, _reader(rows, schema) if rows else schema.empty_table(), stamp)
    adds_only = rows is not None and not len(change.delete_ids)
    if rows is not None and adds_only and (is_insert(change) or table.count_rows() == 0):
        return stage_new_rows(table, _reader(rows, schema), stamp)
    if change.row_count + len(change.delete_ids) <= _FEW_ROWS:
        upserts = pa.Table.from_batches(_stored_columns(rows.batches(), schema), schema=schema) if rows else None
        return stage_rows(table, upserts, change.delete_ids.to_pylist(), stamp)
    return _stage_many(table, schema, change, stamp, scratch)


def is_insert(change: TableChange) -> bool:
    """Whether none of the rows can take the place of a stored one."""
    return change.strict_insert or change.has_fresh_ids


def _reader(rows: Rows, schema: pa.Schema) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(schema, _stored_columns(rows.batches(), schema))


def _stored_columns(batches: Iterable[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        yield pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)


def _stage_many(table: Table, schema: pa.Schema, change: TableChange, stamp: Stamp, scratch: Scratch) -> StagedWrite:
    rows = change.rows or RowSpool(schema.append(pa.field(POSITION, pa.int64())))
    stored = Relation(_STORED, lambda: _addressed(table), table.count_rows())
    input_ = Relation(_PLACED, lambda: _placed(rows), rows.num_rows)
    with asked(scratch, _MATCHED, {"input": input_, "stored": stored}, _BY_ID) as batches:
        found = RowSpool(_MATCHES, scratch).extend(batch.cast(_MATCHES) for batch in batches)
    matches = _sorted(scratch, _MATCHES, _BY_PLACE, {"matches": found.relation(_MATCHES.names)})
    found.close()
    removed = RowSpool(_ADDRESSES, scratch).extend(b.select(["address"]) for b in matches.batches())
    if len(change.delete_ids):
        deleted = Relation.of(pa.table({"id": change.delete_ids}))
        with asked(scratch, _DELETED, {"stored": stored, "deleted": deleted}, _BY_ID) as batches:
            removed.extend(b.cast(_ADDRESSES) for b in batches)
    ordered = _sorted(scratch, _ADDRESSES, _IN_ORDER, {"removed": removed.relation(["address"])})
    scratch.release()
    try:
        replacement = Replacement(
            updated=_stored_columns(_chosen(rows, matches, matched=True), schema),
            inserted=_stored_columns(_chosen(rows, matches, matched=False), schema),
            row_ids=_numbers(matches, "row_id"),
            removed=_numbers(ordered, "address"),
            updates=matches.num_rows,
            inserts=rows.num_rows - matches.num_rows,
            deletes=ordered.num_rows - matches.num_rows,
        )
        return stage_replacement(table, schema, replacement, stamp)
    finally:
        for spool in (matches, removed, ordered):
            spool.close()


def _placed(rows: Rows) -> Iterator[pa.RecordBatch]:
    """The ids with their place among the rows; positions may repeat, as those of one statement do."""
    place = 0
    for batch in rows.batches(["id"]):
        places = pa.array(np.arange(place, place + batch.num_rows, dtype=np.int64))
        yield pa.RecordBatch.from_arrays([batch.column(0), places], schema=_PLACED)
        place += batch.num_rows


def _addressed(table: Table) -> Iterator[pa.RecordBatch]:
    for batch in table.batches(_ADDRESSED):
        yield pa.RecordBatch.from_arrays(batch.columns, schema=_STORED)


def _sorted(scratch: Scratch, schema: pa.Schema, sql: str, relations: dict[str, Relation]) -> RowSpool:
    with scratch.stream(sql, relations) as batches:
        return RowSpool(schema, scratch).extend(batch.cast(schema) for batch in batches)


def _numbers(spool: RowSpool, column: str) -> Iterator[Numbers]:
    for batch in spool.batches([column]):
        yield batch.column(0).to_numpy()


def _chosen(rows: Rows, matches: RowSpool, matched: bool) -> Iterator[pa.RecordBatch]:
    """The rows that have a match, or those that have none; the matches are in the order of the rows."""
    parts = _numbers(matches, "place")
    ahead: np.ndarray[Any, Any] = np.array([], np.int64)
    first = 0
    for batch in rows.batches():
        end = first + batch.num_rows
        while not len(ahead) or ahead[-1] < end - 1:
            part = next(parts, None)
            if part is None:
                break
            ahead = np.concatenate([ahead, part])
        hit = np.zeros(batch.num_rows, np.bool_)
        hit[ahead[ahead < end] - first] = True
        ahead, first = ahead[ahead >= end], end
        kept = batch.filter(pa.array(hit if matched else ~hit))
        if kept.num_rows:
            yield kept
