"""Cosine distances, counted alike for every row wherever its vector lies: equal vectors are equally far."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

Numbers: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Vectors:
    """The vectors of some rows, ready to be compared."""

    present: Numbers
    """Which rows have one."""
    values: Numbers
    lengths: Numbers

    @classmethod
    def of(cls, vectors: pa.FixedSizeListArray) -> Vectors:
        # `flatten` leaves out what nulls hide.
        flat = vectors.flatten().to_numpy(zero_copy_only=False).astype(np.float64)
        values = flat.reshape(-1, vectors.type.list_size)
        squares = np.einsum("ij,ij->i", values, values)
        return cls(vectors.is_valid().to_numpy(zero_copy_only=False), values, np.sqrt(squares))

    @property
    def nbytes(self) -> int:
        return int(self.present.nbytes + self.values.nbytes + self.lengths.nbytes)

    def distances(self, wanted: Numbers) -> Numbers:
        """How far each row is, in [0, 2]; nan for a null and for a vector without length."""
        found = np.full(len(self.present), np.nan)
        # Row by row and not by matrix product, whose rounding depends on which rows stand beside a row.
        along = np.einsum("ij,j->i", self.values, wanted)
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = along / (self.lengths * np.sqrt(wanted @ wanted))
        found[self.present] = np.clip(1 - cosines, 0, 2)
        return found
