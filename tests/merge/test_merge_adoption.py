"""A target that only reads a table may show the source's version of it; and may not where rows would be lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from merge_scene import content, files_below, mutate, new_graph, people, person, rows_of, write

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.base.failpoints import WINDOWS
from omnigraph.engine.merge.combine import may_be_shown
from omnigraph.manifest.snapshot import SubTableEntry

pytestmark = pytest.mark.slow


class Died(BaseException):
    """A process that stops here."""


def die() -> None:
    raise Died


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


SHOWN = {
    # branch, base, source and target as (fork, version)
    ("draft", (None, 5), (None, 7), (None, 5)): True,
    ("draft", ("team", 5), ("team", 7), ("team", 5)): True,
    (None, (None, 5), (None, 7), (None, 5)): False,
    ("draft", ("draft", 5), ("draft", 7), ("draft", 5)): False,
    ("draft", (None, 5), ("other", 7), (None, 5)): False,
    ("draft", (None, 5), (None, 7), ("team", 6)): False,
    ("draft", (None, 5), (None, 7), (None, 6)): False,
    ("draft", None, (None, 7), (None, 5)): False,
    ("draft", (None, 5), (None, 4), (None, 5)): False,
}


@pytest.mark.parametrize("case", SHOWN, ids=str)
def test_a_version_is_taken_over_only_on_its_own_line_and_from_the_base(case: Any) -> None:
    branch, *places = case
    base, source, target = (None if p is None else SubTableEntry("nodes/x", p[1], p[0], 1) for p in places)
    assert source is not None
    assert target is not None
    assert may_be_shown(branch, base, source, target) is SHOWN[case]


def test_a_fork_that_a_crash_left_behind_does_not_block_the_branch(graph: og.Graph) -> None:
    graph.branch_create("draft")
    failpoints.arm("fork.post_create", die)
    with pytest.raises(Died):
        mutate(graph, 'insert Person { name: "lost" }', "draft")
    failpoints.disarm_all()
    mutate(graph, 'insert Person { name: "cy" }')
    graph.branch_merge("main", "draft")
    mutate(graph, 'insert Person { name: "di" }', "draft")
    assert set(rows_of(graph, "node:Person", "draft")) == {"ana", "bo", "cy", "di"}


def test_a_writer_that_begins_meanwhile_is_not_locked_out(graph: og.Graph) -> None:
    """It forks the version shown so far, just before the merge would take another one over."""
    graph.branch_create("draft")
    mutate(graph, 'insert Person { name: "cy" } insert City { name: "oslo" }')
    write(graph, "draft", "node:City", [{"id": "rome", "name": "rome"}])
    other = og.Graph.open(graph.uri)

    def meanwhile() -> None:
        failpoints.disarm_all()
        failpoints.arm("stage.files_written", die)
        with pytest.raises(Died):
            mutate(other, 'insert Person { name: "di" }', "draft")
        failpoints.disarm_all()

    failpoints.arm("stage.files_written", meanwhile)
    with pytest.raises(og.Conflict, match="another write to node:Person has begun"):
        graph.branch_merge("main", "draft")
    mutate(other, 'insert Person { name: "di" }', "draft")
    graph.branch_merge("main", "draft")
    assert set(rows_of(graph, "node:Person", "draft")) == {"ana", "bo", "cy", "di"}


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
