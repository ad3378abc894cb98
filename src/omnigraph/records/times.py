"""Text of dates and moments, a whole column at a time.

Holds for both directions:
  1. Text covers the years 0001 to 9999 in UTC; what lies outside has only its integer form.
  2. Nothing is rounded: a fraction finer than a millisecond is not accepted unless its further digits are zeros.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

Ints = np.ndarray[Any, np.dtype[np.int64]]
Mask = np.ndarray[Any, np.dtype[np.bool_]]
_Bytes = np.ndarray[Any, np.dtype[np.uint8]]

DAY_MS = 86_400_000
FIRST_DAY = -719_162  # 0001-01-01
LAST_DAY = 2_932_896  # 9999-12-31
FIRST_MS = FIRST_DAY * DAY_MS
LAST_MS = (LAST_DAY + 1) * DAY_MS - 1
_DATE_BYTES = 10
_TIME_END = 19
_LENGTH_MAX = 64


def parse_days(texts: pa.Array) -> tuple[Ints, Mask]:
    """Days since the epoch for every `YYYY-MM-DD`, and which texts are such dates."""
    days, good = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    for rows, matrix in _by_length(texts, {_DATE_BYTES}):
        days[rows], good[rows] = _days(matrix)
    return days, good


def parse_ms(texts: pa.Array) -> tuple[Ints, Mask]:
    """Milliseconds since the epoch for every RFC 3339 text, and which texts are such moments."""
    ms, good = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.bool_)
    for rows, matrix in _by_length(texts, {_DATE_BYTES, *range(_TIME_END, _LENGTH_MAX + 1)}):
        ms[rows], good[rows] = _moments(matrix)
    good &= (ms >= FIRST_MS) & (ms <= LAST_MS)
    return ms, good


def _by_length(texts: pa.Array, lengths: set[int]) -> list[tuple[Ints, _Bytes]]:
    """Rows of equal length as a matrix of their bytes; other rows are left out."""
    if not len(texts) or texts.null_count == len(texts):
        return []
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, np.int32)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    content = np.frombuffer(data, np.uint8) if data is not None else np.zeros(0, np.uint8)
    sizes = np.diff(ends)
    found = []
    for length in lengths.intersection(np.unique(sizes).tolist()):
        rows = np.flatnonzero(sizes == length)
        found.append((rows, content[ends[rows][:, None] + np.arange(length)]))
    return found


def _number(matrix: _Bytes, first: int, last: int) -> tuple[Ints, Mask]:
    """The decimal digits of the columns from `first` to before `last`, and where they are digits."""
    digits = matrix[:, first:last] - np.uint8(48)
    value = np.zeros(len(matrix), np.int64)
    for column in range(last - first):
        value = value * 10 + digits[:, column]
    return value, np.asarray((digits < 10).all(axis=1))


def _is(matrix: _Bytes, column: int, *characters: str) -> Mask:
    found: Mask = matrix[:, column] == ord(characters[0])
    for other in characters[1:]:
        found |= matrix[:, column] == ord(other)
    return found


def _days(matrix: _Bytes) -> tuple[Ints, Mask]:
    year, good_year = _number(matrix, 0, 4)
    month, good_month = _number(matrix, 5, 7)
    day, good_day = _number(matrix, 8, 10)
    good = good_year & good_month & good_day & _is(matrix, 4, "-") & _is(matrix, 7, "-")
    good &= (year >= 1) & (month >= 1) & (month <= 12) & (day >= 1)
    months = np.where(good, (year - 1970) * 12 + month - 1, 0)
    starts = months.astype("M8[M]").astype("M8[D]").astype(np.int64)
    after = (months + 1).astype("M8[M]").astype("M8[D]").astype(np.int64)
    days = starts + day - 1
    return days, good & (days < after)


def _moments(matrix: _Bytes) -> tuple[Ints, Mask]:
    days, good = _days(matrix)
    ms = days * DAY_MS
    length = matrix.shape[1]
    if length == _DATE_BYTES:
        return ms, good
    for first, limit, scale in ((11, 24, 3_600_000), (14, 60, 60_000), (17, 60, 1_000)):
        value, digits = _number(matrix, first, first + 2)
        good &= digits & (value < limit)
        ms += value * scale
    good &= _is(matrix, 10, "T", " ") & _is(matrix, 13, ":") & _is(matrix, 16, ":")
    is_utc = _is(matrix, length - 1, "Z")
    is_offset = _is(matrix, length - 6, "+", "-") & (length >= _TIME_END + 6)
    bare = ~is_utc & ~is_offset
    for chosen, suffix in ((bare, 0), (is_utc, 1), (is_offset & ~is_utc, 6)):
        rows = np.flatnonzero(chosen)
        if not len(rows):
            continue
        part = matrix[rows]
        fraction_ms, fine = _fraction(part, length - suffix)
        ms[rows] += fraction_ms
        if suffix == 6:
            offset_ms, known = _offset(part)
            ms[rows] -= offset_ms
            fine &= known
        good[rows] &= fine
    return ms, good


def _fraction(matrix: _Bytes, end: int) -> tuple[Ints, Mask]:
    """The milliseconds of `.ddd…` between the seconds and the zone; nothing at all is zero."""
    width = end - _TIME_END
    if width == 0:
        return np.zeros(len(matrix), np.int64), np.ones(len(matrix), np.bool_)
    if width < 2:
        return np.zeros(len(matrix), np.int64), np.zeros(len(matrix), np.bool_)
    kept = min(width - 1, 3)
    first = _TIME_END + 1
    value, good = _number(matrix, first, first + kept)
    beyond = matrix[:, first + kept : end]
    good &= _is(matrix, _TIME_END, ".") & (beyond == ord("0")).all(axis=1)
    return value * 10 ** (3 - kept), good


def _offset(matrix: _Bytes) -> tuple[Ints, Mask]:
    start = matrix.shape[1] - 6
    hours, good_hours = _number(matrix, start + 1, start + 3)
    minutes, good_minutes = _number(matrix, start + 4, start + 6)
    good = good_hours & good_minutes & _is(matrix, start + 3, ":") & (hours < 24) & (minutes < 60)
    offset_ms = (hours * 60 + minutes) * 60_000
    return np.where(_is(matrix, start, "-"), -offset_ms, offset_ms), good
