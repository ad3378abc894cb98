"""Loads while others write: what commutes is prepared again, what does not is refused, and no edge is orphaned."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from write_scene import edges, follows, lines_file, people, person, stored, team, town

from omnigraph.base import failpoints
from omnigraph.base.errors import ExpectedVersionMismatch, InvalidData, KeyConflict
from omnigraph.engine.write.changes import Append, Delete, Upsert
from omnigraph.graph import Graph

pytestmark = pytest.mark.slow

P, F = "node:Person", "edge:Follows"


@pytest.fixture(autouse=True)
def calm() -> Iterator[None]:
    yield
    failpoints.disarm_all()


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return town(tmp_path)


def meanwhile(act: Callable[[], object]) -> None:
    """Let `act` happen once, after the next write has been prepared and before it takes its lock."""

    def once() -> None:
        failpoints.disarm_all()
        act()

    failpoints.arm("stage.files_written", once)


@pytest.mark.parametrize("mode", ["append", "merge"])
def test_a_load_that_lost_the_race_is_prepared_again(graph: Graph, tmp_path: Path, mode: str) -> None:
    other = Graph.open(graph.uri)
    meanwhile(lambda: other.write({P: Append(people({"zoe": None}))}))
    graph.load(lines_file(tmp_path, "in.jsonl", person("di"), follows("di", "ana")), mode=mode)
    assert {("di",), ("zoe",)} <= set(stored(graph, P))


def test_an_overwrite_that_lost_the_race_is_refused(graph: Graph, tmp_path: Path) -> None:
    other = Graph.open(graph.uri)
    meanwhile(lambda: other.write({F: Upsert(edges(theirs=("cy", "ana")))}))
    with pytest.raises(ExpectedVersionMismatch) as error:
        graph.load(lines_file(tmp_path, "in.jsonl", follows("ana", "cy", id="mine")), mode="overwrite")
    assert error.value.table_key == F
    assert stored(graph, F) == [("f1",), ("theirs",)]


def test_without_retries_a_load_that_lost_is_refused(graph: Graph, tmp_path: Path) -> None:
    other = Graph.open(graph.uri)
    meanwhile(lambda: other.write({P: Append(people({"zoe": None}))}))
    with pytest.raises(ExpectedVersionMismatch):
        graph.load(lines_file(tmp_path, "in.jsonl", person("di")), mode="append", retries=0)
    assert ("di",) not in stored(graph, P)


def test_an_id_taken_meanwhile_is_seen_at_the_second_look(graph: Graph, tmp_path: Path) -> None:
    other = Graph.open(graph.uri)
    meanwhile(lambda: other.write({P: Append(people({"di": None}))}))
    with pytest.raises(KeyConflict):
        graph.load(lines_file(tmp_path, "in.jsonl", person("di")), mode="append")


def test_an_endpoint_deleted_meanwhile_fails_the_load(graph: Graph, tmp_path: Path) -> None:
    """The load writes only the edge table; it must notice that a node table it read has moved."""
    other = Graph.open(graph.uri)
    meanwhile(lambda: other.write({P: Delete(("cy",))}))
    with pytest.raises(InvalidData, match="dst 'cy' not found in Person"):
        graph.load(lines_file(tmp_path, "in.jsonl", follows("ana", "cy")), mode="append")
    assert stored(graph, F) == [("f1",)]


def test_an_edge_written_meanwhile_to_a_node_an_overwrite_removes_fails_the_overwrite(
    graph: Graph, tmp_path: Path
) -> None:
    other = Graph.open(graph.uri)
    lead = lines_file(tmp_path, "lead.jsonl", {"edge": "Leads", "from": "ana", "to": "web"})
    meanwhile(lambda: other.load(lead, mode="append", index=False))
    with pytest.raises(ExpectedVersionMismatch) as error:
        graph.load(lines_file(tmp_path, "in.jsonl", team("core")), mode="overwrite")
    assert error.value.table_key == "edge:Leads"


def test_rows_are_rejected_by_what_is_stored_when_the_load_commits(graph: Graph, tmp_path: Path) -> None:
    other = Graph.open(graph.uri)
    meanwhile(lambda: other.write({P: Append(people({"zoe": "d@x"}))}))
    path = lines_file(tmp_path, "in.jsonl", person("di", email="d@x"), person("ed", email="a@x"), person("flo"))
    done = graph.load(path, mode="merge", on_error="quarantine")
    assert (done.rejected, done.total_entities) == (2, 1)
    with open(str(done.rejects_file), encoding="utf-8") as file:
        assert [json.loads(line)["line"] for line in file] == [1, 2]
    assert [p.name for p in tmp_path.iterdir() if "partial" in p.name] == []
