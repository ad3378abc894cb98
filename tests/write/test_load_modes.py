"""What append, merge and overwrite do to a graph, and what a load answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from write_scene import ON_SPARK, SCHEMA, OnSpark, follows, lines_file, person, stored, team, town

from omnigraph.base.errors import BadRequest, InvalidData, KeyConflict, NotFound, PreconditionFailed
from omnigraph.engine.write import load as load_module
from omnigraph.graph import Graph
from omnigraph.manifest.rows import RowEffect

P, T, F = "node:Person", "node:Team", "edge:Follows"


@pytest.fixture(params=["embedded", ON_SPARK])
def graph(request: pytest.FixtureRequest, tmp_path: Path) -> Graph:
    made = town(tmp_path)
    if request.param == "embedded":
        return made
    request.getfixturevalue("spark")
    return OnSpark.open(made.uri)


def data_commits(graph: Graph) -> list[str | None]:
    return [c.kind for c in graph.list_commits() if c.kind != "ensure_indices"]


def test_a_load_is_one_data_commit_and_one_for_its_indexes(graph: Graph, tmp_path: Path) -> None:
    before = len(graph.list_commits())
    path = lines_file(tmp_path, "in.jsonl", person("di"), team("new"), follows("di", "ana"))
    done = graph.load(path, mode="append", message="import", actor="act-eve", metadata={"ticket": 7})
    newest, data = graph.list_commits()[:2]
    assert len(graph.list_commits()) == before + 2
    assert (newest.kind, newest.graph_commit_id) == ("ensure_indices", done.index_commit)
    assert (data.kind, data.graph_commit_id, data.message) == ("load", done.commit, "import")
    assert (data.actor_id, data.metadata["ticket"]) == ("act-eve", 7)
    assert data.counts == {P: RowEffect(inserts=1), T: RowEffect(inserts=1), F: RowEffect(inserts=1)}
    assert graph.operation(done.operation_id).status == "committed"


def test_the_result_has_the_members_programs_rely_on(graph: Graph, tmp_path: Path) -> None:
    done = graph.load(lines_file(tmp_path, "in.jsonl", person("di"), person("ed"), follows("di", "ed")), mode="append")
    told = json.loads(json.dumps(done.to_json()))
    commits = {told.pop(name) for name in ("commit", "index_commit", "operation_id")}
    assert len(commits) == 3
    assert told == {
        "uri": graph.uri,
        "branch": "main",
        "branch_created": False,
        "mode": "append",
        "engine": "spark" if isinstance(graph, OnSpark) else "embedded",
        "nodes": [{"name": "Person", "entities_loaded": 2}],
        "edges": [{"name": "Follows", "entities_loaded": 1}],
        "total_entities": 3,
        "duplicates_merged": 0,
        "rejected": 0,
    }


def test_append_refuses_a_stored_id_and_writes_nothing(graph: Graph, tmp_path: Path) -> None:
    head = graph.head_commit_id_for_branch()
    with pytest.raises(KeyConflict, match="node:Person already has id 'bo'"):
        graph.load(lines_file(tmp_path, "in.jsonl", person("di"), person("bo")), mode="append")
    assert graph.head_commit_id_for_branch() == head


def test_merge_replaces_whole_rows_and_keeps_the_others(graph: Graph, tmp_path: Path) -> None:
    done = graph.load(lines_file(tmp_path, "in.jsonl", person("ana", age=40), person("di")), mode="merge")
    assert stored(graph, P, "id", "email", "age") == [
        ("ana", None, 40),
        ("bo", "b@x", None),
        ("cy", None, None),
        ("di", None, None),
    ]
    assert graph.get_commit(done.commit).counts == {P: RowEffect(inserts=1, updates=1)}


def test_in_a_merge_the_last_record_in_file_order_wins(graph: Graph, tmp_path: Path) -> None:
    first = lines_file(tmp_path, "1.jsonl", person("di", age=1), person("di", age=2), follows("ana", "bo", id="f9"))
    second = lines_file(tmp_path, "2.jsonl", person("di", age=3), follows("bo", "ana", id="f9"))
    done = graph.load([first, second], mode="merge")
    assert done.duplicates_merged == 3
    assert ("di", 3) in stored(graph, P, "id", "age")
    assert ("f9", "bo", "ana") in stored(graph, F, "id", "src", "dst")
    assert done.total_entities == 2


def test_overwrite_replaces_the_types_it_touches_and_no_others(graph: Graph, tmp_path: Path) -> None:
    graph.load(lines_file(tmp_path, "in.jsonl", follows("cy", "ana", id="only")), mode="overwrite")
    assert stored(graph, F) == [("only",)]
    assert len(stored(graph, P)) == 3
    assert len(stored(graph, "edge:MemberOf")) == 1


def test_overwriting_nodes_that_stored_edges_need_is_refused(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(InvalidData, match=r"dst 'core' not found in Team \(stored edge 'l1'\) \(and 1 more\)"):
        graph.load(lines_file(tmp_path, "in.jsonl", team("other")), mode="overwrite")
    assert len(stored(graph, T)) == 2


@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_an_empty_input_publishes_a_commit_without_changes(graph: Graph, tmp_path: Path, mode: Any) -> None:
    versions = {k: e.table_version for k, e in graph.snapshot().tables.items()}
    done = graph.load(lines_file(tmp_path, "in.jsonl"), mode=mode, message="nothing came", index=False)
    newest = graph.list_commits()[0]
    assert (newest.graph_commit_id, newest.kind, newest.message) == (done.commit, "load", "nothing came")
    assert newest.counts == {}
    assert done.total_entities == 0
    assert {k: e.table_version for k, e in graph.snapshot().tables.items()} == versions


def test_without_index_there_is_no_second_commit(graph: Graph, tmp_path: Path) -> None:
    done = graph.load(lines_file(tmp_path, "in.jsonl", person("di")), mode="append", index=False)
    assert done.index_commit is None
    assert graph.list_commits()[0].graph_commit_id == done.commit


def test_a_failing_index_build_is_a_warning_and_the_rows_stay(
    graph: Graph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*_: Any) -> None:
        raise BadRequest("the disk is full of eels")

    monkeypatch.setattr(load_module, "ensure_indices", fails)
    done = graph.load(lines_file(tmp_path, "in.jsonl", person("di")), mode="append")
    assert done.index_commit is None
    assert done.warnings == ("the rows are loaded, their indexes were not built: the disk is full of eels",)
    assert ("di",) in stored(graph, P)


def test_a_load_goes_to_its_branch_and_makes_it_when_told_from_where(graph: Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", person("di"))
    with pytest.raises(NotFound):
        graph.load(path, mode="append", branch="draft")
    done = graph.load(path, mode="append", branch="draft", from_branch="main")
    assert (done.branch, done.base_branch, done.branch_created) == ("draft", "main", True)
    assert ("di",) in stored(graph, P, branch="draft")
    assert ("di",) not in stored(graph, P)
    again = graph.load(lines_file(tmp_path, "2.jsonl", person("ed")), mode="append", branch="draft", from_branch="main")
    assert (again.base_branch, again.branch_created) == ("main", False)


def test_a_load_may_demand_the_head_it_expects(graph: Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", person("di"))
    with pytest.raises(PreconditionFailed):
        graph.load(path, mode="append", if_commit="01HZZZZZZZZZZZZZZZZZZZZZZZ")
    done = graph.load(path, mode="append", if_commit=graph.head_commit_id_for_branch())
    assert done.total_entities == 1


def test_load_as_names_the_actor_first(graph: Graph, tmp_path: Path) -> None:
    done = graph.load_as("act-ana", lines_file(tmp_path, "in.jsonl", person("di")), mode="append", index=False)
    assert graph.get_commit(done.commit).actor_id == "act-ana"


def test_progress_names_the_stages_and_counts_the_rows(graph: Graph, tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    path = lines_file(tmp_path, "in.jsonl", *(person(f"x{n}") for n in range(30)))
    graph.load(path, mode="append", progress=lambda stage, rows: told.append((stage, rows)))
    assert [stage for n, (stage, _) in enumerate(told) if not n or told[n - 1][0] != stage] == [
        "read",
        "check",
        "write",
    ]
    assert max(rows for stage, rows in told if stage == "read") == 30


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"mode": "replace"}, "unknown load mode"),
        ({"mode": "append", "on_error": "ignore"}, "unknown on_error"),
        ({"mode": "append", "max_errors": 0}, "max_errors"),
        ({"mode": "append", "rejects": "r.jsonl"}, "only written with"),
    ],
)
def test_options_that_mean_nothing_are_refused(
    graph: Graph, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadRequest, match=message):
        graph.load(lines_file(tmp_path, "in.jsonl", person("di")), **options)


def test_a_read_only_graph_loads_nothing(graph: Graph, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match="read-only"):
        Graph.open(graph.uri, "r").load(lines_file(tmp_path, "in.jsonl", person("di")), mode="append")


def test_a_graph_on_a_fresh_schema_takes_nodes_and_edges_in_any_order(tmp_path: Path) -> None:
    graph = Graph.init(str(tmp_path / "g"), SCHEMA)
    graph.load(lines_file(tmp_path, "in.jsonl", follows("a", "b"), person("b"), person("a")), mode="append")
    assert len(stored(graph, F)) == 1
