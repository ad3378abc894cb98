"""A target that only reads a table may show the source's version of it; and may not where rows would be lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from merge_scene import content, files_below, mutate, new_graph, people, person, rows_of, write

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.base.failpoints import WINDOWS


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = new_graph(tmp_path)
    people(made, None, person("ana", a=1), person("bo", a=1))
    return made


def place(graph: og.Graph, branch: str | None, table_key: str = "node:Person") -> tuple[str | None, int]:
    entry = graph.snapshot(branch).tables[table_key]
    return entry.table_branch, entry.table_version


def test_a_branch_that_never_wrote_a_table_shows_mains_version_of_it(graph: og.Graph) -> None:
    graph.branch_create("draft")
    mutate(graph, 'insert Person { name: "cy" }')
    folder = Path(graph.uri)
    before = {name for name in files_below(folder) if name.startswith("nodes/")}
    done = graph.branch_merge("main", "draft")
    assert isinstance(done, og.MergeResult)
    assert (done.outcome, place(graph, "draft")) == ("fast_forward", place(graph, None))
    assert {name for name in files_below(folder) if name.startswith("nodes/")} == before
    commit = graph.get_commit(done.graph_commit_id or "")
    assert commit.counts["node:Person"].inserts == 1
    mutate(graph, 'insert Person { name: "di" }', "draft")
    mutate(graph, 'insert Person { name: "ed" }')
    assert set(rows_of(graph, "node:Person", "draft")) == {"ana", "bo", "cy", "di"}
    graph.branch_delete("draft")


def test_main_and_forks_take_rows_and_never_a_version(graph: og.Graph) -> None:
    graph.branch_create("draft")
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    graph.branch_merge("draft")
    assert place(graph, None)[0] is None
    mutate(graph, 'insert Person { name: "di" }')
    graph.branch_merge("main", "draft")
    assert place(graph, "draft")[0] == "draft"
    assert content(graph) == content(graph, "draft")
    graph.branch_delete("draft")
    assert set(rows_of(graph, "node:Person")) == {"ana", "bo", "cy", "di"}


def test_rows_of_a_branch_in_between_are_not_lost(graph: og.Graph) -> None:
    """main → team → draft: draft reads the fork of team, so main's version must not take its place."""
    graph.branch_create("team")
    mutate(graph, 'insert Person { name: "tim" }', "team")
    graph.branch_create_from("team", "draft")
    mutate(graph, 'insert Person { name: "cy" }')
    assert place(graph, "draft")[0] == "team"
    graph.branch_merge("main", "draft")
    assert place(graph, "draft")[0] == "draft"
    assert set(rows_of(graph, "node:Person", "draft")) == {"ana", "bo", "cy", "tim"}


def test_a_fork_that_is_not_inherited_is_not_shown(graph: og.Graph) -> None:
    """Both come from main; to show the other's fork would tie this branch to it for ever."""
    for name in ("one", "two"):
        graph.branch_create(name)
    mutate(graph, 'insert Person { name: "cy" }', "one")
    graph.branch_merge("one", "two")
    assert place(graph, "two")[0] == "two"
    graph.branch_delete("one")
    assert set(rows_of(graph, "node:Person", "two")) == {"ana", "bo", "cy"}


def test_a_branch_that_went_on_in_between_is_merged_by_rows(graph: og.Graph) -> None:
    """team goes on after draft was made from it, and draft already took main's rows once."""
    graph.branch_create("team")
    mutate(graph, 'insert Person { name: "tim" }', "team")
    graph.branch_create_from("team", "draft")
    mutate(graph, 'insert Person { name: "tom" }', "team")
    mutate(graph, 'insert Person { name: "cy" }')
    graph.branch_merge("team", "draft")
    assert place(graph, "draft") == place(graph, "team")
    graph.branch_merge("main", "draft")
    assert set(rows_of(graph, "node:Person", "draft")) == {"ana", "bo", "cy", "tim", "tom"}
    graph.branch_merge("draft", "team")
    assert set(rows_of(graph, "node:Person", "team")) == {"ana", "bo", "cy", "tim", "tom"}


def test_adopted_tables_are_validated_too(graph: og.Graph) -> None:
    """draft has an edge to a node that main deleted; draft itself never wrote nodes, so it could show main's."""
    graph.branch_create("draft")
    write(graph, "draft", "edge:Knows", [{"id": "e", "src": "ana", "dst": "bo"}])
    mutate(graph, 'delete Person where name = "bo"')
    with pytest.raises(og.MergeConflicts) as refused:
        graph.branch_merge("main", "draft")
    (found,) = refused.value.merge_conflicts
    assert (found["table_key"], found["row_id"], found["kind"]) == ("edge:Knows", "e", "orphan_edge")
    assert place(graph, "draft") == (None, place(graph, "draft")[1])


def test_edits_that_cancel_out_make_a_commit_and_move_no_table(graph: og.Graph) -> None:
    graph.branch_create("draft")
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    mutate(graph, 'delete Person where name = "cy"', "draft")
    pins = dict(graph.snapshot().tables)
    done = graph.branch_merge("draft")
    assert isinstance(done, og.MergeResult)
    assert (done.outcome, done.tables) == ("fast_forward", ())
    assert dict(graph.snapshot().tables) == pins
    commit = graph.get_commit(done.graph_commit_id or "")
    assert commit.merged_parent_commit_id == graph.head_commit_id_for_branch("draft")
    assert (commit.kind, dict(commit.counts)) == ("merge", {})
    again = graph.branch_merge("draft")
    assert isinstance(again, og.MergeResult)
    assert (again.outcome, again.graph_commit_id) == ("already_up_to_date", None)


class Died(BaseException):
    """A process that stops here."""


def die() -> None:
    raise Died


@pytest.mark.parametrize("window", [w for w in WINDOWS if w != "mid_phase_b"])
def test_a_crash_while_a_version_is_taken_over_leaves_before_or_after(graph: og.Graph, window: str) -> None:
    graph.branch_create("draft")
    mutate(graph, 'insert Person { name: "cy" }')
    mains, before = place(graph, None), content(graph, "draft")
    failpoints.arm(f"branch_merge.{window}", die)
    try:
        with pytest.raises(Died):
            graph.branch_merge("main", "draft")
    finally:
        failpoints.disarm_all()
    reopened = og.Graph.open(graph.uri)
    landed = window != "pre_phase_a"
    assert content(reopened, "draft") == (content(reopened) if landed else before)
    assert place(reopened, None) == mains
    mutate(reopened, 'insert Person { name: "ed" }', "draft")
    mutate(reopened, 'insert Person { name: "flo" }')
    assert "ed" in rows_of(reopened, "node:Person", "draft")
    assert set(rows_of(reopened, "node:Person")) == {"ana", "bo", "cy", "flo"}
