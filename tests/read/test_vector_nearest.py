"""The nearest rows: exactly, and with an index as nearly as is promised."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from search_tables import COVERAGES, HISTORIES, VECTOR, forked, indexed, partly_indexed, table_of, vectors

from omnigraph.base.errors import BadRequest
from omnigraph.engine.read.search import vectors as vectors_module
from omnigraph.engine.read.search.vectors import cosine_distances, nearest_rows
from omnigraph.storage.tables import Table

pytestmark = pytest.mark.slow

DIM = 8
Numbers = Any


@pytest.fixture(autouse=True)
def indexes_of_small_tables_are_asked_too(monkeypatch):
    monkeypatch.setattr(vectors_module, "_READ_BYTES_MAX", 0)
    monkeypatch.setattr(vectors_module, "_INDEX_PART_MAX", 1.0)


def points(count: int, seed: int, dim: int = DIM) -> Numbers:
    """Random directions; every twentieth has no length."""
    made = np.random.default_rng(seed).standard_normal((count, dim)).astype(np.float32)
    made[::20] = 0
    return made


def clustered(count: int, seed: int, dim: int) -> Numbers:
    random = np.random.default_rng(seed)
    centres = random.standard_normal((40, dim)) * 3
    return (centres[random.integers(0, 40, count)] + random.standard_normal((count, dim))).astype(np.float32)


def distances(table: Table, query: Numbers) -> dict[int, float]:
    """Every row that has a distance, by the definition."""
    found = {}
    for row in table.read(["_rowid", "vec"]).to_pylist():
        if row["vec"] is not None and any(row["vec"]):
            vector, wanted = np.array(row["vec"], float), query.astype(float)
            found[row["_rowid"]] = 1 - vector @ wanted / np.linalg.norm(vector) / np.linalg.norm(wanted)
    return found


def nearest(table: Table, query: Numbers, limit: int, among: list[int] | None = None, exact: bool = True) -> list[int]:
    allowed = None if among is None else pa.array(among, pa.uint64())
    rows, found = nearest_rows(table, "vec", query, limit, allowed, exact)
    assert (rows.type, found.type) == (pa.uint64(), pa.float64())
    true = distances(table, query)
    assert found.to_pylist() == pytest.approx([true[row] for row in rows.to_pylist()])
    assert found.to_pylist() == sorted(found.to_pylist())
    return rows.to_pylist()


def expected(table: Table, query: Numbers, limit: int, among: list[int] | None = None) -> list[int]:
    true = distances(table, query)
    allowed = true if among is None else [row for row in true if row in set(among)]
    return sorted(allowed, key=true.__getitem__)[:limit]


def recall(found: list[int], wanted: list[int]) -> float:
    return len(set(found) & set(wanted)) / max(1, len(wanted))


@pytest.mark.parametrize("history", HISTORIES, ids=lambda history: history.__name__)
@pytest.mark.parametrize("coverage", COVERAGES, ids=lambda coverage: coverage.__name__)
def test_vector_search_is_exact_when_asked_to_be_and_near_enough_otherwise(tmp_path: Path, coverage, history):
    fresh = vectors(points(40, 2), nulls=[3], first=80)
    table = history(coverage(table_of(tmp_path, vectors(points(100, 1), nulls=[5, 70])), VECTOR), fresh)
    for seed in range(3):
        query = points(2, 10 + seed)[1]
        for limit in (1, 7, 500):
            wanted = expected(table, query, limit)
            assert nearest(table, query, limit) == wanted
            assert recall(nearest(table, query, limit, exact=False), wanted) >= 0.95


def test_vector_search_on_a_branch_finds_what_was_written_there_and_on_main_what_was_before(tmp_path: Path):
    main = indexed(table_of(tmp_path, vectors(points(100, 1))), VECTOR)
    query, fresh = points(2, 3)[1], vectors(points(30, 2), first=85)
    branch = forked(main)
    for history in HISTORIES:
        branch = history(branch, fresh)
        for table in (main, branch):
            for exact in (True, False):
                assert nearest(table, query, 10, exact=exact) == expected(table, query, 10), history.__name__


@pytest.mark.parametrize("make", [points, clustered], ids=["spread", "clustered"])
def test_vector_index_finds_at_least_95_of_100_of_the_nearest(tmp_path: Path, make):
    values = make(6000, 4, 16)
    table = partly_indexed(table_of(tmp_path, vectors(values), fragments=6), VECTOR)
    for limit in (1, 10, 100):
        found = []
        for query in make(20, 5, 16)[1:]:
            true = vectors_by_number(values, query)[:limit]
            rows, _ = nearest_rows(table, "vec", query, limit, None, False)
            found.append(recall(rows.to_pylist()[:limit], true))
        print(f"limit {limit}: recall {np.mean(found):.4f}, worst {min(found):.2f}")
        assert np.mean(found) >= 0.95


def vectors_by_number(values: Numbers, query: Numbers) -> list[int]:
    """Row numbers, which are the row ids of a table that was only appended to, nearest first."""
    norms = np.linalg.norm(values.astype(float), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        found = 1 - values.astype(float) @ query.astype(float) / norms / np.linalg.norm(query.astype(float))
    return [int(i) for i in np.argsort(found) if norms[i] > 0]


@pytest.mark.parametrize("few_max", [16_384, 0], ids=["looked-at-one-by-one", "searched"])
@pytest.mark.parametrize("exact", [True, False], ids=["exact", "by-index"])
def test_vector_search_returns_only_rows_among_those_given_and_as_many_as_there_are(
    tmp_path: Path, exact: bool, few_max: int, monkeypatch
):
    monkeypatch.setattr(vectors_module, "_TAKE_ROWS_MAX", few_max)
    table = partly_indexed(table_of(tmp_path, vectors(points(1500, 6))), VECTOR)
    query = points(2, 7)[1]
    rows = sorted(distances(table, query))
    for among in (rows[::2], rows[100:130], rows[-3:], rows[:1]):
        wanted = expected(table, query, 20, among)
        found = nearest(table, query, 20, among, exact)
        assert set(found) <= set(among)
        assert len(found) == len(wanted)
        assert recall(found, wanted) >= (1 if exact else 0.95)
    assert nearest(table, query, 20, [], exact) == []


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "by-index"])
def test_vector_rows_that_are_null_or_have_no_length_are_never_returned(tmp_path: Path, exact: bool):
    values = points(300, 8)
    table = indexed(table_of(tmp_path, vectors(values, nulls=range(1, 300, 3))), VECTOR)
    found = nearest(table, points(2, 9)[1], 1000, exact=exact)
    assert set(found) == {i for i in range(300) if i % 3 != 1 and i % 20 != 0}


@pytest.mark.parametrize("exact", [True, False], ids=["exact", "by-index"])
def test_vector_rows_as_near_as_the_last_one_are_all_returned_in_the_order_of_row_ids(tmp_path: Path, exact: bool):
    values = points(2000, 10)
    values[5::9] = values[5]
    table = indexed(table_of(tmp_path, vectors(values)), VECTOR)
    assert nearest(table, values[5], 3, exact=exact) == list(range(5, 2000, 9))
    assert nearest(table, values[5] * 2, 3, exact=exact) == list(range(5, 2000, 9))


def test_vector_index_is_asked_for_rows_it_covers_and_only_the_others_are_read(tmp_path: Path, monkeypatch):
    table = partly_indexed(table_of(tmp_path, vectors(points(1200, 13))), VECTOR)
    looked_at: list[int] = []

    def counted(found: pa.Array, query: Numbers) -> Numbers:
        looked_at.append(len(found))
        return cosine_distances(found, query)

    monkeypatch.setattr(vectors_module, "cosine_distances", counted)
    nearest_rows(table, "vec", points(2, 14)[1], 5, None, False)
    assert sum(looked_at) < 400 + 400, "the last of three fragments and some candidates"
    nearest_rows(table, "vec", points(2, 14)[1], 5, None, True)
    assert sum(looked_at) > 1200


def test_vector_search_without_a_vector_in_the_table_finds_nothing(tmp_path: Path):
    table = table_of(tmp_path, vectors(np.zeros((4, DIM)), nulls=[1]))
    assert nearest(table, np.ones(DIM, np.float32), 3) == []
    assert nearest(table, np.ones(DIM, np.float32), 0) == []


@pytest.mark.parametrize(
    "query",
    [np.zeros(DIM), np.full(DIM, np.nan), np.full(DIM, np.inf), np.ones(DIM + 1)],
    ids=["zero", "nan", "inf", "long"],
)
def test_vector_query_that_points_nowhere_is_refused(tmp_path: Path, query: Numbers):
    table = table_of(tmp_path, vectors(points(4, 11)))
    with pytest.raises(BadRequest):
        nearest_rows(table, "vec", query.astype(np.float32), 3, None, True)


numbers = st.floats(-(2.0**60), 2.0**60, width=32)


@settings(max_examples=100, deadline=None)
@given(
    hnp.arrays(np.float32, st.tuples(st.integers(0, 6), st.just(3)), elements=numbers),
    hnp.arrays(np.float32, 3, elements=numbers),
)
def test_vector_distances_are_cosine_distances_between_0_and_2(values: Numbers, query: Numbers):
    column = vectors(values, nulls=[2]).column("vec")
    found = cosine_distances(column, query)
    assert found.dtype == np.float64
    for number, distance in enumerate(found):
        a, b = values[number].astype(float), query.astype(float)
        if number == 2 or not a.any() or not b.any():
            assert np.isnan(distance)
        else:
            assert 0 <= distance <= 2
            assert distance == pytest.approx(1 - a @ b / (np.linalg.norm(a) * np.linalg.norm(b)), abs=1e-9)


def test_vector_distance_of_a_row_does_not_depend_on_the_rows_beside_it():
    values = np.random.default_rng(12).standard_normal((257, 33)).astype(np.float32)
    column = vectors(values).column("vec").combine_chunks()
    whole = cosine_distances(column, values[3])
    assert [cosine_distances(column.slice(i, 1), values[3])[0] for i in range(257)] == whole.tolist()
