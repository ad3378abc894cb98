"""Looks through the answers of rules on executors, so that the driver gets counts and a few rows, never all."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import Catalog
from omnigraph.pipeline.worker.rows import Reading
from omnigraph.pipeline.worker.tasks import answered
from omnigraph.records.meeting import meets
from omnigraph.records.values import check_values
from omnigraph.records.violations import Findings, Violation
from omnigraph.storage.row_files import RowFile, RowFileWriter, RowFolder


@dataclass(frozen=True)
class FirstRows:
    """How many rows a partition had, and the first of them by position."""

    count: int
    rows: bytes | None


def first_rows(batches: Iterator[pa.RecordBatch], listed_max: int) -> Iterator[pa.RecordBatch]:
    """One answer for the partition. For `DataFrame.mapInArrow`."""
    yield answered(lambda: _first_rows(batches, listed_max))


def _first_rows(batches: Iterator[pa.RecordBatch], listed_max: int) -> FirstRows:
    count, kept = 0, None
    for batch in batches:
        if batch.num_rows:
            count += batch.num_rows
            table = pa.Table.from_batches([batch])
            kept = smallest(table if kept is None else pa.concat_tables([kept, table]), listed_max)
    if kept is None:
        return FirstRows(0, None)
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, kept.schema) as writer:
        writer.write_table(kept)
    return FirstRows(count, sink.getvalue().to_pybytes())


def smallest(table: pa.Table, count: int) -> pa.Table:
    """The first rows by position, rows without one last and by their other columns."""
    others = [name for name in table.schema.names if name != "position"]
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in ["position", *others]])
    return table.take(order.slice(0, count))


def spill_rows(batches: Iterator[pa.RecordBatch], folder: RowFolder, schema: bytes) -> Iterator[pa.RecordBatch]:
    """The partition as a file of rows; one answer. For `DataFrame.mapInArrow`."""
    yield answered(lambda: _spill_rows(batches, folder, schema))


def _spill_rows(batches: Iterator[pa.RecordBatch], folder: RowFolder, packed: bytes) -> RowFile | None:
    schema = pa.ipc.read_schema(pa.py_buffer(packed))
    out = RowFileWriter(folder, "answer", schema)
    for batch in batches:
        columns = [column.cast(field.type) for column, field in zip(batch.columns, schema, strict=True)]
        out.append(pa.RecordBatch.from_arrays(columns, schema=schema))
    return out.close()


@dataclass(frozen=True)
class ValueTask:
    """Stage 5 for the rows of one table. `sink`: every violation is wanted, not only the first."""

    catalog: Catalog
    table_key: str
    reading: Reading
    listed_max: int
    sink: bool


def check_file_values(group: Sequence[RowFile], task: ValueTask) -> tuple[Findings, list[Violation]]:
    type_ = task.catalog.find_table(task.table_key)
    assert type_ is not None
    told: list[Violation] = []
    findings = Findings(0 if task.sink else task.listed_max, sink=told.append if task.sink else None)
    for file in group:
        for batch in task.reading.batches(file):
            check_values(type_, batch, findings)
    return findings, told


@dataclass(frozen=True)
class MeetingTask:
    """Which rows are looked for: those that hold one of the wanted values in its column."""

    reading: Reading
    wanted: Mapping[str, pa.Array]
    folder: RowFolder


def meeting_rows(group: Sequence[RowFile], task: MeetingTask) -> RowFile | None:
    out: RowFileWriter | None = None
    for file in group:
        for batch in task.reading.batches(file):
            found = meets(batch, task.wanted)
            if out is None:
                out = RowFileWriter(task.folder, "meeting", batch.schema)
            out.append(found)
    return None if out is None else out.close()
