"""Search through Graph.query: the same rows whatever an index covers, filters first, true distances, enough recall."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from search_tables import is_match

import omnigraph as og
from omnigraph.engine.read.hot import nodes as nodes_module
from omnigraph.engine.read.search import vectors as vectors_module
from omnigraph.settings import Settings
from omnigraph.storage.search import text_coverage, vector_coverage, vector_hits

pytestmark = pytest.mark.slow

SCHEMA = "node Doc { name: String @key  year: I32?  body: String? @index  vec: Vector(16)? @index }"
QUICK = Settings(storage_durability="os")
WORDS = ["fox", "Foxes", "the", "running", "run", "O'Neil", "café", "cafe", "42", "日本語", "-", "bears"]
ASKED = ["fox", "the fox", "run the fox", "café", "日本語", "zebra", "the", "", "fxo runing"]
TARGET = 0.95


def some_texts(count: int, seed: int) -> list[str | None]:
    choose = random.Random(seed)
    made = [" ".join(choose.choices(WORDS, k=choose.randint(0, 5))) for _ in range(count)]
    return [None if choose.random() < 0.1 else text for text in made]


def docs(first: int, texts: list[str | None]) -> pa.Table:
    names = [f"d{first + n:03d}" for n in range(len(texts))]
    years = pa.array([(first + n) % 4 for n in range(len(texts))], pa.int32())
    return pa.table({"name": names, "year": years, "body": pa.array(texts, pa.string())})


TEXTS = some_texts(90, 1)


@pytest.fixture(scope="module", params=["no index", "a partial index", "a full index"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    graph = og.Graph.init(str(tmp_path_factory.mktemp("library") / "graph"), SCHEMA, settings=QUICK)
    graph.load_frames({"Doc": docs(0, TEXTS[:60])}, mode="append", index=request.param != "no index")
    graph.load_frames({"Doc": docs(60, TEXTS[60:])}, mode="append", index=request.param == "a full index")
    table = graph.view().table("node:Doc")
    covered, fragments = len(text_coverage(table, "body")), len(table.dataset.get_fragments())
    assert fragments > 1
    assert {"no index": covered == 0, "a partial index": 0 < covered < fragments, "a full index": covered == fragments}[
        request.param
    ]
    return graph


def names(graph: og.Graph, source: str, *params: Any) -> list[str]:
    return [row["d.name"] for row in graph.query(source, *params)]


@pytest.mark.parametrize("function", ["search", "match_text", "fuzzy"])
@pytest.mark.parametrize("clause", ["", "$d.year = 1"])
def test_a_text_function_finds_what_reading_every_text_finds(library: og.Graph, function: str, clause: str) -> None:
    source = f"query q($t: String) {{ match {{ $d: Doc {clause} {function}($d.body, $t) }} return {{ $d.name }} }}"
    for asked in ASKED:
        matching = {f"d{n:03d}" for n, text in enumerate(TEXTS) if is_match(function, text, asked)}
        allowed = {f"d{n:03d}" for n in range(len(TEXTS)) if not clause or n % 4 == 1}
        assert sorted(names(library, source, {"t": asked})) == sorted(matching & allowed), asked


def test_relevance_is_given_to_exactly_the_rows_that_match_and_equals_come_by_id(library: og.Graph) -> None:
    shown = 'query q() { match { $d: Doc } return { $d.name, bm25($d.body, "run the fox") as s } }'
    ordered = 'query q() { match { $d: Doc } return { $d.name, bm25($d.body, "run the fox") as s } order { s } }'
    matching = {f"d{n:03d}" for n, text in enumerate(TEXTS) if is_match("search", text, "run the fox")}
    rows = library.query(shown).rows

    assert {row["d.name"] for row in rows if row["s"] is not None} == matching
    assert len(rows) == len(TEXTS)
    best_first = library.query(ordered).rows
    assert {row["d.name"] for row in best_first} == matching
    assert best_first == sorted(best_first, key=lambda row: (-row["s"], row["d.name"]))
    assert len({row["s"] for row in best_first}) < len(best_first), "some are equal"


@pytest.fixture
def index_hits(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Indexes of small tables are asked too; how many hits each was asked for."""
    found: list[int] = []

    def noted(table: Any, column: str, query: Any, count: int, probes: int) -> Any:
        found.append(count)
        return vector_hits(table, column, query, count, probes)

    monkeypatch.setattr(vectors_module, "vector_hits", noted)
    monkeypatch.setattr(nodes_module, "_VECTORS_BYTES_MAX", 0)
    monkeypatch.setattr(vectors_module, "_READ_BYTES_MAX", 0)
    monkeypatch.setattr(vectors_module, "_TAKE_ROWS_MAX", 100)
    monkeypatch.setattr(vectors_module, "_INDEX_PART_MAX", 1.0)
    return found


