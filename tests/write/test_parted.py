"""Rows that must meet are dealt into the same part, whatever type and batch they are in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omnigraph.sets.dealing import row_hashes

pytestmark = pytest.mark.slow

TYPES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=40)),
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.uint64(), st.integers(0, 2**64 - 1)),
    (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    (pa.float64(), st.floats(allow_nan=False)),
    (pa.float32(), st.floats(width=32, allow_nan=False)),
    (pa.bool_(), st.booleans()),
    (pa.date32(), st.dates()),
    (pa.timestamp("ms", tz="UTC"), st.integers(-(2**60), 2**60)),
]


@pytest.mark.parametrize(("type_", "values"), TYPES, ids=lambda t: str(t) if isinstance(t, pa.DataType) else "")
def test_a_value_has_one_hash_in_every_batch(type_: pa.DataType, values: st.SearchStrategy[Any]) -> None:
    @given(st.lists(st.none() | values, min_size=1, max_size=20), st.integers(0, 19))
    def holds(rows: list[Any], start: int) -> None:
        whole = pa.array(rows, type_)
        hashes = row_hashes([whole])
        start = min(start, len(rows) - 1)
        assert (row_hashes([whole.slice(start)]) == hashes[start:]).all()
        for k, row in enumerate(rows):
            if row is not None:
                assert row_hashes([pa.array([row], type_)])[0] == hashes[k]

    holds()


def test_both_zeros_are_one_value() -> None:
    zeros = row_hashes([pa.array([0.0, -0.0], pa.float64())])
    assert zeros[0] == zeros[1]
    assert math.copysign(1, -0.0) == -1


def test_similar_texts_spread_evenly() -> None:
    hashes = row_hashes([pa.array([f"person-{n:09d}" for n in range(20_000)])])
    counts = np.bincount((hashes % np.uint64(16)).astype(np.int64), minlength=16)
    assert counts.min() > 900
    assert counts.max() < 1600


def test_texts_of_every_length_have_a_hash_of_their_own_in_every_batch() -> None:
    texts = ["x" * length + end for length in [*range(40), *range(1015, 1035), 5_000] for end in ("", "a", "é")]
    texts = sorted(set(texts))
    hashes = row_hashes([pa.array(texts)])
    assert len(set(hashes.tolist())) == len(texts)
    backwards = row_hashes([pa.array(texts[::-1])])
    assert (backwards[::-1] == hashes).all()
    assert [int(row_hashes([pa.array([text])])[0]) for text in texts] == hashes.tolist()


def test_bytes_that_a_null_hides_do_not_count() -> None:
    shown = pa.array(["a", "hidden", "b"])
    hiding = pa.Array.from_buffers(pa.string(), 3, [pa.py_buffer(b"\x05"), *shown.buffers()[1:]])
    assert hiding.to_pylist() == ["a", None, "b"]
    assert row_hashes([hiding]).tolist() == row_hashes([pa.array(["a", None, "b"])]).tolist()


def test_the_order_of_columns_and_letters_counts() -> None:
    one, two = pa.array(["ab", "ba", "a"]), pa.array(["c", "c", "bc"])
    assert len(set(row_hashes([one, two]).tolist())) == 3
    assert row_hashes([one, two])[0] != row_hashes([two, one])[0]
