"""Commits undone and branches set back, by new commits."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from merge_scene import conflicts_of, content, mutate, new_graph, people, person, rows_of, write

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.base.failpoints import WINDOWS
from omnigraph.storage.tables import TableRef

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = new_graph(tmp_path)
    people(made, None, person("ana", a=31), person("bo", a=7))
    return made


def ages(graph: og.Graph, branch: str | None = None) -> dict[str, int | None]:
    return {name: row["a"] for name, row in rows_of(graph, "node:Person", branch).items()}


def test_a_revert_undoes_one_commit_and_keeps_later_ones(graph: og.Graph) -> None:
    bad = mutate(graph, 'insert Person { name: "cy" } update Person set { a: 1 } where name = "ana"')
    mutate(graph, 'update Person set { a: 8 } where name = "bo"')
    done = graph.commit_revert(bad, actor="act-ana", message="oops", metadata={"why": "typo"})
    assert ages(graph) == {"ana": 31, "bo": 8}
    commit = graph.get_commit(done.graph_commit_id or "")
    assert (commit.kind, commit.actor_id, commit.message) == ("revert", "act-ana", "oops")
    assert commit.metadata == {"why": "typo", "omnigraph": {"revert": {"graph_commit_id": bad}}}
    assert commit.merged_parent_commit_id is None
    counts = commit.counts["node:Person"]
    assert (counts.inserts, counts.updates, counts.deletes) == (0, 1, 1)
    assert done.to_json()["reverted"] == bad


def test_a_revert_can_be_reverted(graph: og.Graph) -> None:
    bad = mutate(graph, 'delete Person where name = "ana"')
    undone = graph.commit_revert(bad).graph_commit_id or ""
    assert "ana" in ages(graph)
    graph.commit_revert(undone)
    assert "ana" not in ages(graph)


def test_rows_changed_again_since_are_conflicts(graph: og.Graph) -> None:
    bad = mutate(graph, 'update Person set { a: 1 } where name = "ana" update Person set { a: 2 } where name = "bo"')
    mutate(graph, 'update Person set { a: 3 } where name = "ana"')
    head = graph.head_commit_id_for_branch()
    with pytest.raises(og.MergeConflicts) as error:
        graph.commit_revert(bad)
    assert conflicts_of(error.value) == {("node:Person", "ana", "divergent_update")}
    assert "--strategy" not in error.value.hint
    assert (graph.head_commit_id_for_branch(), ages(graph)) == (head, {"ana": 3, "bo": 2})


def test_a_revert_may_not_break_a_rule(graph: og.Graph) -> None:
    made = mutate(graph, 'insert Person { name: "cy" }')
    write(graph, None, "edge:Knows", [{"id": "e", "src": "ana", "dst": "cy"}])
    with pytest.raises(og.MergeConflicts) as error:
        graph.commit_revert(made)
    assert conflicts_of(error.value) == {("edge:Knows", "e", "orphan_edge")}


def test_reverting_a_merge_undoes_what_it_brought_in(graph: og.Graph) -> None:
    graph.branch_create("draft")
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    mutate(graph, 'update Person set { a: 32 } where name = "ana"', "draft")
    mutate(graph, 'update Person set { a: 8 } where name = "bo"')
    done = graph.branch_merge("draft")
    assert isinstance(done, og.MergeResult)
    graph.commit_revert(done.graph_commit_id or "")
    assert ages(graph) == {"ana": 31, "bo": 8}
    assert ages(graph, "draft") == {"ana": 32, "bo": 7, "cy": None}


def test_a_merge_that_took_over_a_version_can_be_reverted(graph: og.Graph) -> None:
    graph.branch_create("draft")
    mutate(graph, 'insert Person { name: "cy" }')
    done = graph.branch_merge("main", "draft")
    assert isinstance(done, og.MergeResult)
    graph.commit_revert(done.graph_commit_id or "", branch="draft")
    assert (set(ages(graph, "draft")), set(ages(graph))) == ({"ana", "bo"}, {"ana", "bo", "cy"})


def test_a_commit_made_before_the_branch_can_be_reverted_on_it(graph: og.Graph) -> None:
    bad = mutate(graph, 'insert Person { name: "cy" }')
    graph.branch_create("draft")
    graph.commit_revert(bad, branch="draft")
    assert (set(ages(graph, "draft")), set(ages(graph))) == ({"ana", "bo"}, {"ana", "bo", "cy"})


def test_what_cannot_be_reverted(graph: og.Graph) -> None:
    graph.branch_create("draft")
    elsewhere = mutate(graph, 'insert Person { name: "cy" }', "draft")
    genesis = graph.list_commits()[-1].graph_commit_id
    head = graph.head_commit_id_for_branch()
    cases: list[tuple[str, type[Exception], str]] = [
        (elsewhere, og.BadRequest, "is not on the first-parent chain of branch 'main'"),
        (genesis, og.Conflict, "is the first one"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", og.NotFound, "not found"),
        ("main~99", og.NotFound, "before the first commit"),
    ]
    for name, kind, says in cases:
        with pytest.raises(kind, match=says):
            graph.commit_revert(name)
    graph.branch_merge("draft")
    with pytest.raises(og.BadRequest, match="first-parent chain"):
        graph.commit_revert(elsewhere)
    assert graph.list_commits()[1].graph_commit_id == head


def test_a_schema_change_is_not_reverted_and_no_reset_goes_beyond_it(graph: og.Graph) -> None:
    from omnigraph.commit.plan import SCHEMA_APPLY

    before = graph.head_commit_id_for_branch() or ""
    applied = graph.write({"node:City": og.Append(_city())}, writer=SCHEMA_APPLY).graph_commit_id
    with pytest.raises(og.Conflict, match="schema_boundary"):
        graph.commit_revert(applied)
    with pytest.raises(og.Conflict, match="schema_boundary"):
        graph.branch_reset("main", before)
    mutate(graph, 'insert Person { name: "cy" }')
    graph.branch_reset("main", applied)
    assert set(ages(graph)) == {"ana", "bo"}


def _city() -> Any:
    import pyarrow as pa

    return pa.table({"id": ["oslo"], "name": ["oslo"]})


def test_a_reset_brings_the_content_of_a_commit_back(graph: og.Graph) -> None:
    good = graph.head_commit_id_for_branch() or ""
    before = content(graph)
    mutate(graph, 'insert Person { name: "cy" } insert City { name: "oslo" } insert Knows { from: "cy", to: "ana" }')
    mutate(graph, 'update Person set { a: 1 } where name = "ana"')
    mutate(graph, 'delete Person where name = "bo"')
    length = len(graph.list_commits())
    done = graph.branch_reset("main", good, message="back")
    assert content(graph) == before
    assert len(graph.list_commits()) == length + 1
    commit = graph.get_commit(done.graph_commit_id or "")
    assert (commit.kind, commit.message) == ("reset", "back")
    assert commit.metadata["omnigraph"] == {"reset": {"graph_commit_id": good}}
    assert ages(graph) == {"ana": 31, "bo": 7}
    graph.branch_reset("main", "main~1")
    assert set(ages(graph)) == {"ana", "cy"}


def test_a_reset_to_what_is_there_already_makes_no_commit(graph: og.Graph) -> None:
    good = graph.head_commit_id_for_branch() or ""
    assert graph.branch_reset("main", good).graph_commit_id is None
    mutate(graph, 'insert Person { name: "cy" }')
    mutate(graph, 'delete Person where name = "cy"')
    head = graph.head_commit_id_for_branch()
    assert graph.branch_reset("main", good).graph_commit_id is None
    assert graph.head_commit_id_for_branch() == head


def test_a_branch_can_be_reset_to_before_it_was_made(graph: og.Graph) -> None:
    good = graph.head_commit_id_for_branch() or ""
    mutate(graph, 'insert Person { name: "cy" }')
    graph.branch_create("draft")
    mutate(graph, 'insert City { name: "oslo" }', "draft")
    graph.branch_reset("draft", good)
    assert (set(ages(graph, "draft")), set(ages(graph))) == ({"ana", "bo"}, {"ana", "bo", "cy"})
    assert rows_of(graph, "node:City", "draft") == {}


def test_what_a_branch_cannot_be_reset_to(graph: og.Graph) -> None:
    graph.branch_create("draft")
    elsewhere = mutate(graph, 'insert Person { name: "cy" }', "draft")
    with pytest.raises(og.BadRequest, match="is not in the history of branch 'main'"):
        graph.branch_reset("main", elsewhere)
    with pytest.raises(og.NotFound):
        graph.branch_reset("main", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
    with pytest.raises(og.NotFound):
        graph.branch_reset("nowhere", elsewhere)


def test_what_cleanup_took_cannot_be_brought_back(graph: og.Graph) -> None:
    good = graph.head_commit_id_for_branch() or ""
    bad = mutate(graph, 'insert Person { name: "cy" }')
    mutate(graph, 'insert Person { name: "di" }')
    entry = graph.snapshot_of(good).tables["node:Person"]
    ref = TableRef(graph.context.root, entry.location, None)
    graph.context.objects.delete(ref.version_file(entry.table_version))
    reopened = og.Graph.open(graph.uri)
    for act in (lambda: reopened.branch_reset("main", good), lambda: reopened.commit_revert(bad)):
        with pytest.raises(og.Reclaimed):
            act()
    mutate(reopened, 'insert Person { name: "ed" }')


def test_a_reset_loses_to_any_write_on_its_branch(graph: og.Graph) -> None:
    good = graph.head_commit_id_for_branch() or ""
    mutate(graph, 'insert Person { name: "cy" }')
    other = og.Graph.open(graph.uri)

    def meanwhile() -> None:
        failpoints.disarm_all()
        mutate(other, 'insert City { name: "oslo" }')

    failpoints.arm("stage.files_written", meanwhile)
    with pytest.raises(og.ExpectedVersionMismatch):
        graph.branch_reset("main", good)
    assert set(ages(graph)) == {"ana", "bo", "cy"}


def test_after_a_reset_a_branch_does_not_come_back_by_itself(graph: og.Graph) -> None:
    graph.branch_create("draft")
    mutate(graph, 'insert Person { name: "cy" }', "draft")
    before = graph.head_commit_id_for_branch() or ""
    graph.branch_merge("draft")
    graph.branch_reset("main", before)
    again = graph.branch_merge("draft")
    assert isinstance(again, og.MergeResult)
    assert again.outcome == "already_up_to_date"
    assert set(ages(graph)) == {"ana", "bo"}


class Died(BaseException):
    """A process that stops here."""


def die() -> None:
    raise Died


@pytest.mark.parametrize("window", WINDOWS)
@pytest.mark.parametrize("verb", ["branch_merge", "revert", "reset"])
def test_a_crash_leaves_the_graph_before_or_after(graph: og.Graph, verb: str, window: str) -> None:
    good = graph.head_commit_id_for_branch() or ""
    graph.branch_create("draft")
    mutate(graph, 'insert Person { name: "cy" } update Person set { a: 1 } where name = "ana"', "draft")
    bad = mutate(graph, 'update Person set { a: 9 } where name = "bo"')
    acts = {
        "branch_merge": (lambda: graph.branch_merge("draft"), {"ana": 1, "bo": 9, "cy": None}),
        "revert": (lambda: graph.commit_revert(bad), {"ana": 31, "bo": 7}),
        "reset": (lambda: graph.branch_reset("main", good), {"ana": 31, "bo": 7}),
    }
    act, after = acts[verb]
    before = ages(graph)
    failpoints.arm(f"{verb}.{window}", die)
    try:
        with pytest.raises(Died):
            act()
    finally:
        failpoints.disarm_all()
    reopened = og.Graph.open(graph.uri)
    landed = window not in ("pre_phase_a", "post_phase_a_pre_phase_b")
    assert ages(reopened) == (after if landed else before)
    if landed and verb == "branch_merge":
        again = reopened.branch_merge("draft")
        assert isinstance(again, og.MergeResult)
        assert again.outcome == "already_up_to_date"
    mutate(reopened, 'insert Person { name: "ed" }')
    assert "ed" in ages(reopened)
