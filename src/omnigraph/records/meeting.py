"""Rows that share a value with others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def meets(batch: pa.RecordBatch, wanted: Mapping[str, pa.Array]) -> pa.RecordBatch:
    """The rows that hold one of the wanted values in its column."""
    hit = np.zeros(batch.num_rows, np.bool_)
    for name, values in wanted.items():
        if len(values):
            hit |= pc.is_in(batch.column(name), value_set=values).to_numpy(zero_copy_only=False)
    return batch.filter(pa.array(hit))
