"""The executors' part of a merge: rows that may differ are read, and rows that were decided are written.

Holds for every task: it makes files that only its answer names, and no version of any table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.batches import joined
from omnigraph.catalog.catalog import Catalog
from omnigraph.pipeline.worker.pieces import Reading
from omnigraph.pipeline.worker.settle import settle
from omnigraph.pipeline.worker.shipped import landed_rows, shipped_rows, shipped_struct
from omnigraph.pipeline.worker.tasks import answered
from omnigraph.records.decode import POSITION
from omnigraph.records.packed import packed_struct, unpacked_rows
from omnigraph.records.row_rules import row_violations
from omnigraph.records.violations import Violation
from omnigraph.storage.delta_parts import DeltaPart
from omnigraph.storage.row_files import RowFile, RowFileWriter, RowFolder

Flags: TypeAlias = "np.ndarray[Any, np.dtype[np.bool_]]"
GONE = pa.schema([("id", pa.string())])
SIDES = ("base", "source", "target")
_POSITION_FIELD = pa.field(POSITION, pa.int64(), nullable=False)
# A partition has room for so many rows; partitions follow each other in the order of ids.
_PARTITION_BITS = 40


@dataclass(frozen=True)
class Candidates:
    """How the rows of one state are read: `columns` are those of `fields` that it has."""

    fields: pa.Schema
    columns: tuple[str, ...]

    @property
    def schema(self) -> pa.Schema:
        return candidate_schema(self.fields)


def candidate_schema(fields: pa.Schema) -> pa.Schema:
    return pa.schema([pa.field("id", pa.string()), pa.field("image", shipped_struct(fields))])


def candidate_rows(
    batches: Iterator[pa.RecordBatch], groups: Sequence[Sequence[DeltaPart]], task: Candidates
) -> Iterator[pa.RecordBatch]:
    """The rows of the groups whose numbers are among the rows. For `DataFrame.mapInArrow`."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            for part in groups[number]:
                for rows in part.rows(task.columns):
                    if rows.num_rows:
                        images = shipped_rows(rows, task.fields)
                        yield pa.RecordBatch.from_arrays([rows.column("id"), images], schema=task.schema)
    settle()


@dataclass(frozen=True)
class DecideTask:
    """What becomes of the answer of the three-way question about one table.

    `taken` is the outcome that takes the source's row; `units` are merged as one value each, and a row's letters say
    for each of them that it is `from_source`, or `disputed`, or the target's.
    """

    table_key: str
    fields: pa.Schema
    units: tuple[tuple[str, ...], ...]
    folder: RowFolder
    listed_max: int
    taken: str
    from_source: str
    disputed: str

    @property
    def conflict_schema(self) -> pa.Schema:
        image = packed_struct(self.fields)
        texts = [pa.field(name, pa.string()) for name in ("id", "outcome", "units")]
        return pa.schema([*texts, *(pa.field(side, image) for side in SIDES), _POSITION_FIELD])


@dataclass(frozen=True)
class Decided:
    """One partition's rows to write, ids to delete, and rows that the driver has to decide."""

    place: int
    rows: RowFile | None
    gone: RowFile | None
    conflicts: RowFile | None
    inserts: int
    updates: int
    deletes: int
    listed: tuple[tuple[str, str], ...] = field(default=(), repr=False)


def write_decided(batches: Iterator[pa.RecordBatch], task: DecideTask) -> Iterator[pa.RecordBatch]:
    """One answer for the partition, whose rows are in the order of their ids. For `DataFrame.mapInArrow`."""
    yield answered(partial(_decided, batches, task))


def _decided(batches: Iterator[pa.RecordBatch], task: DecideTask) -> Decided:
    # Only executors import it, and only here: which partition this is.
    from pyspark import TaskContext

    context = TaskContext.get()
    out = _Out(task, context.partitionId() if context is not None else 0)
    for batch in joined(batches):
        if batch.num_rows:
            out.take(batch)
    return out.close()


