"""The history of one entity names every commit that changed it and reads no more than it must."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from changes_scene import SCHEMA, K, P, edges, people

import omnigraph as og
from omnigraph.engine.changes import history as module

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.Graph.init(str(tmp_path / "graph"), SCHEMA)


def put(graph: og.Graph, id: str, branch: str | None = None, **values: Any) -> str:
    return graph.write({P: og.Upsert(people(graph, [{"id": id, **values}]))}, branch=branch).graph_commit_id


def told(graph: og.Graph, id: str, **options: Any) -> list[tuple[str | None, str | None]]:
    found = graph.history("Person", id, **options)
    return [(past.cause.graph_commit_id if past.cause else None, past.op) for past in found]


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The table versions that were looked at."""
    seen: list[int] = []
    plain = module._seen

    def watched(root: Any, move: Any, id: str) -> Any:
        seen.append(move[1][1].table_version if move[1] else 0)
        return plain(root, move, id)

    monkeypatch.setattr(module, "_seen", watched)
    return seen


def test_a_history_says_who_changed_what_from_what_to_what_and_why(graph: og.Graph) -> None:
    graph.write({P: og.Append(people(graph, [{"id": "ana", "age": 31}]))}, actor="act-ana", message="hello")
    graph.write({P: og.Upsert(people(graph, [{"id": "ana", "age": 32}]))}, actor="act-bo", message="birthday")
    newest, oldest = graph.history("Person", "ana")
    assert newest.cause is not None
    assert (newest.cause.actor_id, newest.cause.message, newest.op) == ("act-bo", "birthday", "update")
    assert newest.before is not None
    assert newest.after is not None
    assert (newest.before.properties["age"], newest.after.properties["age"]) == (31, 32)
    assert (oldest.op, oldest.before) == ("insert", None)


def test_an_entity_that_came_back_has_both_lives(graph: og.Graph) -> None:
    one = put(graph, "ana", age=1)
    put(graph, "bob")
    two = graph.write({P: og.Delete(("ana",))}).graph_commit_id
    put(graph, "cyd")
    three = put(graph, "ana", age=2)
    assert told(graph, "ana") == [(three, "insert"), (two, "delete"), (one, "insert")]
    assert told(graph, "ana", limit=2) == [(three, "insert"), (two, "delete")]


def test_an_id_that_is_no_text_is_refused_in_words(graph: og.Graph) -> None:
    with pytest.raises(og.BadRequest, match="the id is not valid Unicode text"):
        graph.history("Person", "\udcff")


def test_a_write_that_changes_nothing_is_not_in_it(graph: og.Graph) -> None:
    one = put(graph, "ana", age=1)
    put(graph, "ana", age=1)
    assert told(graph, "ana") == [(one, "insert")]


def test_a_branch_has_the_history_it_inherited_and_its_own(graph: og.Graph) -> None:
    one = put(graph, "ana", age=1)
    graph.branch_create("draft")
    two = put(graph, "ana", "draft", age=2)
    three = put(graph, "ana", age=3)
    assert told(graph, "ana", branch="draft") == [(two, "update"), (one, "insert")]
    assert told(graph, "ana") == [(three, "update"), (one, "insert")]


def test_it_costs_the_changes_of_the_entity_not_the_commits_of_its_table(graph: og.Graph, reads: list[int]) -> None:
    one = put(graph, "ana", age=1)
    for at in range(10):
        put(graph, f"other{at}")
        graph.write({K: og.Upsert(edges(graph, [{"id": "k", "src": "ana", "dst": "ana", "since": at}]))})
    two = put(graph, "ana", age=2)
    for at in range(10):
        put(graph, f"more{at}")
    assert told(graph, "ana") == [(two, "update"), (one, "insert")]
    assert len(reads) == 3
    reads.clear()
    assert told(graph, "more0") == [(graph.list_commits()[9].graph_commit_id, "insert")]
    # Loads that deleted nothing cannot have ended an earlier life of it.
    assert len(reads) <= 4


