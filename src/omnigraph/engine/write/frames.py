"""Frames as loads: Arrow tables, pandas and polars frames, each column converted without loss.

What pandas calls missing (NaN, None, NaT, NA) is null, in float columns too. In Arrow and polars frames null and NaN
are told apart, and NaN stays NaN. A position is the number of the frame and of the row, counted from 1.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.catalog import Catalog, NodeType, TableType
from omnigraph.engine.write.intake import Intake, Progress, SpooledIntake
from omnigraph.engine.write.quarantine import Rejects
from omnigraph.records.frames import FrameRows
from omnigraph.records.violations import FILE_SHIFT, Findings
from omnigraph.sets.scratch import Scratch
from omnigraph.settings import Settings

Frame: TypeAlias = Any
"""A pyarrow Table, or anything with `__arrow_c_stream__` or `to_arrow`, or a pandas DataFrame.

A pyarrow RecordBatchReader is read a batch at a time; of everything else all rows are in memory."""

_ENDS = {"from": "src", "to": "dst"}


def read_frames(
    frames: Mapping[str, Frame],
    catalog: Catalog,
    settings: Settings,
    scratch: Scratch,
    max_errors: int,
    quarantine: bool,
    progress: Progress,
) -> Intake:
    names = tuple(frames)
    rejects = Rejects(scratch, names) if quarantine else None
    intake = Intake(catalog, names, Findings(max_errors), rejects=rejects)
    spools = SpooledIntake(intake, scratch)
    tables = [(table_type(catalog, name), _arrow(name, frame)) for name, frame in frames.items()]
    for type_, table in tables:
        _names(type_, table)
    seen = 0
    progress("read", 0)
    for number, (type_, table) in enumerate(tables):
        row = 1
        for batch in _batches(type_, table, settings.load_batch_rows):
            if batch.num_rows:
                first = (number << FILE_SHIFT) + row
                decoder = FrameRows(catalog, type_, batch, np.arange(first, first + batch.num_rows, dtype=np.int64))
                if rejects is not None:
                    rejects.keep_raw(decoder.raw())
                rows = decoder.decode()
                if decoder.has_explicit_ids:
                    intake.explicit_ids.add(type_.table_key)
                decoder.tell(intake.findings, rejects.take_row if rejects is not None else None)
                if rows.num_rows:
                    spools.take(type_.table_key, rows)
            row += batch.num_rows
            seen += batch.num_rows
            progress("read", seen)
    return intake


def table_type(catalog: Catalog, name: str) -> TableType:
    """The type of a name, or of a table key where a node and an edge share the name."""
    found: list[TableType] = [t for t in (catalog.find_table(name),) if t is not None]
    found = found or [t for t in (catalog.find_node(name), catalog.find_edge(name)) if t is not None]
    if not found:
        raise BadRequest(f"unknown type '{name}'", "See omnigraph schema show.")
    if len(found) > 1:
        raise BadRequest(f"'{name}' is a node and an edge type", f"Use 'node:{name}' or 'edge:{name}'.")
    return found[0]


def _arrow(name: str, frame: Frame) -> pa.Table | pa.RecordBatchReader:
    if isinstance(frame, pa.Table | pa.RecordBatchReader):
        return frame
    if isinstance(frame, pa.RecordBatch):
        return pa.Table.from_batches([frame])
    if type(frame).__module__.split(".")[0] == "pandas":
        try:
            return pa.Table.from_pandas(frame, preserve_index=False)
        except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
            raise BadRequest(f"frame '{name}' cannot be read: {error}", "Give every column one type.") from error
    if hasattr(frame, "to_arrow"):
        return frame.to_arrow()
    if hasattr(frame, "__arrow_c_stream__"):
        return pa.table(frame)
    raise BadRequest(f"'{name}' is no frame: {type(frame).__name__}", "Give an Arrow, pandas or polars table.")


def _batches(type_: TableType, table: pa.Table | pa.RecordBatchReader, rows: int) -> Iterator[pa.RecordBatch]:
    """The rows under their stored names; those of a reader are read as they are needed."""
    names = _names(type_, table)
    for batch in table.to_batches(rows) if isinstance(table, pa.Table) else table:
        named = pa.RecordBatch.from_arrays(batch.columns, names=names)
        yield from (named.slice(start, rows) for start in range(0, named.num_rows, rows))


def _names(type_: TableType, table: pa.Table | pa.RecordBatchReader) -> list[str]:
    """The columns with edges' ends under their stored names; unknown and repeated ones are refused."""
    names = [_ENDS.get(n, n) if not isinstance(type_, NodeType) else n for n in table.schema.names]
    known = [*type_.arrow_schema.names]
    for name in names:
        if name not in known:
            raise BadRequest(f"{type_.name} has no property '{name}'", f"It has: {', '.join(known)}.")
        if names.count(name) > 1:
            raise BadRequest(f"column '{name}' of {type_.name} is given twice", "Drop one.")
    for end in ("src", "dst") if not isinstance(type_, NodeType) else ():
        if end not in names:
            other = {"src": "from", "dst": "to"}[end]
            raise BadRequest(f"edges of {type_.name} need a column '{other}'", f"'{end}' is understood too.")
    return names
