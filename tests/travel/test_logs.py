"""The log: which commits, in which order, under which names."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest
from travel_scene import Past, add

import omnigraph as og
from omnigraph.engine.log import newest_first, parents_of
from omnigraph.manifest.lineage import GraphCommit


def commit(name: str, at: int, first: str | None = None, second: str | None = None) -> GraphCommit:
    return GraphCommit(name, None, at, parent_commit_id=first, merged_parent_commit_id=second, created_at=at)


def ids(commits: list[GraphCommit]) -> list[str]:
    return [c.graph_commit_id for c in commits]


def test_commits_come_newest_first() -> None:
    found = newest_first([commit("a", 1), commit("d", 3, "a"), commit("m", 2, "a"), commit("e", 4, "m", "d")])
    assert ids(found) == ["e", "d", "m", "a"]


def test_a_child_comes_before_its_parents_whatever_the_clocks_said() -> None:
    late = [commit("a", 1), commit("d", 99, "a"), commit("m", 2, "a"), commit("e", 3, "m", "d")]
    assert ids(newest_first(late)) == ["e", "d", "m", "a"]


@pytest.mark.parametrize("seed", range(20))
def test_any_history_is_ordered_the_same_from_any_order_of_reading(seed: int) -> None:
    chance = random.Random(seed)
    made = [commit("c0", 0)]
    for n in range(1, 60):
        first, second = (chance.choice(made).graph_commit_id for _ in range(2))
        made.append(commit(f"c{n}", chance.randrange(100), first, second if second != first else None))
    found = newest_first(chance.sample(made, len(made)))
    assert ids(found) == ids(newest_first(made))
    place = {c.graph_commit_id: n for n, c in enumerate(found)}
    assert all(place[parent] > place[c.graph_commit_id] for c in found for parent in parents_of(c))


def test_parents_that_are_not_there_are_no_obstacle() -> None:
    assert ids(newest_first([commit("m", 2, "a", "gone"), commit("a", 1, "older")])) == ["m", "a"]


def test_the_log_of_a_branch_is_its_list_of_commits_with_labels(past: Past) -> None:
    graph = past.graph
    graph.tag_create("v1", "main~2")
    graph.tag_create("v1.1", "main~2")
    graph.branch_create("same")
    found = graph.log()
    assert [e.commit for e in found] == graph.list_commits()
    assert found[0].branches == ("main", "same")
    assert [e.tags for e in found] == [(), (), ("v1", "v1.1"), ()]
    assert [e.commit for e in graph.log("draft", limit=2)] == graph.list_commits("draft")[:2]
    assert graph.log("draft")[0].branches == ("draft",)


def test_the_whole_log_has_every_commit_of_every_branch_once(past: Past) -> None:
    found = past.graph.log(graph=True)
    both = {c.graph_commit_id for b in ("main", "draft") for c in past.graph.list_commits(b)}
    assert {e.commit.graph_commit_id for e in found} == both
    assert len(found) == len(both) == 6
    assert all(a.commit.created_at > b.commit.created_at for a, b in pairwise(found))
    assert {name: e.commit.graph_commit_id for e in found for name in e.branches} == {
        "main": past.ids["cy"],
        "draft": past.ids["ed"],
    }


def test_the_whole_log_of_one_branch_has_what_it_descends_from(past: Past) -> None:
    found = {e.commit.graph_commit_id for e in past.graph.log("main", graph=True)}
    assert found == {c.graph_commit_id for c in past.graph.list_commits("main")}


def test_a_log_of_what_is_not_there_is_refused(past: Past) -> None:
    for act in (lambda: past.graph.log("nowhere"), lambda: past.graph.log("nowhere", graph=True)):
        with pytest.raises(og.NotFound, match="branch 'nowhere' not found"):
            act()
    with pytest.raises(og.BadRequest, match="limit"):
        past.graph.log(limit=-1)


def test_a_long_history_is_told_as_a_whole(past: Past) -> None:
    for n in range(30):
        add(past.graph, f"n{n}", "draft" if n % 3 == 0 else None)
    assert len(past.graph.log(graph=True)) == 36
    assert len(past.graph.log(graph=True, limit=5)) == 5
