"""Looks through rows on executors, so that the driver gets counts and a few rows, never all."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from omnigraph.catalog.catalog import Catalog
from omnigraph.pipeline.worker.pieces import Reading
from omnigraph.records.meeting import meets
from omnigraph.records.values import check_values
from omnigraph.records.violations import Findings, Violation
from omnigraph.storage.row_files import RowFile, RowFileWriter, RowFolder


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