POINTS = np.random.default_rng(7).standard_normal((3_000, 16)).astype(np.float32)
POINTS[::50] = 0
NEAR = "query q($v: Vector(16)) {mark}{{ match {{ $d: Doc {clause} }} return {{ $d.name, nearest($d.vec, $v) as far }} "
NEAR += "order {{ far }} limit {limit} }}"


@pytest.fixture(scope="module")
def points(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """Most vectors in an index, the last ones not; every fiftieth has no length, and one is not there."""
    graph = og.Graph.init(str(tmp_path_factory.mktemp("points") / "graph"), SCHEMA, settings=QUICK)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(POINTS.ravel()), 16, mask=pa.array(np.arange(len(POINTS)) == 1))
    table = docs(0, [None] * len(POINTS)).drop(["body"]).append_column("vec", flat)
    graph.load_frames({"Doc": table.slice(0, 2_500)}, mode="append")
    graph.load_frames({"Doc": table.slice(2_500)}, mode="append", index=False)
    assert len(vector_coverage(graph.view().table("node:Doc"), "vec")) == 1
    return graph


def test_vectors_that_few_rows_have_are_kept_in_memory_however_many_rows_there_are(
    tmp_path: Path, index_hits: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # Room for every thirtieth vector and for a place per row, not for all vectors.
    monkeypatch.setattr(nodes_module, "_VECTORS_BYTES_MAX", 64 << 10)
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA, settings=QUICK)
    has_none = np.arange(len(POINTS)) % 30 != 3
    flat = pa.FixedSizeListArray.from_arrays(pa.array(POINTS.ravel()), 16, mask=pa.array(has_none))
    graph.load_frames({"Doc": docs(0, [None] * len(POINTS)).drop(["body"]).append_column("vec", flat)}, mode="append")
    query = np.random.default_rng(9).standard_normal(16)

    def nearest(limit: int, gone: Sequence[str] = ()) -> list[str]:
        every = truth(query, len(POINTS))
        return [name for name in every if int(name[1:]) % 30 == 3 and name not in gone][:limit]

    assert list(asked(graph, query, 10)) == nearest(10)
    first, second = nearest(2)
    graph.mutate("query m($d: String) { delete Doc where name = $d }", {"d": first})
    graph.mutate("query m($d: String) { update Doc set { year: 77 } where name = $d }", {"d": second})
    found = asked(graph, query, 10)

    assert list(found) == nearest(10, [first])
    assert found == pytest.approx({name: truth(query, len(POINTS))[name] for name in found}, abs=1e-6)
    assert index_hits == []


def test_nothing_is_near_where_the_type_is_newer_than_every_row(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), "node City { name: String @key }", settings=QUICK)
    graph.branch_create("before")
    graph.schema_apply("node City { name: String @key }\nnode Doc { name: String @key  vec: Vector(16)? }")
    shown = "query q($v: Vector(16)) { match { $d: Doc } return { $d.name, nearest($d.vec, $v) as far } }"
    for branch in ("before", "main"):
        for source in (shown, NEAR.format(mark="", clause="", limit=3)):
            assert graph.query(source, {"v": [1.0] * 16}, branch=branch).rows == []


def test_rows_that_an_index_still_names_after_a_compaction_are_not_found(tmp_path: Path, index_hits: list[int]) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA, settings=QUICK)
    flat = pa.FixedSizeListArray.from_arrays(pa.array(POINTS[1:41].ravel()), 16)
    rows = docs(1, ["run bears", "bears run"] * 20).append_column("vec", flat)
    graph.load_frames({"Doc": rows}, mode="append", index=True)
    every = "query q() { match { $d: Doc } return { $d.name } }"
    searches = [
        'query q() { match { $d: Doc search($d.body, "bears") } return { $d.name } }',
        'query q() { match { $d: Doc match_text($d.body, "run bears") } return { $d.name } }',
        'query q() { match { $d: Doc } return { $d.name, bm25($d.body, "bears") as s } order { s } limit 50 }',
    ]
    warm = og.Graph.open(graph.uri, "r")
    before = set(names(warm, every))
    graph.mutate('query m() { delete Doc where name < "d007" }')
    graph.write({"node:Doc": og.Compact()})
    left = before - {f"d{n:03d}" for n in range(1, 7)}

    for handle in (warm, og.Graph.open(graph.uri, "r")):
        found = [set(names(handle, source)) for source in searches]
        assert found == [left, {name for name in left if int(name[1:]) % 2}, left]
        assert set(asked(handle, POINTS[1], 40)) == left


