"""What Graph.query gives back: its forms, its types, its names, its plan."""

from __future__ import annotations

import shutil
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.settings import Settings

SCHEMA = """
node Person {
  name: String @key  age: I32?  wide: I64?  score: F32?  sum: F64?  born: Date?  seen: DateTime?  kind: String?
}
edge Follows: Person -> Person { weight: F64? }
"""
PEOPLE = pa.table(
    {
        "name": ["ana", "bo", "cy"],
        "age": pa.array([31, None, 17], pa.int32()),
        "wide": pa.array([2**60, 1, None], pa.int64()),
        "score": pa.array([0.5, None, 1.5], pa.float32()),
        "sum": [1.7e308, 1.7e308, -1.7e308],
        "born": [date(1990, 1, 2), None, None],
        "seen": [datetime(2024, 1, 2, 3, 4, 5, 6000, tzinfo=UTC), None, None],
        "kind": ["b", "a", "b"],
    }
)
ALL = "query everyone() { match { $p: Person } return { $p.name, $p.age as years } order { $p.name } }"
KINDS = "query q() { match { $p: Person $q: Person } return { $p.kind, count($q) as n } }"


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    made = og.Graph.init(str(tmp_path_factory.mktemp("answers") / "graph"), SCHEMA)
    ends = pa.table({"id": ["z", "y"], "from": ["ana", "ana"], "to": ["bo", "cy"], "weight": [0.5, 1.0]})
    made.load_frames({"Person": PEOPLE, "Follows": ends}, mode="append")
    return made


def returned(graph: og.Graph, items: str, clauses: str = "") -> og.QueryResult:
    return graph.query(f"query q() {{ match {{ $p: Person {clauses} }} return {{ {items} }} }}")


def test_one_answer_has_many_forms_of_the_same_rows(graph: og.Graph) -> None:
    result = graph.query(ALL)
    rows = [{"p.name": "ana", "years": 31}, {"p.name": "bo", "years": None}, {"p.name": "cy", "years": 17}]

    assert result.rows == list(result) == result.to_json()["rows"] == rows
    assert result.to_arrow().to_pylist() == [row for batch in result.to_batches() for row in batch.to_pylist()] == rows
    assert result.to_pandas()["p.name"].tolist() == ["ana", "bo", "cy"]
    assert (len(result), result.row_count, result.columns) == (3, 3, ["p.name", "years"])
    assert repr(result) == "<QueryResult everyone: 3 rows, 2 columns, from branch main>"
    assert "<td>cy</td><td>17</td>" in result._repr_html_()
    assert "3 rows from branch main via everyone" in result._repr_html_()


