"""Where types and properties change, nothing is compared that cannot be, and a consumer is told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from changes_scene import SCHEMA, C, K, P, edges, people

import omnigraph as og

pytestmark = pytest.mark.slow

WIDER = SCHEMA.replace("age: I32?", "age: I32?  joined: I32?")
NO_KNOWS = SCHEMA[: SCHEMA.index("edge Knows")]
NO_CITY = NO_KNOWS.replace("node City { name: String @key }\n", "")
TOWN = SCHEMA.replace("node City {", 'node Town @rename_from("City") {')


def applied(graph: og.Graph, source: str) -> str:
    commit = graph.schema_apply(source).graph_commit_id
    assert commit is not None
    return commit


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    made.write({P: og.Append(people(made, [{"id": "ana", "age": 31}, {"id": "bob"}]))})
    made.write({C: og.Append(pa.table({"id": ["oslo"], "name": ["oslo"]}))})
    return made


def told(changes: object) -> list[tuple[str, str, str]]:
    return [(c.table_key, c.id, c.op) for c in changes]  # type: ignore[attr-defined]


def test_the_first_commit_has_nothing_to_be_compared_with(graph: og.Graph) -> None:
    first = graph.list_commits()[-1].graph_commit_id
    with pytest.raises(og.ChangeDiffRefusal) as refused:
        graph.commit_changes(first)
    assert (refused.value.reason, refused.value.graph_commit_id) == ("parentless_commit", first)


def test_a_commit_that_adds_a_property_is_refused_by_name_and_told_as_a_boundary(graph: og.Graph) -> None:
    commit = applied(graph, WIDER)
    graph.write({C: og.Append(pa.table({"id": ["rome"], "name": ["rome"]}))})
    with pytest.raises(og.ChangeDiffRefusal) as refused:
        graph.commit_changes(commit)
    assert (refused.value.reason, refused.value.type_name) == ("schema_boundary", "Person")
    page = graph.changes_poll(start="beginning")
    assert [(b.boundary, told(b.changes)) for b in page.blocks] == [
        (None, [(P, "ana", "insert"), (P, "bob", "insert")]),
        (None, [(C, "oslo", "insert")]),
        ("schema", []),
        (None, [(C, "rome", "insert")]),
    ]
    assert page.blocks[2].to_json()["boundary"] == "schema"
    # The filter decides which changes are told, not whether a boundary is.
    assert [b.boundary for b in graph.changes_poll(start="beginning", type_names=["City"]).blocks][2] == "schema"


def test_a_property_that_was_added_since_counts_as_null_before(graph: og.Graph) -> None:
    applied(graph, WIDER)
    assert graph.diff("main~1", "main").changes == []
    graph.write({P: og.Upsert(people(graph, [{"id": "ana", "age": 32}]))})
    (change,) = graph.diff("main~2", "main").changes
    assert change.before is not None
    assert change.after is not None
    assert (change.before.properties["age"], change.after.properties["age"]) == (31, 32)
    assert change.before.properties["joined"] is None
    assert [past.op for past in graph.history(P, "bob")] == ["insert"]


def test_a_dropped_type_is_a_boundary_if_it_had_rows(graph: og.Graph) -> None:
    emptied = applied(graph, NO_KNOWS)
    assert graph.commit_changes(emptied).changes == []
    dropped = applied(graph, NO_CITY)
    with pytest.raises(og.ChangeDiffRefusal):
        graph.commit_changes(dropped)
    assert told(graph.diff("main~1", "main").changes) == [(C, "oslo", "delete")]


def test_a_renamed_type_is_the_same_table_under_another_name(graph: og.Graph) -> None:
    renamed = applied(graph, TOWN)
    assert graph.commit_changes(renamed).changes == []
    assert graph.diff("main~1", "main").changes == []
    (before,) = graph.commit_changes(graph.snapshot_of("main~1").graph_commit_id or "").changes
    (past,) = graph.history("Town", "oslo")
    assert past.cause is not None
    assert past.cause.graph_commit_id == graph.list_commits()[1].graph_commit_id
    assert told(graph.diff("main~2", "main").changes) == [("node:Town", "oslo", "insert")]
    # What a change is of is known by an id that the rename did not touch.
    assert graph.diff("main~2", "main").changes[0].type_id == before.type_id
    # Either name finds it.
    for name in ("City", "Town"):
        assert told(graph.diff("main~2", "main", type_names=[name]).changes) == [("node:Town", "oslo", "insert")]


def test_a_name_that_is_dropped_and_added_again_is_another_type(graph: og.Graph) -> None:
    applied(graph, NO_CITY)
    applied(graph, SCHEMA)
    graph.write({C: og.Append(pa.table({"id": ["oslo"], "name": ["oslo"]}))})
    found = graph.diff("main~3", "main").changes
    assert told(found) == [(C, "oslo", "delete"), (C, "oslo", "insert")]
    assert found[0].type_id != found[1].type_id
    assert [past.op for past in graph.history(C, "oslo")] == ["insert"]


def test_upkeep_commits_have_no_changes(graph: og.Graph) -> None:
    graph.write({K: og.Append(edges(graph, [{"id": "k", "src": "ana", "dst": "bob"}]))})
    graph.write({P: og.Append(people(graph, [{"id": "cyd"}]))})
    graph.write({P: og.Compact()})
    graph.ensure_indices()
    kinds = [c.graph_commit_id for c in graph.list_commits()][:2]
    assert [graph.commit_changes(commit).changes for commit in kinds] == [[], []]
    assert [len(b.changes) for b in graph.changes_poll(start="beginning").blocks] == [2, 1, 1, 1, 0, 0]


def test_a_renamed_property_is_no_change_and_no_boundary(graph: og.Graph) -> None:
    start = graph.changes_poll().cursor
    renamed = applied(graph, SCHEMA.replace("age: I32?", 'years: I32? @rename_from("age")'))
    assert graph.commit_changes(renamed).changes == []
    assert graph.diff("main~1", "main").changes == []
    assert [(b.boundary, b.changes) for b in graph.changes_poll(cursor=start).blocks] == [(None, [])]
    graph.write({P: og.Upsert(people(graph, [{"id": "ana", "years": 32}]))})
    (change,) = graph.diff("main~2", "main").changes
    assert change.before is not None
    assert change.after is not None
    assert (change.before.properties["years"], change.after.properties["years"]) == (31, 32)
    # The past is told by the names of today, as it is read.
    assert "age" not in change.before.properties
    (first, *_) = graph.changes_poll(start="beginning").blocks[0].changes
    assert first.after is not None
    assert first.after.properties["years"] == 31
    assert [past.op for past in graph.history(P, "ana")] == ["update", "insert"]


def test_a_dropped_property_changes_no_row_and_is_told_as_a_boundary(graph: og.Graph) -> None:
    dropped = applied(graph, SCHEMA.replace("  age: I32?\n", ""))
    assert graph.diff("main~1", "main").changes == []
    assert graph.diff("main", "main~1").changes == []
    with pytest.raises(og.ChangeDiffRefusal) as refused:
        graph.commit_changes(dropped)
    assert (refused.value.reason, refused.value.type_name) == ("schema_boundary", "Person")
    assert [past.op for past in graph.history(P, "ana")] == ["insert"]


def test_a_property_that_is_added_again_shows_nothing_of_the_earlier_one(graph: og.Graph) -> None:
    applied(graph, SCHEMA.replace("  age: I32?\n", ""))
    applied(graph, SCHEMA)
    assert graph.diff("main~2", "main").changes == []
    graph.write({P: og.Upsert(people(graph, [{"id": "ana", "age": 31}]))})
    (change,) = graph.diff("main~3", "main").changes
    assert change.before is not None
    assert change.before.properties["age"] is None
    assert [past.op for past in graph.history(P, "ana")] == ["update", "insert"]
