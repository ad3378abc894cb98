"""A large answer: its rows are known, their values are gathered piece by piece as they are read, as often as wanted."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import pyarrow as pa

from omnigraph.engine.read.found import Found
from omnigraph.engine.read.rows import Rows

# Answers with fewer rows are made at once.
GATHERED_ROWS_MIN = 131_072
_BATCH_ROWS = 16_384


class Gathered:
    """`columns` gives the values of some of the rows."""

    def __init__(self, schema: pa.Schema, rows: Rows, columns: Callable[[Rows], Found]) -> None:
        self.schema = schema
        self.num_rows = rows.count
        self._rows = rows
        self._columns = columns
        # What is not in memory yet is read now: later the version may be gone.
        self._columns(rows.at(np.arange(min(1, rows.count))))

    def batches(self) -> Iterator[pa.RecordBatch]:
        for first in range(0, self.num_rows, _BATCH_ROWS):
            places = np.arange(first, min(first + _BATCH_ROWS, self.num_rows))
            yield from self._columns(self._rows.at(places)).batches()
