"""Cosine distances, counted alike for every row wherever its vector lies: equal vectors are equally far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Numbers: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Vectors:
    """The vectors of some rows, ready to be compared."""

    places: Numbers
    """Where the vector of each row is among the values; -1 for a row without one."""
    values: Numbers
    lengths: Numbers

    @classmethod
    def of(cls, vectors: pa.FixedSizeListArray) -> Vectors:
        # `flatten` leaves out what nulls hide.
        flat = vectors.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        values = flat.reshape(-1, vectors.type.list_size)
        squares = np.einsum("ij,ij->i", values, values)
        present = vectors.is_valid().to_numpy(zero_copy_only=False)
        return cls(np.where(present, np.cumsum(present, dtype=np.int32) - 1, -1), values, np.sqrt(squares))

    @classmethod
    def joined(cls, parts: Sequence[Vectors]) -> Vectors:
        """The rows of all parts, one part after the other."""
        places, before = [], 0
        for part in parts:
            places.append(np.where(part.places < 0, -1, part.places + np.int32(before)))
            before += len(part.values)
        values = np.concatenate([part.values for part in parts])
        return cls(np.concatenate(places), values, np.concatenate([part.lengths for part in parts]))

    @property
    def nbytes(self) -> int:
        return int(self.places.nbytes + self.values.nbytes + self.lengths.nbytes)

    def distances(self, wanted: Numbers, rows: Numbers | None = None) -> Numbers:
        """How far each row, or each of some rows, is, in [0, 2]; nan for a null and for a vector without length."""
        places = self.places if rows is None else self.places[rows]
        found = np.full(len(places), np.nan)
        has_one = places >= 0
        at = places[has_one]
        if 2 * len(at) < len(self.values):
            found[has_one] = _distances(self.values[at], self.lengths[at], wanted)
        else:
            found[has_one] = _distances(self.values, self.lengths, wanted)[at]
        return found


def _distances(values: Numbers, lengths: Numbers, wanted: Numbers) -> Numbers:
    # Row by row and not by matrix product, whose rounding depends on which rows stand beside a row.
    along = np.einsum("ij,j->i", values, wanted)
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = along / (lengths * np.sqrt(wanted @ wanted))
    found: Numbers = np.clip(1 - cosines, 0, 2)
    return found
