"""Mutations at the same time: what commutes is prepared again, what does not is refused, nothing is torn."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from mutate_children import insert_many, live
from mutate_scene import edges, people, run

import omnigraph as og
from omnigraph.base import failpoints
from processes import FORKED

SCHEMA = "node Person { name: String @key age: I32? }\nedge Follows: Person -> Person"
REFUSALS = {"InvalidData", "ExpectedVersionMismatch", "RowLevelCasContention"}


@pytest.fixture(autouse=True)
def calm() -> Iterator[None]:
    yield
    failpoints.disarm_all()


def meanwhile(act: object) -> None:
    """Let `act` happen once, after the next write has been prepared and before it takes its lock."""

    def once() -> None:
        failpoints.disarm_all()
        act()  # type: ignore[operator]

    failpoints.arm("stage.files_written", once)


def test_with_no_retries_the_second_writer_of_a_table_is_refused(graph: og.Graph) -> None:
    other = og.Graph.open(graph.uri)
    meanwhile(lambda: run(other, 'insert Person { name: "cy" }'))
    with pytest.raises(og.ExpectedVersionMismatch) as refused:
        run(graph, 'insert Person { name: "di" }', retries=0)
    assert refused.value.table_key == "node:Person"
    assert set(people(graph)) == {"ana", "bo", "cy"}


def test_an_insert_that_lost_is_prepared_again(graph: og.Graph) -> None:
    other = og.Graph.open(graph.uri)
    meanwhile(lambda: run(other, 'insert Person { name: "cy" }'))
    run(graph, 'insert Person { name: "di" }')
    assert set(people(graph)) == {"ana", "bo", "cy", "di"}


@pytest.mark.parametrize("body", ['update Person set { age: 9 } where name = "bo"', 'delete Person where name = "bo"'])
def test_an_update_or_delete_that_lost_is_left_to_the_caller(graph: og.Graph, body: str) -> None:
    other = og.Graph.open(graph.uri)
    meanwhile(lambda: run(other, 'insert Person { name: "cy" }'))
    with pytest.raises(og.ExpectedVersionMismatch):
        run(graph, body)
    assert people(graph)["bo"]["age"] is None


def test_an_edge_does_not_outlive_an_endpoint_deleted_meanwhile(graph: og.Graph) -> None:
    other = og.Graph.open(graph.uri)
    run(graph, 'insert Person { name: "cy" }')
    meanwhile(lambda: run(other, 'delete Person where name = "cy"'))
    with pytest.raises(og.InvalidData, match="dst 'cy' not found in Person"):
        run(graph, 'insert Follows { from: "ana", to: "cy" }')
    assert edges(graph, "Follows") == [("ana", "bo")]


def test_a_node_is_not_deleted_from_under_an_edge_inserted_meanwhile(graph: og.Graph) -> None:
    other = og.Graph.open(graph.uri)
    run(graph, 'insert Person { name: "cy" }')
    meanwhile(lambda: run(other, 'insert Follows { from: "cy", to: "ana" }'))
    with pytest.raises(og.ExpectedVersionMismatch):
        run(graph, 'delete Person where name = "cy"')
    assert ("cy", "ana") in edges(graph, "Follows")


def test_a_unique_value_taken_meanwhile_is_seen(graph: og.Graph) -> None:
    other = og.Graph.open(graph.uri)
    meanwhile(lambda: run(other, 'insert Person { name: "cy", email: "a@b" }'))
    with pytest.raises(og.InvalidData, match=r"@unique violation on Person\.email: value 'a@b'"):
        run(graph, 'insert Person { name: "di", email: "a@b" }')


def test_if_commit_is_never_retried(graph: og.Graph) -> None:
    other, head = og.Graph.open(graph.uri), graph.head_commit_id_for_branch()
    meanwhile(lambda: run(other, 'insert Team { code: "x" }'))
    with pytest.raises(og.PreconditionFailed) as refused:
        run(graph, 'insert Person { name: "di" }', if_commit=head)
    assert refused.value.expected == head
    with pytest.raises(og.PreconditionFailed):
        run(graph, 'delete Person where name = "nobody"', if_commit=head)


def test_a_condition_that_holds_lets_the_write_through(graph: og.Graph) -> None:
    head = graph.head_commit_id_for_branch()
    first = run(graph, 'insert Person { name: "di" }', if_commit=head)
    assert run(graph, 'delete Person where name = "nobody"', if_commit=first.commit).commit is None


@pytest.mark.slow
def test_racing_processes_leave_no_edge_without_its_nodes(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    with ProcessPoolExecutor(4, FORKED) as pool:
        running = [pool.submit(live, graph.uri, number, 25) for number in range(4)]
        done = [future.result(timeout=250) for future in running]
    again = og.Graph.open(graph.uri)
    assert {end for pair in edges(again, "Follows") for end in pair} <= set(people(again))
    assert {e.split(":")[0] for _, refused in done for e in refused} <= REFUSALS
    assert len(again.list_commits()) - 1 <= sum(count for count, _ in done)
    assert again.recoveries().pending == ()
    assert all(t.head == t.pinned for t in again.status().branches[0].tables)


@pytest.mark.slow
def test_every_insert_of_racing_processes_is_accepted(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    with ProcessPoolExecutor(4, FORKED) as pool:
        running = [pool.submit(insert_many, graph.uri, number, 12) for number in range(4)]
        told = [name for future in running for name in future.result(timeout=250)]
    again = og.Graph.open(graph.uri)
    assert sorted(people(again)) == sorted(told)
    assert len(again.list_commits()) == len(told) + 1
