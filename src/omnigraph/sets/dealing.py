"""Deals rows into parts by a hash of some columns.

Holds: rows that agree in these columns are in the same part, whatever batch or process they come from.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Numbers: TypeAlias = "np.ndarray[Any, Any]"
_WEIGHTS = np.random.default_rng(20).integers(0, 1 << 64, 4096, np.uint64) | np.uint64(1)
_MIX = np.uint64(0x9E3779B97F4A7C15)


def dealt(batch: pa.RecordBatch, columns: Sequence[str], parts: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The number of each part that gets rows, and the rows, as slices of one batch."""
    places = row_hashes([batch.column(name) for name in columns]) % np.uint64(parts)
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(parts + 1, dtype=np.uint64))
    ordered = batch.take(pa.array(order))
    for part in range(parts):
        first, end = int(bounds[part]), int(bounds[part + 1])
        if end > first:
            yield part, ordered.slice(first, end - first)


def compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A slice of its own, so that it does not hold the whole batch in memory."""
    return pa.RecordBatch.from_arrays([pa.concat_arrays([column]) for column in batch.columns], schema=batch.schema)


def row_hashes(columns: Sequence[pa.Array]) -> Numbers:
    """Equal values have equal hashes, whatever batch they are in."""
    whole = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        whole = whole * _WEIGHTS[0] + _hashes(column)
    mixed: Numbers = (whole * _MIX) >> np.uint64(33)
    return mixed


def _hashes(column: pa.Array) -> Numbers:
    if pa.types.is_string(column.type):
        return _text_hashes(column)
    if pa.types.is_floating(column.type):
        # Adding zero makes one of the two zeros.
        values = column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.float64) + 0.0
        return np.asarray(values.view(np.uint64) * _MIX)
    if pa.types.is_boolean(column.type):
        column = column.cast(pa.uint8())
    if pa.types.is_date32(column.type):
        column = column.cast(pa.int32())
    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.int64())
    return np.asarray(column.fill_null(0).to_numpy(zero_copy_only=False).astype(np.uint64) * _MIX)


def _text_hashes(column: pa.Array) -> Numbers:
    """A weighted sum of the bytes of each text, for a whole column at once."""
    offsets = _offsets(column)
    lengths = np.diff(offsets).astype(np.int64)
    hashes: Numbers = lengths.astype(np.uint64)
    if not lengths.any():
        return hashes
    data = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    starts = (offsets[:-1] - offsets[0]).astype(np.int64)
    place = np.arange(len(data), dtype=np.int64) - np.repeat(starts, lengths)
    weighted = data.astype(np.uint64) * _WEIGHTS[place & (len(_WEIGHTS) - 1)]
    filled = lengths > 0
    hashes[filled] += np.add.reduceat(weighted, starts[filled])
    return hashes


def _offsets(column: pa.Array) -> np.ndarray[Any, Any]:
    whole = np.frombuffer(column.buffers()[1], np.int32)
    return whole[column.offset : column.offset + len(column) + 1]
