"""What is kept in memory stays within its budget and outlives the files it was read from."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og

pytestmark = pytest.mark.slow

NAMES = "query names() { match { $p: Person } return { $p.name } order { $p.name } }"
COUNT = "query q() { match { $p: Person } return { count($p) as n } }"
SCHEMA = "node Person { name: String @key  a: I32?  b: I32? }"


def people(*names: str) -> dict[str, pa.Table]:
    numbers = pa.array(range(len(names)), pa.int32())
    return {"Person": pa.table({"name": list(names), "a": numbers, "b": numbers})}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "graph"), SCHEMA, settings=og.Settings(storage_durability="os"))
    made.load_frames(people(*(f"p{n:03d}" for n in range(100))), mode="append")
    return made


def test_a_version_that_is_in_memory_and_was_taken_by_cleanup_is_reclaimed(graph: og.Graph) -> None:
    old = graph.head_commit_id_for_branch() or ""
    reader = og.Graph.open(graph.uri, "r")
    assert reader.query(COUNT, snapshot=old).rows == [{"n": 100}]
    graph.load_frames(people("bo"), mode="overwrite")
    graph.cleanup(keep=1, confirm=True)

    with pytest.raises(og.Reclaimed, match="of node:Person was reclaimed"):
        reader.query(NAMES, snapshot=old)
    assert reader.query(NAMES).rows == [{"p.name": "bo"}]


def test_a_reader_of_the_head_outlives_the_files_its_memory_was_read_from(graph: og.Graph) -> None:
    reader = og.Graph.open(graph.uri, "r")
    sums = "query q() {{ match {{ $p: Person }} return {{ sum($p.{}) as s }} }}"
    reader.query(sums.format("a"))
    graph.mutate("query m() { update Person set { a: 1 } where b < 99 }")
    assert reader.query(sums.format("a")).rows == [{"s": 198.0}]
    graph.write({"node:Person": og.Compact()})
    graph.cleanup(keep=1, confirm=True)

    assert reader.query(sums.format("b")).rows == [{"s": 4950.0}]


def test_columns_read_late_count_against_the_budget_of_what_is_kept(tmp_path: Path) -> None:
    columns = [f"c{n}" for n in range(6)]
    schema = f"node Person {{ name: String @key {' '.join(f'{c}: String?' for c in columns)} }}"
    graph = og.Graph.init(str(tmp_path / "graph"), schema)
    texts = {column: ["x" * 200] * 2_000 for column in columns}
    graph.load_frames({"Person": pa.table({"name": [f"p{n}" for n in range(2_000)], **texts})}, mode="append")
    reader = og.Graph.open(graph.uri, "r", settings=og.Settings(cache_hot_bytes=500_000))
    for column in columns:
        reader.query(f"query q() {{ match {{ $p: Person }} return {{ $p.{column} }} }}")
        assert reader.reader.hot.sizes()["columns"] <= 500_000


def test_a_few_values_of_a_column_too_large_to_keep_cost_nothing_that_is_kept(tmp_path: Path) -> None:
    schema = "node Person { name: String @key  text: String? }\nedge Next: Person -> Person"
    graph = og.Graph.init(str(tmp_path / "graph"), schema, settings=og.Settings(storage_durability="os"))
    texts = {f"p{n}": "".join(random.Random(n).choices("abcdefgh", k=400)) for n in range(2_000)}
    named = pa.table({"name": list(texts), "text": list(texts.values())})
    edges = pa.table({"from": ["p1", "p2", "p3"], "to": ["p1999", "p0", "p1999"]})
    graph.load_frames({"Person": named, "Next": edges}, mode="append")
    reader = og.Graph.open(graph.uri, "r", settings=og.Settings(cache_hot_bytes=500_000))
    found = "query q() { match { $p: Person $p next $q } return { $p.name, $q.text } order { $p.name } }"
    assert reader.query(NAMES).to_arrow().num_rows == 2_000

    def expected(changed: str) -> list[dict[str, str]]:
        ends = {"p1": texts["p1999"], "p2": changed, "p3": texts["p1999"]}
        return [{"p.name": name, "q.text": text} for name, text in ends.items()]

    for text in (texts["p0"], "another"):
        graph.mutate('query m($t: String) { update Person set { text: $t } where name = "p0" }', {"t": text})
        assert reader.query(found).rows == expected(text)
        assert 0 < reader.reader.hot.sizes()["columns"] <= 500_000
    whole = reader.query("query q() { match { $p: Person } return { $p.name, $p.text } order { $p.name } }").rows
    assert {row["p.name"]: row["p.text"] for row in whole} == {**texts, "p0": "another"}
    assert 0 < reader.reader.hot.sizes()["columns"] <= 500_000


@pytest.mark.parametrize("hot_bytes", [0, 20_000])
def test_values_are_looked_up_where_not_even_row_ids_would_fit_what_may_be_kept(tmp_path: Path, hot_bytes: int) -> None:
    schema = "node Person { name: String @key  text: String? }\nedge Next: Person -> Person"
    graph = og.Graph.init(str(tmp_path / "graph"), schema, settings=og.Settings(storage_durability="os"))
    names = [f"p{n}" for n in range(2_000)]
    # Written in three commits and thinned, so that row ids do not run in one row.
    for first in range(0, 2_000, 700):
        some = names[first : first + 700]
        graph.load_frames({"Person": pa.table({"name": some, "text": [n * 20 for n in some]})}, mode="append")
    graph.load_frames({"Next": pa.table({"from": ["p1", "p2"], "to": ["p1999", "p3"]})}, mode="append")
    graph.mutate('query m() { delete Person where name = "p0" }')
    few = og.Settings(cache_hot_bytes=hot_bytes, read_traversal_mode="csr")
    reader = og.Graph.open(graph.uri, "r", settings=few)
    found = "query q() { match { $p: Person $p next $q } return { $q.text } order { $q.text } }"

    for text in ("p3" * 20, "another"):
        graph.mutate('query m($t: String) { update Person set { text: $t } where name = "p3" }', {"t": text})
        assert reader.query(found).rows == [{"q.text": t} for t in sorted([text, "p1999" * 20])]


def test_a_commit_of_some_edges_makes_no_query_too_large(tmp_path: Path) -> None:
    schema = "node Person { name: String @key }\nedge Next: Person -> Person"
    graph = og.Graph.init(str(tmp_path / "graph"), schema, settings=og.Settings(storage_durability="os"))
    names = [f"p{n:05d}" for n in range(20_000)]
    ring = pa.table({"from": names, "to": [*names[1:], names[0]]})
    graph.load_frames({"Person": pa.table({"name": names}), "Next": ring}, mode="append", index=False)
    reader = og.Graph.open(graph.uri, "r", settings=og.Settings(limits_query_memory_bytes=64 << 20))
    farthest = "query q() { match { $p: Person $p next $q } return { max($q.name) as m, count($p) as n } }"
    assert reader.query(farthest).rows == [{"m": "p19999", "n": 20_000}]
    graph.load_frames({"Next": pa.table({"from": names[:500], "to": names[2:502]})}, mode="append", index=False)

    assert reader.query(farthest).rows == [{"m": "p19999", "n": 20_500}]
