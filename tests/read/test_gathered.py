"""A large answer is gathered piece by piece, and is the same as one made at once."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.engine.read import gathered
from omnigraph.engine.read.result import QueryResult
from read.loaded_scenes import SCENES, broken_promises, made

pytestmark = pytest.mark.slow

COUNT = 200_000
ALL = "query q() { match { $p: P } return { $p.name, $p.n } order { $p.n desc } }"


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.Graph.init(str(tmp_path_factory.mktemp("large") / "graph"), "node P { name: String @key n: I64? }")
    names = pa.array([f"p{number:06d}" for number in range(COUNT)])
    graph.load_frames({"P": pa.table({"name": names, "n": pa.array(np.arange(COUNT) // 2)})}, mode="append")
    return graph


def test_every_case_gives_its_rows_when_all_answers_are_gathered(monkeypatch, tmp_path):
    monkeypatch.setattr(gathered, "GATHERED_ROWS_MIN", 0)
    monkeypatch.setattr(gathered, "_BATCH_ROWS", 2)
    assert broken_promises({name: made(tmp_path, scene) for name, scene in SCENES.items()}) == []


def test_a_large_answer_comes_in_batches_and_as_often_as_wanted(large):
    found = large.query(ALL)
    batches = list(found.to_batches())
    assert len(batches) > 5
    assert sum(batch.num_rows for batch in batches) == len(found) == COUNT
    again = pa.Table.from_batches(found.to_batches())
    assert again == found.to_arrow()
    # Ties are in the order of ids.
    assert again.slice(0, 3).to_pylist() == [
        {"p.name": f"p{COUNT - 2:06d}", "p.n": COUNT // 2 - 1},
        {"p.name": f"p{COUNT - 1:06d}", "p.n": COUNT // 2 - 1},
        {"p.name": f"p{COUNT - 4:06d}", "p.n": COUNT // 2 - 2},
    ]


def test_a_large_answer_keeps_only_numbers_until_it_is_read(large):
    large.query(ALL)
    before = pa.total_allocated_bytes()
    found: QueryResult = large.query(ALL)
    held = pa.total_allocated_bytes() - before
    whole = found.to_arrow().nbytes
    assert held < whole / 4, (held, whole)


def test_a_large_answer_outlives_the_writes_after_it(large):
    found = large.query(ALL)
    large.mutate('query q() { update P set { n: 0 } where name = "p000000" }')
    assert next(iter(found.to_batches())).num_rows > 0
    assert len(found.rows) == COUNT
