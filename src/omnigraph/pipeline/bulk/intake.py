"""The input of a bulk load, read by executors: files cut into splits, or frames by partition."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.catalog import Catalog, NodeType, TableType
from omnigraph.engine.write.intake import Intake, Progress
from omnigraph.engine.write.quarantine import Rejects
from omnigraph.pipeline.batch_bytes import read_by_size
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.rows import StagedRows
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.inputs import FILE_COLUMN, ROW_COLUMN, FrameInput
from omnigraph.pipeline.worker.decode import (
    REJECTED,
    Decoded,
    DecodeTask,
    FrameTask,
    count_splits,
    decode_frame,
    decode_splits,
)
from omnigraph.records.decode import POSITION
from omnigraph.records.faults import RAW, RejectedRow
from omnigraph.records.sources import Source
from omnigraph.records.splits import Split, counted, split_sources
from omnigraph.records.violations import Findings, Stage, Violation
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.row_files import RowFile

_POSITION_FIELD = pa.field(POSITION, pa.int64(), nullable=False)


class BulkIntake:
    """Gathers what executors decoded, whatever it was decoded from."""

    def __init__(self, desk: Desk, task: DecodeTask, scratch: Scratch, progress: Progress) -> None:
        self._desk = desk
        self._task = task
        self._scratch = scratch
        self._progress = progress
        self._names: list[str] = []
        self._decoded: list[Decoded] = []
        self._unnumbered: set[int] = set()

    def read_files(self, sources: Sequence[Source]) -> None:
        """NDJSON files, whose numbers follow those of the inputs before."""
        first = len(self._names)
        moved = [replace(source, number=first + source.number) for source in sources]
        self._names += [source.name for source in sources]
        splits = self._counted(split_sources(moved))
        # One file of rows for each group and table: few groups, so that fragments are not small.
        groups = self._desk.grouped(splits)
        self._gather(self._desk.answers(groups, partial(decode_splits, task=self._task), "reading the input"))

    def _counted(self, splits: Sequence[Split]) -> tuple[Split, ...]:
        cut = [split for split in splits if split.end is not None]
        if not cut:
            return tuple(splits)
        groups = self._desk.grouped(list(enumerate(cut)))
        found = self._desk.answers(groups, _counted_group, "counting lines")
        starts = dict(pair for group in found for pair in group)
        by_split = {split: starts[place] for place, split in enumerate(cut)}
        return counted(splits, [by_split.get(split, 0) for split in splits])

    def read_frame(self, given: FrameInput) -> None:
        type_ = _type_of(self._task.catalog, given)
        frame = _named(type_, given)
        files = _files_of(given) if given.is_located else ()
        task = FrameTask(self._task, given.table_key, len(self._names), FILE_COLUMN, ROW_COLUMN, files)
        if not files:
            self._unnumbered.add(len(self._names))
        self._names += files or [given.name]
        answer, doing = partial(decode_frame, task=task), f"reading {given.name}"
        self._gather(read_by_size(frame, lambda rows: self._desk.collected(rows, answer, doing)))

    def _gather(self, decoded: Sequence[Decoded]) -> None:
        self._decoded += decoded
        self._progress("read", sum(one.rows_read for one in self._decoded))

    @property
    def breaks_values(self) -> frozenset[str]:
        return frozenset(key for one in self._decoded for key in one.breaks_values)

    def intake(self) -> Intake:
        findings = Findings(self._task.listed_max)
        files: dict[str, list[RowFile]] = {}
        for one in self._decoded:
            findings.merge(one.findings)
            for table_key, file in one.files.items():
                files.setdefault(table_key, []).append(file)
        rows = {key: self._rows(key, sorted(found, key=lambda file: file.first)) for key, found in files.items()}
        rejects = self._rejects() if self._task.quarantine else None
        explicit = {key for one in self._decoded for key in one.explicit_ids}
        unnumbered = frozenset(self._unnumbered)
        return Intake(self._task.catalog, tuple(self._names), findings, rows, rejects, explicit, unnumbered)

    def _rows(self, table_key: str, files: Sequence[RowFile]) -> StagedRows:
        schema = self._task.catalog.arrow_schema(table_key).append(_POSITION_FIELD)
        return StagedRows(self._desk, schema, files)

    def _rejects(self) -> Rejects:
        raw = StagedRows(self._desk, RAW, [one.raw for one in self._decoded if one.raw is not None])
        rejects = Rejects(self._scratch, self._names, raw, frozenset(self._unnumbered))
        rejected = StagedRows(self._desk, REJECTED, [one.rejected for one in self._decoded if one.rejected is not None])
        for batch in rejected.batches():
            for row in batch.to_pylist():
                told = (row["type"], row["property"], row["reason"], row["message"])
                found = Violation(Stage(row["stage"]), row["position"], *told)
                id_, key = row["id"], row["table_key"]
                rejects.take_row(RejectedRow(row["position"], row["raw"], key, row["type"], id_, (found,)))
        return rejects


def _counted_group(group: Sequence[tuple[int, Split]]) -> list[tuple[int, int]]:
    return [(place, count) for (place, _), count in zip(group, count_splits([s for _, s in group]), strict=True)]


def _type_of(catalog: Catalog, given: FrameInput) -> TableType:
    type_ = catalog.find_table(given.table_key)
    if type_ is None:
        raise BadRequest(f"unknown type '{given.table_key}'", "See omnigraph schema show.")
    return type_


def _named(type_: TableType, given: FrameInput) -> DataFrame:
    """The frame, its columns checked against those of the table."""
    with spark_failures(f"reading the columns of {given.name}"):
        names = given.frame.columns
    known = [*type_.arrow_schema.names, *((FILE_COLUMN, ROW_COLUMN) if given.is_located else ())]
    for name in names:
        if name not in known:
            hint = f"It has: {', '.join(type_.arrow_schema.names)}."
            raise BadRequest(f"{type_.name} has no property '{name}'", hint)
        if names.count(name) > 1:
            raise BadRequest(f"column '{name}' of {type_.name} is given twice", "Drop one.")
    for end in () if isinstance(type_, NodeType) else ("src", "dst"):
        if end not in names:
            raise BadRequest(f"edges of {type_.name} need a column '{end}'", "Map it to the id of a node.")
    return given.frame


def _files_of(given: FrameInput) -> tuple[str, ...]:
    with spark_failures(f"listing the files of {given.name}"):
        found = given.frame.select(sf.col(FILE_COLUMN)).distinct().collect()
    return tuple(sorted(row[0] for row in found))