def test_what_cleanup_removed_ends_it_with_the_first_commit_that_cannot_be_read(graph: og.Graph) -> None:
    put(graph, "ana", age=1)
    lost = put(graph, "ana", age=2)
    put(graph, "bob")
    three = put(graph, "ana", age=3)
    graph.cleanup(keep=2, confirm=True)
    found = graph.history("Person", "ana")
    assert [past.to_json().get("op") for past in found] == ["update", None]
    assert found[0].cause is not None
    assert found[0].cause.graph_commit_id == three
    assert found[1].to_json() == {"reclaimed": True, "first_unreadable_commit_id": lost}


def test_an_edge_has_its_ends_in_its_history(graph: og.Graph) -> None:
    for end in ("bob", "cyd"):
        graph.write({K: og.Upsert(edges(graph, [{"id": "k", "src": "ana", "dst": end}]))})
    newest, oldest = graph.history("Knows", "k")
    assert newest.to_json()["before"]["endpoints"] == {"from": "ana", "to": "bob"}
    assert newest.to_json()["after"]["endpoints"] == {"from": "ana", "to": "cyd"}
    assert oldest.op == "insert"


def test_an_id_or_type_that_never_was_is_not_found(graph: og.Graph) -> None:
    put(graph, "ana")
    with pytest.raises(og.NotFound, match="node:Person never had an id 'nobody'"):
        graph.history("Person", "nobody")
    with pytest.raises(og.NotFound, match="unknown type 'Persn'") as error:
        graph.history("Persn", "ana")
    assert "Person" in error.value.hint
    with pytest.raises(og.NotFound, match="branch 'nowhere' not found"):
        graph.history("Person", "ana", branch="nowhere")


@pytest.mark.parametrize("id", ["", "a'b", "é\u0000x", "x" * 2000])
def test_any_text_may_be_asked_for(graph: og.Graph, id: str) -> None:
    put(graph, "ana")
    with pytest.raises(og.NotFound):
        graph.history("Person", id)


def test_a_name_of_two_types_must_say_which(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "two"), "node Likes { name: String @key }\nedge Likes: Likes -> Likes")
    graph.write({"node:Likes": og.Append(people_of("a"))})
    with pytest.raises(og.BadRequest, match="'Likes' is the name of a node type and of an edge type"):
        graph.history("Likes", "a")
    assert len(graph.history("node:Likes", "a")) == 1


def people_of(*ids: str) -> Any:
    import pyarrow as pa

    return pa.table({"id": list(ids), "name": list(ids)})


@pytest.mark.parametrize("forward", [True, False])
def test_a_merge_is_the_commit_that_brought_the_change_to_its_target(graph: og.Graph, forward: bool) -> None:
    one = put(graph, "ana", age=1)
    graph.branch_create("draft")
    two = put(graph, "ana", "draft", age=2)
    if not forward:
        put(graph, "bob")
    graph.branch_merge("draft", message="bring it in")
    newest, oldest = graph.history("Person", "ana")
    assert newest.cause is not None
    assert (newest.cause.merged_parent_commit_id, newest.cause.message, newest.op) == (two, "bring it in", "update")
    assert oldest.cause is not None
    assert oldest.cause.graph_commit_id == one
    assert [change.id for change in graph.commit_changes("main").changes] == ["ana"]
    assert graph.diff("draft", "main").stats.total.inserts == (0 if forward else 1)
    assert told(graph, "ana", branch="draft") == [(two, "update"), (one, "insert")]


def test_an_undone_change_is_in_the_history_twice(graph: og.Graph) -> None:
    one = put(graph, "ana", age=1)
    two = put(graph, "ana", age=2)
    graph.commit_revert(two)
    three = graph.head_commit_id_for_branch()
    assert told(graph, "ana") == [(three, "update"), (two, "update"), (one, "insert")]
    assert graph.diff(one, "main").changes == []
