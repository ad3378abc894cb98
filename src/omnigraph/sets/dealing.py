"""Deals rows into parts by a hash of some columns.

Holds: rows that agree in these columns are in the same part, whatever batch or process they come from.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Numbers: TypeAlias = "np.ndarray[Any, Any]"
# Odd numbers with bits in no order: a product with them spreads every bit to all higher ones.
_MIX, _WORD_MIX, _COLUMN_MIX = (np.uint64(n) for n in (0x9E3779B97F4A7C15, 0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53))
_WORD_BYTES = 8
# Few texts are longer, and each of them takes its own time anyway.
_LONG_TEXT_BYTES = 1024


def dealt(batch: pa.RecordBatch, columns: Sequence[str], parts: int) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The number of each part that gets rows, and the rows, as slices of one batch."""
    places = (row_hashes([batch.column(name) for name in columns]) % np.uint64(parts)).astype(_part_type(parts))
    order = np.argsort(places, kind="stable")
    bounds = np.searchsorted(places[order], np.arange(parts + 1))
    ordered = batch.take(pa.array(order))
    for part in range(parts):
        first, end = int(bounds[part]), int(bounds[part + 1])
        if end > first:
            yield part, ordered.slice(first, end - first)


def _part_type(parts: int) -> type[np.unsignedinteger[Any]]:
    """Small numbers are sorted by counting them."""
    return np.uint16 if parts <= 1 << 16 else np.uint64


def compact(batch: pa.RecordBatch) -> pa.RecordBatch:
    """A slice of its own, so that it does not hold the whole batch in memory."""
    return pa.RecordBatch.from_arrays([pa.concat_arrays([column]) for column in batch.columns], schema=batch.schema)


def row_hashes(columns: Sequence[pa.Array]) -> Numbers:
    """Equal values have equal hashes, whatever batch they are in."""
    whole = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        whole = whole * _COLUMN_MIX + _hashes(column)
    mixed: Numbers = (whole * _MIX) >> np.uint64(33)
    return mixed


def _hashes(column: pa.Array) -> Numbers:
    if pa.types.is_string(column.type):
        # Bytes may lie where there is no value.
        return _text_hashes(column.fill_null("") if column.null_count else column)
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
    """Mixed from the bytes of each text, eight at a time, for a whole column at once."""
    offsets = _offsets(column).astype(np.int64)
    lengths, starts = np.diff(offsets), offsets[:-1] - offsets[0]
    hashes: Numbers = lengths.astype(np.uint64)
    if not lengths.any():
        return hashes
    data = np.frombuffer(column.buffers()[2], np.uint8)[offsets[0] : offsets[-1]]
    for row in np.flatnonzero(lengths > _LONG_TEXT_BYTES):
        whole = data[starts[row] : starts[row] + lengths[row]].tobytes()
        hashes[row] = int.from_bytes(hashlib.blake2b(whole, digest_size=8).digest(), "little")
    # Words that begin at every byte; the last ones reach beyond the end.
    words: Numbers = np.ndarray((len(data) + 1,), "<u8", np.append(data, np.zeros(8, np.uint8)), strides=(1,))
    going_on = (lengths > 0) & (lengths <= _LONG_TEXT_BYTES)
    # Most often the texts of a column are of like length, and then no row need be picked.
    rows: Any = slice(None)
    at = 0
    while going_on.any():
        rows = rows if going_on.all() else np.arange(len(lengths))[rows][going_on]
        left = lengths[rows] - at
        found = words[starts[rows] + at]
        cut = left < _WORD_BYTES
        found[cut] &= (np.uint64(1) << (left[cut] * 8).astype(np.uint64)) - np.uint64(1)
        mixed = (hashes[rows] ^ found) * _WORD_MIX
        hashes[rows] = (mixed ^ (mixed >> np.uint64(32))) * _MIX
        going_on, at = left > _WORD_BYTES, at + _WORD_BYTES
    return hashes


def _offsets(column: pa.Array) -> np.ndarray[Any, Any]:
    whole = np.frombuffer(column.buffers()[1], np.int32)
    return whole[column.offset : column.offset + len(column) + 1]
