"""Row ids that only one of two sets has, in bounded memory.

Row ids are numbers given out one after the other, so a mark for each is small; sets whose numbers lie too far apart for
that are joined on disk.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.sets.scratch import Relation, Scratch

RowIds: TypeAlias = "np.ndarray[tuple[int], np.dtype[np.uint64]]"
Read: TypeAlias = Callable[[], Iterable[RowIds]]

_SCHEMA = pa.schema([pa.field("row_id", pa.uint64())])
_ONLY_HERE = "SELECT row_id FROM here ANTI JOIN there USING (row_id)"
# A byte each, for two sets.
_MARKS_MAX = 32 << 20


def only_in_one(scratch: Scratch, here: Read, there: Read, marks_max: int = _MARKS_MAX) -> tuple[list[RowIds], ...]:
    """What only the first set has and what only the second has, in pieces. Each set may be read more than once."""
    ours, theirs = _marked(here, marks_max), None
    if ours is not None:
        theirs = _marked(there, marks_max)
    if ours is None or theirs is None:
        return _joined(scratch, here, there), _joined(scratch, there, here)
    size = max(len(ours), len(theirs))
    ours, theirs = _widened(ours, size), _widened(theirs, size)
    return [_numbers(ours & ~theirs)], [_numbers(theirs & ~ours)]


def _numbers(marks: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> RowIds:
    return np.flatnonzero(marks).astype(np.uint64)


def _marked(read: Read, marks_max: int) -> np.ndarray[tuple[int], np.dtype[np.bool_]] | None:
    marks = np.zeros(0, np.bool_)
    for numbers in read():
        if not len(numbers):
            continue
        top = int(numbers.max()) + 1
        if top > marks_max:
            return None
        if top > len(marks):
            marks = _widened(marks, min(marks_max, max(top, 2 * len(marks))))
        marks[numbers.astype(np.int64)] = True
    return marks


def _widened(
    marks: np.ndarray[tuple[int], np.dtype[np.bool_]], size: int
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    wide = np.zeros(size, np.bool_)
    wide[: len(marks)] = marks
    return wide


def _joined(scratch: Scratch, here: Read, there: Read) -> list[RowIds]:
    with scratch.stream(_ONLY_HERE, {"here": _relation(here), "there": _relation(there)}) as batches:
        return [batch.column(0).to_numpy() for batch in batches]


def _relation(read: Read) -> Relation:
    def batches() -> Iterator[pa.RecordBatch]:
        for numbers in read():
            yield pa.RecordBatch.from_arrays([pa.array(numbers, pa.uint64())], schema=_SCHEMA)

    return Relation(_SCHEMA, batches, 0)
