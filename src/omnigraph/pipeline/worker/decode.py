"""Stages 2 and 3 on executors: pieces of files, or partitions of frames, to files of rows of each table.

Holds for every answer: each row of the piece is in the file of its table, or among the rejects, or counted in
`findings`; rows keep the order of the input.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from omnigraph.base.batches import joined
from omnigraph.base.errors import LimitExceeded
from omnigraph.catalog.catalog import Catalog, NodeType, TableType
from omnigraph.pipeline.worker.pieces import Numbers
from omnigraph.pipeline.worker.tasks import answered
from omnigraph.records.decode import POSITION, Decoder
from omnigraph.records.faults import RAW, RejectedRow
from omnigraph.records.frames import FrameRows
from omnigraph.records.splits import Split, count_starts, read_split
from omnigraph.records.values import check_values
from omnigraph.records.violations import FILE_SHIFT, Findings
from omnigraph.storage.row_files import RowFile, RowFileWriter, RowFolder

REJECTED = pa.schema(
    [pa.field("position", pa.int64()), pa.field("stage", pa.int8())]
    + [pa.field(name, pa.string()) for name in ("table_key", "type", "id", "property", "reason", "message")]
    + [pa.field("raw", pa.binary())]
)
# A frame has no lines: its rows are numbered by partition and place.
PARTITION_ROWS_BITS = 26


@dataclass(frozen=True)
class DecodeTask:
    """What every piece of one load is decoded by."""

    catalog: Catalog
    folder: RowFolder
    max_line_bytes: int
    batch_rows: int
    listed_max: int
    quarantine: bool


@dataclass
class Decoded:
    """What one task wrote. `breaks_values`: tables of which some row breaks a `@range` or `@check`."""

    files: dict[str, RowFile] = field(default_factory=dict)
    findings: Findings = field(default_factory=Findings)
    rejected: RowFile | None = None
    raw: RowFile | None = None
    breaks_values: frozenset[str] = frozenset()
    rows_read: int = 0
    explicit_ids: frozenset[str] = frozenset()


def count_splits(group: Sequence[Split]) -> list[int]:
    return [count_starts(split) for split in group]


def decode_splits(group: Sequence[Split], task: DecodeTask) -> Decoded:
    out = _Out(task)
    decoder = Decoder(
        task.catalog,
        max_line_bytes=task.max_line_bytes,
        rejects=out.reject if task.quarantine else None,
    )
    for split in group:
        for lines in read_split(split, max_line_bytes=task.max_line_bytes, batch_rows=task.batch_rows):
            if task.quarantine:
                texts = pa.array(lines.lines, pa.binary())
                out.keep_raw(pa.RecordBatch.from_arrays([pa.array(lines.positions), texts], schema=RAW))
            found = Findings(0) if task.quarantine else out.findings
            for table_key, batch in decoder.decode(lines, found).items():
                out.take(table_key, batch)
            out.rows_read += len(lines.lines) + len(lines.oversized)
    out.explicit_ids |= decoder.explicit_ids
    return out.close()


@dataclass(frozen=True)
class FrameTask:
    """How a partition of a frame is read. `files` are the names of its files, where rows know theirs."""

    decode: DecodeTask
    table_key: str
    number: int
    file_column: str
    row_column: str
    files: tuple[str, ...] = ()


def decode_frame(batches: Iterator[pa.RecordBatch], task: FrameTask) -> Iterator[pa.RecordBatch]:
    """One answer for the partition. For `DataFrame.mapInArrow`."""
    yield answered(lambda: _decode_frame(batches, task))


def _decode_frame(batches: Iterator[pa.RecordBatch], task: FrameTask) -> Decoded:
    # Only executors import it, and only here: which partition this is.
    from pyspark import TaskContext

    context = TaskContext.get()
    partition = context.partitionId() if context is not None else 0
    out = _Out(task.decode)
    type_ = task.decode.catalog.find_table(task.table_key)
    assert type_ is not None
    for batch in joined(batches):
        if not batch.num_rows:
            continue
        positions = _located(batch, task) if task.files else _numbered(batch, task, partition, out.rows_read)
        kept = [n for n in batch.schema.names if n not in (task.file_column, task.row_column)]
        rows = FrameRows(task.decode.catalog, type_, batch.select(kept), positions, has_no_lines=not task.files)
        if task.decode.quarantine:
            out.keep_raw(rows.raw())
        decoded = rows.decode()
        rows.tell(out.findings, out.reject if task.decode.quarantine else None)
        out.take(task.table_key, decoded)
        if rows.has_explicit_ids:
            out.explicit_ids.add(task.table_key)
        out.rows_read += batch.num_rows
    return out.close()


def _numbered(batch: pa.RecordBatch, task: FrameTask, partition: int, before: int) -> Numbers:
    if partition >> (FILE_SHIFT - PARTITION_ROWS_BITS) or (before + batch.num_rows) >> PARTITION_ROWS_BITS:
        raise LimitExceeded(
            f"partition {partition} of {task.table_key} is too large or one of too many",
            "Nothing was written. Repartition the frame: at most 16,384 partitions of 67 million rows.",
            limit="partition rows",
            value=1 << PARTITION_ROWS_BITS,
        )
    first = (task.number << FILE_SHIFT) + (partition << PARTITION_ROWS_BITS) + before + 1
    return np.arange(first, first + batch.num_rows, dtype=np.int64)


def _located(batch: pa.RecordBatch, task: FrameTask) -> Numbers:
    places = {name: task.number + place for place, name in enumerate(task.files)}
    named = batch.column(task.file_column).dictionary_encode()
    numbers = np.array([places[name] for name in named.dictionary.to_pylist()], np.int64)
    files: Numbers = numbers[named.indices.to_numpy()]
    lines = np.asarray(batch.column(task.row_column).to_numpy(zero_copy_only=False), np.int64)
    return (files << FILE_SHIFT) + lines


class _Out:
    """The files one task writes."""

    def __init__(self, task: DecodeTask) -> None:
        self._task = task
        self._writers: dict[str, RowFileWriter] = {}
        self._rejected: list[tuple[object, ...]] = []
        self._breaking: set[str] = set()
        self.findings = Findings(task.listed_max)
        self.rows_read = 0
        self.explicit_ids: set[str] = set()

    def take(self, table_key: str, batch: pa.RecordBatch) -> None:
        self._writer(table_key, batch.schema, POSITION).append(batch)
        type_ = self._task.catalog.find_table(table_key)
        if type_ is not None and self._may_break(type_) and not check_values(type_, batch, Findings(0)).all():
            self._breaking.add(table_key)

    def _may_break(self, type_: TableType) -> bool:
        has_rules = isinstance(type_, NodeType) and bool(type_.ranges or type_.checks)
        return has_rules and type_.table_key not in self._breaking

    def keep_raw(self, lines: pa.RecordBatch) -> None:
        self._writer("raw", RAW, "position").append(lines)

    def reject(self, row: RejectedRow) -> None:
        for found in row.violations[:1]:
            told = (found.property, found.reason, found.message)
            self._rejected.append((row.position, int(found.stage), row.table_key, found.type, row.id, *told, row.raw))
        if len(self._rejected) >= self._task.batch_rows:
            self._flush()

    def _flush(self) -> None:
        if self._rejected:
            columns = zip(*self._rejected, strict=True)
            arrays = [pa.array(column, f.type) for column, f in zip(columns, REJECTED, strict=True)]
            batch = pa.RecordBatch.from_arrays(arrays, schema=REJECTED)
            self._writer("rejected", REJECTED, "position").append(batch)
            self._rejected = []

    def _writer(self, name: str, schema: pa.Schema, position: str) -> RowFileWriter:
        if name not in self._writers:
            self._writers[name] = RowFileWriter(self._task.folder, name, schema, position)
        return self._writers[name]

    def close(self) -> Decoded:
        self._flush()
        files = {name: file for name, w in self._writers.items() if (file := w.close()) is not None}
        rejected, raw = files.pop("rejected", None), files.pop("raw", None)
        breaking, explicit = frozenset(self._breaking), frozenset(self.explicit_ids)
        return Decoded(files, self.findings, rejected, raw, breaking, self.rows_read, explicit)
