"""Small batches joined to larger ones."""

from __future__ import annotations

import pyarrow as pa
import pytest

from omnigraph.base.batches import joined


def batch(first: int, rows: int) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict({"n": pa.array(range(first, first + rows), pa.int64())})


@pytest.mark.parametrize(
    ("sizes", "rows_max", "bytes_max", "expected"),
    [
        ([], 10, 800, []),
        ([0], 10, 800, [0]),
        ([3, 3, 3, 3], 10, 800, [9, 3]),
        ([5, 5, 1], 10, 800, [10, 1]),
        ([3, 30, 3], 10, 800, [3, 30, 3]),
        ([3, 0, 3, 0, 3], 100, 6 * 8, [6, 3]),
        ([9, 1], 100, 8, [9, 1]),
    ],
)
def test_rows_keep_their_order_and_only_a_batch_that_was_larger_passes_a_limit(sizes, rows_max, bytes_max, expected):
    given = [batch(sum(sizes[:place]), rows) for place, rows in enumerate(sizes)]
    found = list(joined(iter(given), rows_max, bytes_max))
    assert [one.num_rows for one in found] == expected
    assert [n for one in found for n in one.column(0).to_pylist()] == list(range(sum(sizes)))
