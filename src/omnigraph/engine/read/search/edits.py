"""Which words are within a number of edits of a word; an edit inserts, deletes or replaces one character."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = "np.ndarray[Any, Any]"

_CELLS_AT_ONCE = 1 << 20


def within_edits(words: Sequence[str], wanted: str, edits: int) -> Numbers:
    """For each of the words whether its Levenshtein distance to `wanted` is at most `edits`."""
    lengths = np.array([len(word) for word in words], np.int64)
    # The distance is at least the difference in length and at most the greater length.
    near = np.maximum(lengths, len(wanted)) <= edits
    open_ = np.flatnonzero(~near & (np.abs(lengths - len(wanted)) <= edits))
    at_once = max(1, _CELLS_AT_ONCE // (len(wanted) + edits + 1))
    for first in range(0, len(open_), at_once):
        chosen = open_[first : first + at_once]
        near[chosen] = _distances([words[i] for i in chosen], lengths[chosen], wanted) <= edits
    return near


def _distances(words: list[str], lengths: Numbers, wanted: str) -> Numbers:
    """The distance of each word to `wanted`: one row of the usual table at a time, for all words together."""
    longest = int(lengths.max())
    letters = np.array(words, f"<U{max(1, longest)}").view(np.uint32).reshape(len(words), -1)[:, :longest]
    columns = np.arange(longest + 1, dtype=np.int32)
    row = np.tile(columns, (len(words), 1))
    for height, character in enumerate(wanted, start=1):
        below = row + 1
        below[:, 1:] = np.minimum(below[:, 1:], row[:, :-1] + (letters != ord(character)))
        below[:, 0] = height
        # An insertion costs one for each column to the right, so what counts is the least so far, less its column.
        row = np.minimum.accumulate(below - columns, axis=1) + columns
    return row[np.arange(len(words)), lengths]
