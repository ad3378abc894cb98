"""Writes rows as fragments that nothing refers to yet.

Holds for every task: it makes no version of any table, so a retried or twin task can only leave unused files behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.errors import InternalError
from omnigraph.pipeline.worker.buckets import Deal, read_bucket
from omnigraph.pipeline.worker.pieces import Numbers, Reading, StoredTable
from omnigraph.records.decode import POSITION
from omnigraph.storage.fragments import Thinned, fragment_row_count, thin_fragment, write_fragment_messages
from omnigraph.storage.row_files import RowFile, RowFileWriter, RowFolder

ADDRESSES = pa.schema([("fragment", pa.int64()), ("address", pa.uint64())])


@dataclass(frozen=True)
class WriteTask:
    """The table to write beside, and how its rows are read."""

    table: StoredTable
    schema: bytes
    reading: Reading
    folder: RowFolder
    replaces_all: bool = False

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self.schema))


@dataclass(frozen=True)
class Written:
    """Fragments of one task. `replaced` holds the addresses of the rows that `updates` of them take the place of."""

    messages: tuple[str, ...] = ()
    rows: int = 0
    updates: int = 0
    replaced: RowFile | None = None


def write_rows(group: Sequence[RowFile], task: WriteTask) -> Written:
    """All rows of some files as new rows."""
    schema = task.arrow_schema
    batches = _stored_columns(chain.from_iterable(map(task.reading.batches, group)), schema)
    return _written(batches, task, schema)


def _written(
    batches: Iterator[pa.RecordBatch], task: WriteTask, schema: pa.Schema, row_ids: Numbers | None = None
) -> Written:
    counted = _Counted(batches)
    first = next(counted, None)
    if first is None:
        return Written()
    rows = pa.RecordBatchReader.from_batches(schema, chain([first], counted))
    table = task.table
    messages = write_fragment_messages(
        table.uri, table.version, rows, table.options, replaces_all=task.replaces_all, row_ids=row_ids
    )
    if fragment_row_count(messages) != counted.rows:
        raise InternalError(f"{counted.rows} rows were given, {fragment_row_count(messages)} were written")
    return Written(tuple(messages), counted.rows, 0 if row_ids is None else len(row_ids))


class _Counted:
    def __init__(self, batches: Iterator[pa.RecordBatch]) -> None:
        self.rows = 0
        self._batches = batches

    def __iter__(self) -> _Counted:
        return self

    def __next__(self) -> pa.RecordBatch:
        batch = next(self._batches)
        self.rows += batch.num_rows
        return batch


def _stored_columns(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        if batch.num_rows:
            yield pa.RecordBatch.from_arrays([batch.column(name) for name in schema.names], schema=schema)


@dataclass(frozen=True)
class Dealt:
    """A relation that was dealt into buckets."""

    files: tuple[RowFile, ...]
    deal: Deal

    def bucket(self, number: int) -> pa.Table:
        return read_bucket(self.files, number, self.deal)


def write_matched(group: Sequence[int], matches: Dealt, files: Sequence[RowFile], task: WriteTask) -> list[Written]:
    """The rows of the files whose matches lie in these buckets, those first that replace stored ones.

    The matches say for each row of a file which stored row it replaces, if any; a file's are all in one bucket.
    """
    done: list[Written] = []
    for bucket in group:
        found = matches.bucket(bucket)
        for part in pc.unique(found.column("part")).to_pylist():
            done.append(_write_part(files[part], found.filter(pc.equal(found.column("part"), part)), task))
    return done


def _write_part(file: RowFile, matches: pa.Table, task: WriteTask) -> Written:
    positions = matches.column("position").to_numpy()
    hit = pc.is_valid(matches.column("row_id")).to_numpy()
    matched = positions[hit]
    schema = task.arrow_schema
    updated = _stored_columns(_at(file, matched, task), schema)
    inserted = _stored_columns(_at(file, positions[~hit], task), schema)
    replaced = matches.filter(pa.array(hit))
    row_ids = _in_file_order(file, matched, replaced.column("row_id").to_numpy(), task)
    done = _written(chain(updated, inserted), task, schema, row_ids)
    out = RowFileWriter(task.folder, "replaced", ADDRESSES)
    addresses = replaced.column("address").to_numpy()
    if len(addresses):
        fragments = pa.array((addresses >> np.uint64(32)).astype(np.int64))
        out.append(pa.RecordBatch.from_arrays([fragments, pa.array(addresses)], schema=ADDRESSES))
    return Written(done.messages, done.rows, len(matched), out.close())


def _in_file_order(file: RowFile, positions: Numbers, values: Numbers, task: WriteTask) -> Numbers:
    """The values of the rows at `positions` in the order in which the file has the rows."""
    if not len(positions):
        return values
    ascending = np.argsort(positions)
    positions, values = positions[ascending], values[ascending]
    found = [b.column(POSITION).to_numpy() for b in replace(task.reading, columns=(POSITION,)).batches(file)]
    ordered = np.concatenate(found)
    ordered = ordered[np.isin(ordered, positions)]
    return values[np.searchsorted(positions, ordered)]


def _at(file: RowFile, positions: Numbers, task: WriteTask) -> Iterator[pa.RecordBatch]:
    if not len(positions):
        return
    for batch in task.reading.batches(file):
        kept = np.isin(batch.column(POSITION).to_numpy(), positions)
        if kept.any():
            yield batch.filter(pa.array(kept))


def thin(group: Sequence[int], addresses: Dealt, table: StoredTable) -> list[Thinned]:
    """The fragments whose addresses lie in these buckets, without the rows there; a fragment is in one bucket."""
    done: list[Thinned] = []
    for bucket in group:
        found = addresses.bucket(bucket)
        fragments, rows = found.column("fragment").to_numpy(), found.column("address").to_numpy()
        for number in np.unique(fragments).tolist():
            offsets = np.sort(rows[fragments == number]) & np.uint64(0xFFFFFFFF)
            done.append(thin_fragment(table.uri, table.version, int(number), offsets, table.options))
    return done
