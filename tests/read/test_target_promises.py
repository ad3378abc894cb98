"""What a query reads: the newest commit of a branch, or the snapshot it names; and what it says when there is none."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og

pytestmark = pytest.mark.slow

NAMES = "query names() { match { $p: Person } return { $p.name } order { $p.name } }"
SCHEMA = "node Person { name: String @key }\nedge Follows: Person -> Person"


def add(graph: og.Graph, *names: str, branch: str | None = None) -> str:
    """The commit that brought these people, each followed by ana."""
    people, ends = pa.table({"name": list(names)}), {"from": ["ana"] * len(names), "to": list(names)}
    graph.load_frames({"Person": people, "Follows": pa.table(ends)}, mode="append", branch=branch, index=False)
    return graph.head_commit_id_for_branch(branch) or ""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "graph"), SCHEMA, settings=og.Settings(storage_durability="os"))
    add(made, "ana")
    return made


def names(graph: og.Graph, **target: str) -> list[str]:
    return [row["p.name"] for row in graph.query(NAMES, **target)]


def test_a_query_reads_the_branch_of_its_handle_or_the_one_it_names(graph: og.Graph) -> None:
    graph.branch_create("draft")
    add(graph, "bo", branch="draft")

    assert names(graph) == names(graph, branch="main") == ["ana"]
    assert names(graph, branch="draft") == ["ana", "bo"]
    graph.sync_branch("draft")
    assert (names(graph), names(graph, branch="main")) == (["ana", "bo"], ["ana"])


def test_a_query_sees_what_another_process_committed_before_it_began(graph: og.Graph) -> None:
    reader = og.Graph.open(graph.uri, "r")
    before = reader.query(NAMES)
    written = "import sys, omnigraph as og; og.Graph.open(sys.argv[1]).mutate(sys.argv[2])"
    hire = 'query hire() { insert Person { name: "bo" } }'
    subprocess.run([sys.executable, "-c", written, graph.uri, hire], check=True, timeout=60)

    assert names(reader) == ["ana", "bo"]
    assert [row["p.name"] for row in before] == ["ana"], "an answer is of its own snapshot"


def test_a_snapshot_is_named_by_a_commit_or_by_steps_back(graph: og.Graph) -> None:
    first, second = graph.head_commit_id_for_branch() or "", add(graph, "bo")
    add(graph, "cy")

    assert names(graph, snapshot=first) == names(graph, snapshot="main~2") == ["ana"]
    assert names(graph, snapshot=second) == names(graph, snapshot="main~1") == ["ana", "bo"]
    assert names(graph, snapshot="main") == ["ana", "bo", "cy"]


def test_an_answer_says_what_was_read(graph: og.Graph) -> None:
    first, second = graph.head_commit_id_for_branch(), add(graph, "bo")
    told = {"query_name": "names", "columns": ["p.name"]}

    assert graph.query(NAMES).to_json() == told | {
        "target": {"branch": "main"},
        "graph_commit_id": second,
        "row_count": 2,
        "rows": [{"p.name": "ana"}, {"p.name": "bo"}],
    }
    assert graph.query(NAMES, snapshot="main~1").to_json() == told | {
        "target": {"snapshot": first},
        "graph_commit_id": first,
        "row_count": 1,
        "rows": [{"p.name": "ana"}],
    }


@pytest.mark.parametrize(
    ("target", "error", "text"),
    [
        ({"branch": "main", "snapshot": "main"}, og.BadRequest, "a branch and a snapshot were both named"),
        ({"snapshot": "nowhere"}, og.NotFound, "'nowhere' is neither a branch nor a commit"),
        ({"snapshot": "01HZZZZZZZZZZZZZZZZZZZZZZZ"}, og.NotFound, "commit '01HZZZZZZZZZZZZZZZZZZZZZZZ' not found"),
        ({"snapshot": "main~99"}, og.NotFound, "'main~99' lies before the first commit"),
        ({"snapshot": "main~~1"}, og.BadRequest, "'main~~1' is not a target"),
        ({"branch": "nowhere"}, og.NotFound, "branch 'nowhere' not found"),
    ],
)
def test_a_target_that_is_not_there_is_an_error_of_its_own(
    graph: og.Graph, target: dict[str, str], error: type[og.OmniError], text: str
) -> None:
    for asked, source in (graph.query, NAMES), (graph.explain, NAMES), (graph.sql, "SELECT 1 AS one"):
        with pytest.raises(error) as told:
            asked(source, **target)
        assert str(told.value).startswith(text)


def test_a_version_that_cleanup_took_is_reclaimed_and_newer_ones_are_read(graph: og.Graph) -> None:
    old = graph.head_commit_id_for_branch() or ""
    version = graph.snapshot_of(old).tables["node:Person"].table_version
    add(graph, "bo")
    add(graph, "cy")
    graph.cleanup(keep=2, confirm=True)

    reader = og.Graph.open(graph.uri, "r")
    with pytest.raises(og.Reclaimed) as told:
        reader.query(NAMES, snapshot=old)
    assert str(told.value) == f"historical version {version} of node:Person was reclaimed"
    assert (told.value.table_key, told.value.version) == ("node:Person", version)
    with pytest.raises(og.Reclaimed, match=f"historical version {version} of node:Person was reclaimed"):
        reader.sql("SELECT name FROM node_Person", snapshot=old)
    assert names(reader, snapshot="main~1") == ["ana", "bo"]


def test_a_query_reads_one_snapshot_while_others_commit(tmp_path: Path) -> None:
    """Every commit changes two tables alike; a query that read them at different commits would see them differ."""
    quick = og.Settings(storage_durability="os")
    schema = "node One { name: String @key  n: I32? }\nnode Two { name: String @key  n: I32? }"
    writer = og.Graph.init(str(tmp_path / "pair"), schema, settings=quick)
    writer.mutate('query m() { insert One { name: "x" n: 0 } insert Two { name: "x" n: 0 } }')
    reader, ended = og.Graph.open(writer.uri, "r"), threading.Event()
    pairs = "query q() { match { $a: One $b: Two } return { $a.n as a, $b.n as b } }"

    def read() -> list[tuple[int, int]]:
        found = []
        while not ended.is_set():
            found += [(row["a"], row["b"]) for row in reader.query(pairs)]
        return found

    with ThreadPoolExecutor(3) as pool:
        readers = [pool.submit(read) for _ in range(3)]
        try:
            for n in range(1, 13):
                both = f'update One set {{ n: {n} }} where name = "x" update Two set {{ n: {n} }} where name = "x"'
                writer.mutate(f"query m() {{ {both} }}")
        finally:
            ended.set()
    for seen in (done.result() for done in readers):
        assert all(a == b for a, b in seen)
        assert seen == sorted(seen), "a later query never sees an earlier commit"
        assert len(set(seen)) > 1