def truth(query: Any, limit: int, year: int | None = None) -> dict[str, float]:
    """By the definition: one minus the cosine, of every vector that has a direction."""
    lengths = np.linalg.norm(POINTS.astype(float), axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        far = 1 - POINTS.astype(float) @ query / lengths / np.linalg.norm(query)
    places = [n for n in range(len(POINTS)) if lengths[n] and n != 1 and (year is None or n % 4 == year)]
    return {f"d{n:03d}": far[n] for n in sorted(places, key=lambda n: far[n])[:limit]}


def asked(graph: og.Graph, query: Any, limit: int, clause: str = "", mark: str = "", **more: Any) -> dict[str, float]:
    source = NEAR.format(mark=mark, clause=clause, limit=limit)
    return {row["d.name"]: row["far"] for row in graph.query(source, {"v": query.tolist()}, **more)}


@pytest.mark.parametrize("how", ["by annotation", "by option", "by setting"])
def test_an_exact_query_gives_the_nearest_rows_themselves(points: og.Graph, index_hits: list[int], how: str) -> None:
    mode = Settings(search_vector_mode="exact") if how == "by setting" else Settings()
    graph = og.Graph.open(points.uri, "r", settings=mode)
    mark, more = ("@exact " if how == "by annotation" else ""), {"exact": True} if how == "by option" else {}
    for query in np.random.default_rng(8).standard_normal((5, 16)):
        for clause, year in ("", None), ("$d.year = 2", 2):
            found = asked(graph, query, 10, clause, mark, **more)
            assert found == pytest.approx(truth(query, 10, year), abs=1e-6)
            assert list(found) == list(truth(query, 10, year))
    assert index_hits == []


@pytest.mark.parametrize(("clause", "year"), [("", None), ("$d.year = 2", 2)], ids=["all rows", "filtered rows"])
def test_an_index_finds_as_many_of_the_nearest_rows_as_promised_and_their_true_distances(
    points: og.Graph, index_hits: list[int], clause: str, year: int | None
) -> None:
    for limit in (1, 10, 100):
        recalls = []
        for query in np.random.default_rng(9).standard_normal((15, 16)):
            found, true = asked(points, query, limit, clause), truth(query, limit, year)
            every = truth(query, len(POINTS), year)
            assert len(found) == limit
            assert all(far == pytest.approx(every[name], abs=1e-6) for name, far in found.items())
            assert list(found.values()) == sorted(found.values())
            recalls.append(len(found.keys() & true.keys()) / limit)
        print(f"limit {limit}{' ' if clause else ''}{clause}: recall {np.mean(recalls):.4f}, worst {min(recalls):.2f}")
        assert np.mean(recalls) >= TARGET
    assert len(index_hits) >= 45


def test_vectors_without_a_direction_are_never_returned_however_many_are_asked_for(points: og.Graph) -> None:
    found = asked(points, np.ones(16), len(POINTS))

    assert len(found) == len(POINTS) - len(POINTS) // 50 - 1
    assert all(0 <= far <= 2 for far in found.values())


@pytest.mark.parametrize(
    "rest",
    [
        "return { $d.name } order { nearest($d.vec, $v) } limit 3",
        "return { $d.name, nearest($d.vec, $v) as far }",
        'return { $d.name } order { rrf(nearest($d.vec, $v), bm25($d.body, "x")) } limit 3',
    ],
    ids=["ordered", "returned", "fused"],
)
@pytest.mark.parametrize("clause", ["", '$d.name = "nobody"'])
def test_a_query_vector_of_length_zero_is_an_error_wherever_it_stands(points: og.Graph, rest: str, clause: str) -> None:
    source = f"query q($v: Vector(16)) {{ match {{ $d: Doc {clause} }} {rest} }}"
    with pytest.raises(og.BadRequest, match="the query vector has length zero"):
        points.query(source, {"v": [0.0] * 16})


def test_a_fusion_ranks_the_rows_that_match_and_scores_by_reciprocal_ranks(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA, settings=QUICK)
    vectors = pa.array([[1.0, n] + [0.0] * 14 for n in range(6)], pa.list_(pa.float32(), 16))
    table = docs(0, ["fox", "fox fox", "bear", None, "a fox ran", "fox"]).append_column("vec", vectors)
    graph.load_frames({"Doc": table}, mode="append")
    fused = """query q() { match { $d: Doc $d.year < 2 } return { $d.name,
      rrf(nearest($d.vec, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]),
          bm25($d.body, "fox"), 9) as s } order { s } limit 3 }"""

    # Years below 2 have d000, d001, d004 and d005: near in this order; by words d001, then d000 and d005, then d004.
    assert graph.query(fused).rows == [
        {"d.name": "d000", "s": pytest.approx(1 / 10 + 1 / 11)},
        {"d.name": "d001", "s": pytest.approx(1 / 11 + 1 / 10)},
        {"d.name": "d004", "s": pytest.approx(1 / 12 + 1 / 13)},
    ]
