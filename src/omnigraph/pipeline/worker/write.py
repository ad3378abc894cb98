"""Writes rows as fragments that nothing refers to yet.

Holds for every task: it makes no version of any table, so a retried or twin task can only leave unused files behind.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import InternalError
from omnigraph.pipeline.worker.carry import as_unsigned
from omnigraph.pipeline.worker.rows import PART, Numbers, Reading, StoredTable
from omnigraph.pipeline.worker.tasks import answered
from omnigraph.records.decode import POSITION
from omnigraph.storage.fragments import Thinned, fragment_row_count, thin_fragment, write_fragment_messages
from omnigraph.storage.row_files import RowFile, RowFileWriter, RowFolder

ADDRESSES = pa.schema([("address", pa.int64())])


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


@dataclass
class _Matches:
    """Which rows of one file are stored already."""

    positions: list[Numbers] = field(default_factory=list)
    row_ids: list[Numbers] = field(default_factory=list)
    addresses: list[Numbers] = field(default_factory=list)
    has_match: list[Numbers] = field(default_factory=list)

    def add(self, batch: pa.RecordBatch) -> None:
        self.positions.append(batch.column(POSITION).to_numpy())
        self.has_match.append(batch.column("row_id").is_valid().to_numpy(zero_copy_only=False))
        self.row_ids.append(as_unsigned(batch.column("row_id").fill_null(0)))
        self.addresses.append(as_unsigned(batch.column("address").fill_null(0)))


def write_matched(
    batches: Iterator[pa.RecordBatch], files: Sequence[RowFile], task: WriteTask
) -> Iterator[pa.RecordBatch]:
    """One answer for each file: its rows, those first that replace stored ones. For `DataFrame.mapInArrow`.

    The rows say for each row of a file which stored row it replaces; those of a file come together and in order.
    """
    part, matches = -1, _Matches()
    for batch in batches:
        numbers = batch.column(PART).to_numpy()
        for number in dict.fromkeys(numbers.tolist()):
            if number != part and part >= 0:
                yield answered(partial(_write_part, files[part], matches, task))
                matches = _Matches()
            part = number
            matches.add(batch.filter(pa.array(numbers == number)))
    if part >= 0:
        yield answered(partial(_write_part, files[part], matches, task))


def _write_part(file: RowFile, matches: _Matches, task: WriteTask) -> Written:
    positions, hit = np.concatenate(matches.positions), np.concatenate(matches.has_match)
    matched, others = positions[hit], positions[~hit]
    schema = task.arrow_schema
    updated = _stored_columns(_at(file, matched, task), schema)
    inserted = _stored_columns(_at(file, others, task), schema)
    row_ids = _in_file_order(file, matched, np.concatenate(matches.row_ids)[hit], task)
    done = _written(chain(updated, inserted), task, schema, row_ids)
    out = RowFileWriter(task.folder, "replaced", ADDRESSES)
    replaced = np.concatenate(matches.addresses)[hit].view(np.int64)
    if len(replaced):
        out.append(pa.RecordBatch.from_arrays([pa.array(replaced)], schema=ADDRESSES))
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


def thin(batches: Iterator[pa.RecordBatch], table: StoredTable) -> Iterator[pa.RecordBatch]:
    """One answer for each fragment that loses rows; all addresses of a fragment come to one task."""
    found = [as_unsigned(batch.column("address")) for batch in batches]
    addresses = np.sort(np.concatenate(found)) if found else np.array([], np.uint64)
    fragments = addresses >> np.uint64(32)
    for number in np.unique(fragments).tolist():
        offsets = addresses[fragments == number] & np.uint64(0xFFFFFFFF)
        yield answered(partial(_thinned, table, int(number), offsets))


def _thinned(table: StoredTable, number: int, offsets: Numbers) -> Thinned:
    return thin_fragment(table.uri, table.version, number, offsets, table.options)
