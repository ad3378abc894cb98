"""Batches of rows on their way through."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

# From here on a batch costs little beside its rows.
_ROWS_MAX, _BYTES_MAX = 50_000, 16 << 20


def joined(
    batches: Iterable[pa.RecordBatch], rows_max: int = _ROWS_MAX, bytes_max: int = _BYTES_MAX
) -> Iterator[pa.RecordBatch]:
    """The same rows in fewer batches, none larger than the limits unless it was."""
    held: list[pa.RecordBatch] = []
    rows = size = 0
    for batch in batches:
        if held and (rows + batch.num_rows > rows_max or size + batch.nbytes > bytes_max):
            yield pa.concat_batches(held)
            held, rows, size = [], 0, 0
        held.append(batch)
        rows, size = rows + batch.num_rows, size + batch.nbytes
    if held:
        yield pa.concat_batches(held)