class _Out:
    def __init__(self, task: DecideTask, place: int) -> None:
        self._task = task
        self._place = place
        self._next = place << _PARTITION_BITS
        name = task.table_key
        self._rows = RowFileWriter(task.folder, name, task.fields.append(_POSITION_FIELD), POSITION)
        self._gone = RowFileWriter(task.folder, f"{name}-gone", GONE)
        self._conflicts = RowFileWriter(task.folder, f"{name}-conflicts", task.conflict_schema, POSITION)
        self._counts = {"insert": 0, "update": 0, "delete": 0}
        self._listed: list[tuple[str, str]] = []

    def take(self, batch: pa.RecordBatch) -> None:
        task, size = self._task, batch.num_rows
        positions = pa.array(np.arange(self._next, self._next + size, dtype=np.int64))
        self._next += size
        ids, letters = batch.column("id").cast(pa.string()), batch.column("units").cast(pa.string())
        sides = {side: landed_rows(batch.column(side), task.fields) for side in SIDES}
        taken = _flags(pc.equal(batch.column("outcome"), task.taken))
        merged = _flags(pc.invert(pc.match_substring(letters, task.disputed)))
        written = (taken & _flags(sides["source"].is_valid())) | (
            merged & _flags(pc.match_substring(letters, task.from_source))
        )
        gone, open_ = taken & ~_flags(sides["source"].is_valid()), ~taken & ~merged
        if written.any():
            columns = [*_merged_columns(ids, letters, sides, taken, task), positions]
            kept = [column.filter(pa.array(written)) for column in columns]
            self._rows.append(pa.RecordBatch.from_arrays(kept, schema=task.fields.append(_POSITION_FIELD)))
        self._gone.append(pa.RecordBatch.from_arrays([ids.filter(pa.array(gone))], schema=GONE))
        if open_.any():
            columns = [ids, batch.column("outcome").cast(pa.string()), letters, *sides.values(), positions]
            whole = pa.RecordBatch.from_arrays(columns, schema=task.conflict_schema)
            self._conflicts.append(whole.filter(pa.array(open_)))
        self._count(ids, written, gone, _flags(sides["target"].is_valid()))

    def _count(self, ids: pa.Array, written: Flags, gone: Flags, had: Flags) -> None:
        for op, hit in (("insert", written & ~had), ("update", written & had), ("delete", gone)):
            self._counts[op] += int(hit.sum())
        for row in np.flatnonzero(written | gone)[: max(0, self._task.listed_max - len(self._listed))].tolist():
            self._listed.append((ids[row].as_py(), "delete" if gone[row] else "update" if had[row] else "insert"))

    def close(self) -> Decided:
        files = (self._rows.close(), self._gone.close(), self._conflicts.close())
        counts = (self._counts["insert"], self._counts["update"], self._counts["delete"])
        return Decided(self._place, *files, *counts, tuple(self._listed))


def _merged_columns(
    ids: pa.Array, letters: pa.Array, sides: dict[str, pa.StructArray], taken: Flags, task: DecideTask
) -> list[pa.Array]:
    """The columns with each unit from its side; what they say of rows that are not to be written means nothing."""
    source = unpacked_rows(sides["source"], task.fields)
    columns = {name: source.column(name) for name in task.fields.names if name != "id"}
    if letters.null_count < len(letters):
        target = unpacked_rows(sides["target"], task.fields)
        size = len(ids)
        for number, unit in enumerate(task.units):
            letter = pc.utf8_slice_codeunits(letters, number, number + 1)
            chosen = taken | _flags(pc.equal(letter, task.from_source))
            picks = pa.array(np.where(chosen, 0, size) + np.arange(size))
            for name in unit:
                columns[name] = pa.concat_arrays([columns[name], target.column(name)]).take(picks)
    return [ids if name == "id" else columns[name] for name in task.fields.names]


def _flags(mask: pa.Array) -> Flags:
    """Where the answer is true; null is not."""
    return np.asarray(pc.fill_null(mask, False).to_numpy(zero_copy_only=False), np.bool_)


@dataclass(frozen=True)
class RowRulesTask:
    """What the rows of one table say by themselves."""

    catalog: Catalog
    table_key: str
    reading: Reading


def check_row_rules(group: Sequence[RowFile], task: RowRulesTask) -> list[tuple[str, Violation]]:
    type_ = task.catalog.find_table(task.table_key)
    assert type_ is not None
    return [found for file in group for batch in task.reading.batches(file) for found in row_violations(type_, batch)]
