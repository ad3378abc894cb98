"""The verb itself: outcomes, dry runs, refusals, races, what the commit says, what becomes of the source."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from merge_scene import content, files_below, mutate, new_graph, people, person, rows_of, write

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.manifest import layout
from omnigraph.storage.refs import delete_branch, fork_branch_from_state

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = new_graph(tmp_path)
    people(made, None, person("ana", a=31), person("bo", a=7))
    made.branch_create("draft")
    return made


def merged(graph: og.Graph, *names: str, **more: Any) -> og.MergeResult:
    done = graph.branch_merge(*names, **more)
    assert isinstance(done, og.MergeResult)
    return done


def previewed(graph: og.Graph, *names: str, **more: Any) -> og.MergePreview:
    told = graph.branch_merge(*names, dry_run=True, **more)
    assert isinstance(told, og.MergePreview)
    return told


def test_the_example_of_the_specification(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { a: 32 } where name = "ana"', "draft")
    mutate(graph, 'update Person set { a: 33 } where name = "ana"')
    before = content(graph), content(graph, "draft")
    with pytest.raises(og.MergeConflicts) as error:
        graph.branch_merge("draft")
    assert str(error.value) == "merge conflicts: node:Person 'ana' (divergent_update)"
    told = {"table_key": "node:Person", "row_id": "ana", "kind": "divergent_update"}
    assert error.value.merge_conflicts == ({**told, "message": "divergent update for id 'ana'"},)
    assert (content(graph), content(graph, "draft")) == before


def test_a_merge_commit_has_both_heads_as_parents(graph: og.Graph) -> None:
    c = mutate(graph, 'insert Person { name: "cy" }', "draft")
    d = mutate(graph, 'insert Person { name: "di" }')
    done = merged(graph, "draft", actor="act-ana", message="spring", metadata={"ticket": 7})
    commit = graph.get_commit(done.graph_commit_id or "")
    assert (commit.parent_commit_id, commit.merged_parent_commit_id) == (d, c)
    assert (commit.kind, commit.actor_id, commit.message) == ("merge", "act-ana", "spring")
    assert commit.metadata == {"ticket": 7, "omnigraph": {"merge": {"granularity": "row", "choices": []}}}
    assert commit.operation_id == done.operation_id
    assert [x.graph_commit_id for x in graph.list_commits()][:2] == [done.graph_commit_id, d]
    assert done.to_json()["tables"] == [{"table_key": "node:Person", "inserts": 1, "updates": 0, "deletes": 0}]


def test_outcomes(graph: og.Graph) -> None:
    assert merged(graph, "draft").outcome == "already_up_to_date"
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    assert merged(graph, "main", "draft").outcome == "already_up_to_date"
    assert merged(graph, "draft").outcome == "fast_forward"
    head = graph.head_commit_id_for_branch()
    assert merged(graph, "draft").outcome == "already_up_to_date"
    assert graph.head_commit_id_for_branch() == head


def test_before_and_after_a_merge_can_both_be_read(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { a: 32 } where name = "ana"', "draft")
    before = graph.head_commit_id_for_branch() or ""
    after = merged(graph, "draft").graph_commit_id or ""
    people(graph, None, person("ana", a=40))
    ages = [rows_of(graph, "node:Person", at=at)["ana"]["a"] for at in (before, after)]
    assert [*ages, rows_of(graph, "node:Person")["ana"]["a"]] == [31, 32, 40]


def test_a_dry_run_tells_all_and_writes_nothing(graph: og.Graph) -> None:
    people(graph, "draft", *(person(f"p{k}") for k in range(5)), person("bo", a=8), delete=("ana",))
    mutate(graph, 'insert City { name: "oslo" }')
    before = files_below(Path(graph.uri))
    told = previewed(graph, "draft", limit=3)
    assert files_below(Path(graph.uri)) == before
    assert (told.outcome, told.would_commit) == ("merged", True)
    assert told.tables == ({"table_key": "node:Person", "inserts": 5, "updates": 1, "deletes": 1},)
    key = "node:Person"
    assert told.changes == (
        {"table_key": key, "id": "ana", "op": "delete"},
        {"table_key": key, "id": "bo", "op": "update"},
        {"table_key": key, "id": "p0", "op": "insert"},
    )
    members = {"source", "target", "base_commit_id", "outcome", "would_commit"}
    assert told.to_json().keys() == members | {"tables", "changes", "conflicts", "resolved"}
    done = merged(graph, "draft")
    assert done.tables == told.tables


def test_a_dry_run_works_on_a_graph_that_is_open_for_reading(graph: og.Graph) -> None:
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    reader = og.Graph.open(graph.uri, og.OpenMode.READ_ONLY)
    assert previewed(reader, "draft").would_commit
    with pytest.raises(og.BadRequest, match="read-only"):
        reader.branch_merge("draft")


def test_a_dry_run_on_a_branch_forks_nothing(graph: og.Graph) -> None:
    graph.branch_create("other")
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    before = files_below(Path(graph.uri))
    assert previewed(graph, "draft", "other").would_commit
    assert files_below(Path(graph.uri)) == before


@pytest.mark.parametrize(
    ("names", "kind", "says"),
    [
        (("draft", "draft"), og.BadRequest, "merge needs distinct source and target"),
        (("main",), og.BadRequest, "merge needs distinct source and target"),
        ((" draft ", "draft"), og.BadRequest, "merge needs distinct source and target"),
        (("nowhere",), og.NotFound, "branch 'nowhere' not found"),
        (("draft", "nowhere"), og.NotFound, "branch 'nowhere' not found"),
        (("__schema_apply_lock__",), og.BadRequest, "does not allow internal system ref"),
        (("draft", "__schema_apply_lock__"), og.BadRequest, "does not allow internal system ref"),
    ],
)
def test_names_that_cannot_be_merged(graph: og.Graph, names: tuple[str, ...], kind: type[Exception], says: str) -> None:
    for dry_run in (True, False):
        with pytest.raises(kind, match=says):
            graph.branch_merge(*names, dry_run=dry_run)


def test_nothing_merges_while_a_schema_apply_runs(graph: og.Graph) -> None:
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    manifest = graph.context.manifest
    fork_branch_from_state(manifest.ref(), None, layout.SCHEMA_LOCK_BRANCH, manifest.state().version)
    head = graph.head_commit_id_for_branch() or ""
    for act in (
        lambda: graph.branch_merge("draft"),
        lambda: graph.commit_revert(head),
        lambda: graph.branch_reset("main", head),
    ):
        with pytest.raises(og.Conflict, match="a schema apply is running"):
            act()
    delete_branch(manifest.ref(), layout.SCHEMA_LOCK_BRANCH)
    assert merged(graph, "draft").outcome == "fast_forward"


def at(point: str, act: Any) -> None:
    """Let `act` happen when a write comes to `point` for the first time."""

    def once() -> None:
        failpoints.disarm_all()
        act()

    failpoints.arm(point, once)


@pytest.fixture(autouse=True)
def _disarmed() -> Any:
    yield
    failpoints.disarm_all()


def test_a_target_that_moves_meanwhile_refuses_the_merge(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { a: 32 } where name = "ana"', "draft")
    other = og.Graph.open(graph.uri)
    at("stage.files_written", lambda: mutate(other, 'update Person set { a: 40 } where name = "ana"'))
    with pytest.raises(og.ExpectedVersionMismatch):
        graph.branch_merge("draft")
    assert rows_of(graph, "node:Person")["ana"]["a"] == 40
    assert graph.recoveries().pending == ()
    with pytest.raises(og.MergeConflicts):
        graph.branch_merge("draft")


def test_a_target_that_moves_in_what_was_only_looked_at_refuses_the_merge(graph: og.Graph) -> None:
    write(graph, "draft", "edge:Knows", [{"id": "e", "src": "ana", "dst": "bo"}])
    other = og.Graph.open(graph.uri)
    at("stage.files_written", lambda: mutate(other, 'delete Person where name = "bo"'))
    with pytest.raises(og.ExpectedVersionMismatch):
        graph.branch_merge("draft")
    assert rows_of(graph, "edge:Knows") == {}


def test_a_target_that_moves_elsewhere_does_not_matter(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { a: 32 } where name = "ana"', "draft")
    other = og.Graph.open(graph.uri)
    at("stage.files_written", lambda: mutate(other, 'insert City { name: "oslo" }'))
    done = merged(graph, "draft")
    commit = graph.get_commit(done.graph_commit_id or "")
    assert commit.parent_commit_id == graph.list_commits()[1].graph_commit_id
    assert rows_of(graph, "node:City").keys() == {"oslo"}


def test_a_source_that_moves_meanwhile_is_merged_as_it_was(graph: og.Graph) -> None:
    head = mutate(graph, 'insert Person { name: "cy" }', "draft")
    other = og.Graph.open(graph.uri)
    at("stage.files_written", lambda: mutate(other, 'insert Person { name: "di" }', "draft"))
    done = merged(graph, "draft")
    assert graph.get_commit(done.graph_commit_id or "").merged_parent_commit_id == head
    assert set(rows_of(graph, "node:Person")) == {"ana", "bo", "cy"}
    merged(graph, "draft")
    assert "di" in rows_of(graph, "node:Person")


def test_a_target_that_is_deleted_meanwhile_is_told(graph: og.Graph) -> None:
    mutate(graph, 'insert Person { name: "cy" }')
    mutate(graph, 'insert Person { name: "di" }', "draft")
    other = og.Graph.open(graph.uri)
    at("stage.files_written", lambda: other.branch_delete("draft"))
    with pytest.raises(og.OmniError) as error:
        graph.branch_merge("main", "draft")
    assert isinstance(error.value, og.Conflict | og.NotFound), error.value
    mutate(graph, 'insert Person { name: "ed" }')


def test_the_source_goes_if_that_is_wished(graph: og.Graph) -> None:
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    done = merged(graph, "draft", delete_branch=True)
    assert (done.branch_deleted, done.branch_delete_error) == (True, None)
    assert graph.branch_list() == ["main"]
    assert "cy" in rows_of(graph, "node:Person")
    graph.branch_create("draft")
    assert merged(graph, "draft", delete_branch=True).to_json()["branch_deleted"] is True


def test_a_source_that_cannot_go_does_not_fail_the_merge(graph: og.Graph) -> None:
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    graph.branch_create_from("draft", "child")
    done = merged(graph, "draft", delete_branch=True)
    assert done.branch_deleted is False
    assert "still depends on it" in (done.branch_delete_error or "")
    assert "cy" in rows_of(graph, "node:Person")
    mains = merged(graph, "main", "draft", delete_branch=True)
    assert mains.branch_delete_error == "cannot delete branch 'main'"


def test_many_rows_merge_in_one_operation_of_each_table(graph: og.Graph) -> None:
    people(graph, "draft", *(person(f"p{k:05}", a=k % 1000) for k in range(25_000)))
    people(graph, "draft", *(person(f"p{k:05}", a=1) for k in range(0, 25_000, 2)), delete=("ana",))
    version = graph.snapshot().tables["node:Person"].table_version
    done = merged(graph, "draft")
    assert done.tables == ({"table_key": "node:Person", "inserts": 25_000, "updates": 0, "deletes": 1},)
    assert graph.snapshot().tables["node:Person"].table_version == version + 1
    assert rows_of(graph, "node:Person") == rows_of(graph, "node:Person", "draft")


def test_a_branch_that_is_only_behind_has_not_drifted(graph: og.Graph) -> None:
    mutate(graph, 'insert Person { name: "cy" }')
    assert [t.table_key for told in graph.status().branches for t in told.tables if t.drifted] == []
