"""Branches to write on: made, listed, written, deleted, made again."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.manifest import layout
from omnigraph.storage.refs import list_branches, read_branch

SCHEMA = "node Person { name: String @key age: I32? }\nnode City { name: String @key }"


class Died(BaseException):
    """A process that stops here."""


def die() -> None:
    raise Died


def rows(*names: str) -> pa.Table:
    return pa.table({"id": list(names), "name": list(names)})


def add(graph: og.Graph, branch: str | None, *names: str, table: str = "node:Person") -> str:
    return graph.write({table: og.Append(rows(*names))}, branch=branch).graph_commit_id


def people(graph: og.Graph, branch: str | None = None) -> list[str]:
    return sorted(graph.view(branch).table("node:Person").read(["id"]).column("id").to_pylist())


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    add(made, None, "ana")
    return made


def table_forks(graph: og.Graph, table_key: str = "node:Person") -> set[str]:
    return set(list_branches(graph.context.ref(graph.snapshot().tables[table_key].location, None)))


def test_a_new_branch_reads_its_source_and_copies_nothing(graph: og.Graph) -> None:
    head = graph.head_commit_id_for_branch()
    graph.branch_create("draft")
    assert people(graph, "draft") == ["ana"]
    assert graph.head_commit_id_for_branch("draft") == head
    assert graph.branch_list() == ["main", "draft"]
    assert table_forks(graph) == set()


def test_the_first_write_forks_only_the_tables_it_writes(graph: og.Graph) -> None:
    graph.branch_create("draft")
    add(graph, "draft", "bo")
    assert table_forks(graph) == {"draft"}
    assert table_forks(graph, "node:City") == set()
    assert (people(graph), people(graph, "draft")) == (["ana"], ["ana", "bo"])


def test_later_commits_on_the_source_do_not_reach_the_branch(graph: og.Graph) -> None:
    graph.branch_create("draft")
    add(graph, None, "zoe")
    assert people(graph, "draft") == ["ana"]
    add(graph, "draft", "bo")
    assert people(graph, "draft") == ["ana", "bo"]


def test_a_branch_of_a_branch_starts_where_that_one_is(graph: og.Graph) -> None:
    graph.branch_create("draft")
    add(graph, "draft", "bo")
    graph.branch_create_from("draft", "team/review")
    add(graph, "team/review", "cy")
    add(graph, "draft", "di")
    assert people(graph, "team/review") == ["ana", "bo", "cy"]
    assert people(graph, "draft") == ["ana", "bo", "di"]
    assert [c.manifest_branch for c in graph.list_commits("team/review")] == ["team/review", "draft", None, None]


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("main", "cannot create branch 'main'"),
        ("  ", "branch name cannot be empty"),
        ("a//b", "is not a branch name"),
        ("/a", "is not a branch name"),
        ("a/", "is not a branch name"),
        ("a..b", "is not a branch name"),
        ("a.lock", "is not a branch name"),
        ("ä", "is not a branch name"),
        ("x" * 129, "longer than 128"),
        ("__schema_apply_lock__", "does not allow internal system ref"),
    ],
)
def test_a_name_that_cannot_be_a_branch_is_refused(graph: og.Graph, name: str, says: str) -> None:
    with pytest.raises(og.BadRequest, match=says):
        graph.branch_create(name)
    assert graph.branch_list() == ["main"]


def test_live_names_are_never_path_ancestors_of_each_other(graph: og.Graph) -> None:
    graph.branch_create("team/x")
    for name in ("team", "team/x/y"):
        with pytest.raises(og.Conflict, match="branch names may not be path ancestors or descendants"):
            graph.branch_create(name)
    graph.branch_create("team/y")
    assert graph.branch_list() == ["main", "team/x", "team/y"]


def test_an_existing_name_and_a_missing_source_are_told_apart(graph: og.Graph) -> None:
    graph.branch_create("draft")
    with pytest.raises(og.Conflict, match="already exists"):
        graph.branch_create("draft")
    with pytest.raises(og.NotFound, match="branch 'nowhere' not found"):
        graph.branch_create_from("nowhere", "other")


@pytest.mark.parametrize("source", ["main~1", "commit"])
def test_a_branch_cannot_start_at_a_pinned_snapshot(graph: og.Graph, source: str) -> None:
    target = graph.head_commit_id_for_branch() if source == "commit" else source
    with pytest.raises(og.BadRequest, match="from pinned snapshots is not supported"):
        graph.branch_create_from(str(target), "draft")


def test_a_deleted_branch_is_gone_with_its_forks(graph: og.Graph) -> None:
    graph.branch_create("draft")
    add(graph, "draft", "bo")
    graph.branch_delete("draft")
    assert graph.branch_list() == ["main"]
    assert table_forks(graph) == set()
    with pytest.raises(og.NotFound, match="branch 'draft' not found"):
        graph.snapshot("draft")
    assert people(graph) == ["ana"]


def test_a_branch_that_others_need_stays(graph: og.Graph) -> None:
    graph.branch_create("draft")
    graph.branch_create_from("draft", "child")
    with pytest.raises(og.Conflict, match="'child' still depends on it"):
        graph.branch_delete("draft")
    graph.sync_branch("child")
    with pytest.raises(og.Conflict, match="currently active branch"):
        graph.branch_delete("child")
    with pytest.raises(og.BadRequest, match="cannot delete branch 'main'"):
        graph.branch_delete("main")
    with pytest.raises(og.NotFound, match="branch 'nowhere' not found"):
        graph.branch_delete("nowhere")


def test_sync_branch_changes_the_branch_of_later_calls(graph: og.Graph) -> None:
    graph.branch_create("draft")
    graph.sync_branch("draft")
    add(graph, None, "bo")
    assert people(graph) == ["ana", "bo"]
    assert people(graph, "main") == ["ana"]
    with pytest.raises(og.NotFound):
        graph.sync_branch("nowhere")


def test_a_recreated_name_starts_a_fresh_lineage(graph: og.Graph) -> None:
    graph.branch_create("draft")
    old = graph.snapshot("draft")
    incarnation = graph.view("draft").incarnation
    for name in ("bo", "cy", "di"):
        add(graph, "draft", name)
    graph.branch_delete("draft")
    graph.branch_create("draft")
    assert graph.view("draft").incarnation != incarnation
    assert people(graph, "draft") == ["ana"]
    assert graph.snapshot("draft").graph_commit_id == old.graph_commit_id
    add(graph, "draft", "eve")
    assert people(graph, "draft") == ["ana", "eve"]
    assert len(graph.list_commits("draft")) == 3


def test_another_handle_sees_the_recreated_branch_and_not_the_old_one(graph: og.Graph) -> None:
    other = og.Graph.open(graph.uri)
    graph.branch_create("draft")
    add(graph, "draft", "bo")
    assert people(other, "draft") == ["ana", "bo"]
    view = other.view("draft")
    graph.branch_delete("draft")
    graph.branch_create("draft")
    add(graph, "draft", "cy")
    assert people(other, "draft") == ["ana", "cy"]
    with pytest.raises(og.OmniError):
        other.write({"node:Person": og.Append(rows("late"))}, view=view)
    assert people(graph, "draft") == ["ana", "cy"]


def test_a_crash_while_a_branch_is_made_leaves_it_or_nothing(graph: og.Graph) -> None:
    failpoints.arm("branch_create.post_manifest", die)
    with pytest.raises(Died):
        graph.branch_create("draft")
    failpoints.disarm_all()
    again = og.Graph.open(graph.uri)
    assert again.branch_list() == ["main", "draft"]
    add(again, "draft", "bo")
    assert people(again, "draft") == ["ana", "bo"]
    again.branch_delete("draft")
    again.branch_create("draft")
    assert people(again, "draft") == ["ana"]


@pytest.mark.parametrize("window", ["pre_manifest", "post_manifest"])
def test_a_crash_while_a_branch_is_deleted_leaves_it_whole_or_gone(graph: og.Graph, window: str) -> None:
    graph.branch_create("draft")
    add(graph, "draft", "bo")
    failpoints.arm(f"branch_delete.{window}", die)
    with pytest.raises(Died):
        graph.branch_delete("draft")
    failpoints.disarm_all()
    again = og.Graph.open(graph.uri)
    if window == "pre_manifest":
        assert people(again, "draft") == ["ana", "bo"]
        again.branch_delete("draft")
    assert again.branch_list() == ["main"]


def test_an_orphaned_fork_is_named_and_not_used(graph: og.Graph) -> None:
    graph.branch_create("draft")
    add(graph, "draft", "bo")
    failpoints.arm("branch_delete.post_manifest", die)
    with pytest.raises(Died):
        graph.branch_delete("draft")
    failpoints.disarm_all()
    again = og.Graph.open(graph.uri)
    again.branch_create("draft")
    with pytest.raises(og.Conflict, match="stale fork of 'draft' on node:Person; run omnigraph cleanup"):
        add(again, "draft", "cy")
    add(again, "draft", "oslo", table="node:City")
    assert people(again, "draft") == ["ana"]


def test_a_fork_left_by_a_crash_before_its_first_commit_is_used(graph: og.Graph) -> None:
    graph.branch_create("draft")
    failpoints.arm("fork.post_create", die)
    with pytest.raises(Died):
        add(graph, "draft", "bo")
    failpoints.disarm_all()
    assert table_forks(graph) == {"draft"}
    again = og.Graph.open(graph.uri)
    assert people(again, "draft") == ["ana"]
    add(again, "draft", "bo")
    assert people(again, "draft") == ["ana", "bo"]


@pytest.mark.parametrize("window", failpoints.WINDOWS)
def test_a_first_write_that_died_is_settled_as_a_whole(graph: og.Graph, window: str) -> None:
    graph.branch_create("draft")
    failpoints.arm(f"load.{window}", die)
    with pytest.raises(Died):
        graph.write({"node:Person": og.Append(rows("bo")), "node:City": og.Append(rows("oslo"))}, branch="draft")
    failpoints.disarm_all()
    again = og.Graph.open(graph.uri)
    cities = again.view("draft").table("node:City").count_rows()
    assert (people(again, "draft"), cities) in ((["ana"], 0), (["ana", "bo"], 1))
    assert people(again) == ["ana"]
    add(again, "draft", "cy")
    assert "cy" in people(again, "draft")
    assert again.recoveries().pending == ()
    assert all(t.head == t.pinned for b in again.status().branches for t in b.tables if b.branch == "draft")


def test_a_leftover_commit_table_of_a_dead_branch_is_dropped(graph: og.Graph) -> None:
    graph.close()
    graph.branch_create("draft")
    failpoints.arm("branch_delete.post_manifest", die)
    with pytest.raises(Died):
        graph.branch_delete("draft")
    failpoints.disarm_all()
    commits = graph.context.ref(layout.COMMITS, None)
    assert read_branch(commits, "draft") is not None
    again = og.Graph.open(graph.uri)
    again.branch_create("draft")
    assert read_branch(commits, "draft") is not None
    assert len(again.list_commits("draft")) == 2