def test_the_frame_of_polars_is_made_of_the_same_table(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    """Polars is no requirement; whatever module has its name is given the Arrow table."""
    monkeypatch.setitem(sys.modules, "polars", SimpleNamespace(from_arrow=lambda table: ("a frame of", table)))
    result = graph.query(ALL)

    assert result.to_polars() == ("a frame of", result.to_arrow())


def test_batches_can_be_read_again_and_cost_no_copy_of_the_rows(graph: og.Graph) -> None:
    result = graph.query(ALL)

    assert [b.num_rows for b in result.to_batches()] == [b.num_rows for b in result.to_batches()]
    assert pa.Table.from_batches(result.to_batches()) == result.to_arrow()


@pytest.mark.parametrize(
    ("item", "type_"),
    [
        ("count($p) as x", pa.int64()),
        ("count($p.age) as x", pa.int64()),
        ("sum($p.age) as x", pa.float64()),
        ("avg($p.wide) as x", pa.float64()),
        ("sum($p.score) as x", pa.float64()),
        ("min($p.age) as x", pa.int32()),
        ("max($p.wide) as x", pa.int64()),
        ("max($p.score) as x", pa.float32()),
        ("min($p.name) as x", pa.string()),
        ("max($p.born) as x", pa.date32()),
        ("$p as x", pa.string()),
        ("$p.age as x", pa.int32()),
    ],
)
def test_an_aggregate_has_the_type_the_language_says(graph: og.Graph, item: str, type_: pa.DataType) -> None:
    for clauses in ("", '$p.name = "nobody"'):
        assert returned(graph, item, clauses).to_arrow().schema.field("x").type == type_


def test_infinities_and_what_is_no_number_are_words_in_json(graph: og.Graph) -> None:
    only = '$p.kind = "b"', '$p.name != "cy"'
    below = graph.query(
        'query q($x: F64) { match { $p: Person { name: "ana" } } return { $x, $p.wide } }', {"x": -1e308}
    )

    assert returned(graph, "sum($p.sum) as s", only[1]).to_json()["rows"] == [{"s": "Infinity"}]
    assert returned(graph, "sum($p.sum) as s", only[0]).to_json()["rows"] == [{"s": 0.0}]
    assert below.to_json()["rows"] == [{"x": -1e308, "p.wide": str(2**60)}]
    assert returned(graph, "sum($p.sum) as s", only[1]).rows == [{"s": float("inf")}]


def test_dates_are_text_in_json_and_values_in_python(graph: og.Graph) -> None:
    found = returned(graph, "$p.born, $p.seen", '$p.name = "ana"')

    assert found.to_json()["rows"] == [{"p.born": "1990-01-02", "p.seen": "2024-01-02T03:04:05.006Z"}]
    assert found.rows == [{"p.born": date(1990, 1, 2), "p.seen": datetime(2024, 1, 2, 3, 4, 5, 6000, tzinfo=UTC)}]


def test_now_is_one_moment_of_the_run_in_utc(graph: og.Graph) -> None:
    before = time.time()
    rows = returned(graph, "$p.name, now() as a, now() as b", "$p.seen < now()").rows
    after = time.time()

    (moment,) = {row[name] for row in rows for name in "ab"}
    assert before - 0.001 <= moment.timestamp() <= after
    assert moment.microsecond % 1000 == 0
    assert moment.utcoffset().total_seconds() == 0


def test_groups_come_in_the_order_in_which_the_rows_without_groups_do(graph: og.Graph) -> None:
    for source in (KINDS, KINDS.replace("$q: Person", "$p follows $q")):
        alone = graph.query(source.replace(", count($q) as n", "")).rows
        groups = graph.query(source).rows

        assert [row["p.kind"] for row in groups] == list(dict.fromkeys(row["p.kind"] for row in alone))


@pytest.mark.parametrize(
    ("items", "text", "hint"),
    [
        ("$p.name, $p.name", "column 'p.name' is returned twice", "Give one of them an alias."),
        ("$p.name as x, $p.age as x", "column 'x' is returned twice", "Give one of them an alias."),
        ('search($p.name, "x")', "search(…) in return needs an alias", "Write search(…) as name."),
    ],
)
def test_columns_without_a_name_of_their_own_are_refused(graph: og.Graph, items: str, text: str, hint: str) -> None:
    with pytest.raises(og.TypeCheckError) as told:
        returned(graph, items)
    assert text in str(told.value)
    assert told.value.hint == hint


def test_explain_reads_nothing_and_analyze_tells_rows_and_time_of_each_step(graph: og.Graph, tmp_path: Path) -> None:
    copy = tmp_path / "graph"
    shutil.copytree(graph.uri, copy)
    source = 'query q() { match { $p: Person { name: "ana" } $p follows $q } return { $q.name } }'
    analyzed = graph.query(source, analyze=True)
    for folder in ("nodes", "edges"):
        for file in copy.glob(f"{folder}/*/data/*"):
            file.unlink()
    blind = og.Graph.open(str(copy), "r")

    plan = blind.explain(source)
    assert [word in plan for word in ("Person", "Follows", "by id")] == [True] * 3
    with pytest.raises(og.OmniError):
        blind.query(source)
    assert (analyzed.row_count, graph.query(source).plan) == (2, None)
    steps = analyzed.plan.splitlines()
    assert len(steps) >= 3
    assert all("ms" in step for step in steps[1:]), analyzed.plan


def test_an_answer_is_the_same_whoever_asks_for_its_plan(graph: og.Graph) -> None:
    assert graph.query(ALL, analyze=True).rows == graph.query(ALL).rows


def test_queries_of_several_threads_do_not_disturb_each_other(graph: og.Graph) -> None:
    shared = og.Graph.open(graph.uri, "r", settings=Settings(cache_hot_bytes=1_000))
    expected: dict[str, Any] = {source: graph.query(source).to_json()["rows"] for source in (ALL, KINDS)}
    with ThreadPoolExecutor(8) as pool:
        asked = [ALL, KINDS] * 40
        found = list(pool.map(lambda source: shared.query(source).to_json()["rows"], asked))
    assert found == [expected[source] for source in asked]


@pytest.mark.parametrize(
    "clause", ['{ name: "ana" }', '$p.name = "ana"', '"ana" = $p.name', '$p.id = "ana"', "{ name: $n }"]
)
def test_equality_with_an_id_or_a_text_key_is_answered_by_id(graph: og.Graph, clause: str) -> None:
    source = f"query q($n: String?) {{ match {{ $p: Person {clause} }} return {{ $p.age }} }}"

    assert "by id" in graph.explain(source)
    assert graph.query(source, {"n": "ana"}).rows == [{"p.age": 31}]


@pytest.mark.parametrize("clause", ['$p.name != "ana"', '$p.kind = "ana"', '$p.name starts_with "ana"', "$p.age = 31"])
def test_what_is_no_equality_with_a_key_is_not_answered_by_id(graph: og.Graph, clause: str) -> None:
    assert "by id" not in graph.explain(f"query q() {{ match {{ $p: Person {clause} }} return {{ $p.age }} }}")
