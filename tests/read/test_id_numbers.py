"""Numbers of ids, however many are asked for at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from omnigraph.engine.read.hot import dictionary
from omnigraph.engine.read.hot.dictionary import ABSENT, Dictionary

KNOWN = 4_000


def names(numbers: list[int]) -> pa.ChunkedArray:
    half = len(numbers) // 2
    parts = [[f"id-{n}" for n in some] for some in (numbers[:half], numbers[half:])]
    return pa.chunked_array(parts, pa.string())


@pytest.mark.parametrize("asked", [1, 15, 16, 17, 400, 499, 501, 3_000])
def test_ids_have_the_same_numbers_however_many_are_asked_for_at_once(asked: int) -> None:
    found = Dictionary(names(list(range(KNOWN))))
    found.add_all(names([KNOWN + 7, KNOWN + 9]))  # kept apart from the others
    wanted = np.random.default_rng(asked).integers(0, KNOWN + 20, asked).tolist()
    later = {KNOWN + 7: KNOWN, KNOWN + 9: KNOWN + 1}
    assert found.find_all(names(wanted)).tolist() == [n if n < KNOWN else later.get(n, ABSENT) for n in wanted]


def test_ids_whose_hashes_are_equal_keep_their_own_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionary, "hash", lambda id: len(id), raising=False)
    found = Dictionary(names(list(range(1_000))))
    wanted = [999, 3, 500, 1_001, 77, *range(40)]
    assert found.find_all(names(wanted)).tolist() == [n if n < 1_000 else ABSENT for n in wanted]
    assert len(wanted) > dictionary._FEW
