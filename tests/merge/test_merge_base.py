"""Where two histories met: over every shape a graph of commits can take."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import pytest
from merge_scene import content, mutate, new_graph, people, person, rows_of

import omnigraph as og
from omnigraph.engine.merge.base import distances, merge_base


@dataclass(frozen=True)
class Commit:
    graph_commit_id: str
    manifest_version: int
    parent_commit_id: str | None = None
    merged_parent_commit_id: str | None = None


def dag(*lines: str) -> dict[str, Commit]:
    """`c a b`: commit c with the parents a and b; later lines have larger graph versions."""
    found = {}
    for version, line in enumerate(lines, 1):
        name, *parents = line.split()
        one, other = [*parents, None, None][:2]
        found[name] = Commit(name, version, one, other)
    return found


CASES: dict[str, tuple[tuple[str, ...], str, str, str | None]] = {
    "a fork": (("g", "m g", "d g"), "m", "d", "g"),
    "the same commit": (("g", "m g"), "m", "m", "m"),
    "one is behind": (("g", "m g", "n m"), "n", "m", "m"),
    "merged before": (("g", "d1 g", "m1 g d1", "d2 d1", "m2 m1"), "m2", "d2", "d1"),
    "merged twice": (("g", "d1 g", "m1 g d1", "d2 d1", "m2 m1 d2", "d3 d2", "m3 m2"), "m3", "d3", "d2"),
    "merged the other way": (("g", "m1 g", "d1 g m1", "m2 m1", "d2 d1"), "m2", "d2", "m1"),
    "both ways in turn": (("g", "m1 g", "d1 g m1", "m2 m1 d1", "d2 d1", "m3 m2"), "m3", "d2", "d1"),
    "criss-cross, one nearer": (("g", "m1 g", "d1 g", "m2 m1 d1", "d2 d1 m1", "d3 d2", "m3 m2"), "m3", "d3", "d1"),
    "a third branch into both": (("g", "c1 g", "m1 g c1", "d1 g c1", "m2 m1", "d2 d1"), "m2", "d2", "c1"),
    "a third branch, then on": (("g", "c1 g", "c2 c1", "m1 g c1", "d1 g c2"), "m1", "d1", "c1"),
    "an older third branch": (("g", "a g", "c1 g", "m1 a c1", "d1 a c1"), "m1", "d1", "c1"),
    "a branch of a branch": (("g", "d1 g", "e1 d1", "m1 g"), "m1", "e1", "g"),
    "unrelated": (("g", "h", "m g", "d h"), "m", "d", None),
    "a parent that is gone": (("g", "m1 g gone", "d1 g gone"), "m1", "d1", "g"),
}


@pytest.mark.parametrize("name", CASES)
def test_the_base_of(name: str) -> None:
    lines, ours, theirs, expected = CASES[name]
    assert merge_base(dag(*lines), ours, theirs) == expected
    assert merge_base(dag(*lines), theirs, ours) == expected


def test_a_short_way_past_a_common_commit_does_not_make_an_older_one_the_base() -> None:
    """Both heads merged an old branch last, so that `g` is near to both; yet all that leads to `x` is common."""
    old = ("g", "o g", "p g", "x g")
    ours = ("m1 x", "m2 m1", "m3 m2", "m4 m3", "m5 m4 o")
    theirs = ("d1 x", "d2 d1", "d3 d2", "d4 d3", "d5 d4 p")
    assert merge_base(dag(*old, *ours, *theirs), "m5", "d5") == "x"


def test_no_common_commit_descends_from_the_base() -> None:
    shuffle = random.Random(7)
    for _ in range(200):
        names = [f"c{k}" for k in range(20)]
        lines = [names[0]]
        for k in range(1, 20):
            parents = shuffle.sample(names[:k], min(k, shuffle.choice((1, 1, 2))))
            lines.append(" ".join([names[k], *parents]))
        commits = dag(*lines)
        ours, theirs = shuffle.sample(names, 2)
        base = merge_base(commits, ours, theirs)
        assert base is not None
        common = distances(commits, ours).keys() & distances(commits, theirs).keys()
        assert base in common
        assert all(base == other or base not in distances(commits, other) for other in common)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = new_graph(tmp_path)
    people(made, None, person("ana", a=1), person("bo", a=1), person("cy", a=1))
    return made


def merge(graph: og.Graph, source: str, into: str = "main", **more: object) -> str:
    done = graph.branch_merge(source, into, **more)  # type: ignore[arg-type]
    assert isinstance(done, og.MergeResult)
    return done.outcome


def test_repeated_merges_bring_only_what_is_new(graph: og.Graph) -> None:
    graph.branch_create("draft")
    mutate(graph, 'update Person set { a: 2 } where name = "ana"', "draft")
    mutate(graph, 'update Person set { a: 9 } where name = "bo"')
    assert merge(graph, "draft") == "merged"
    mutate(graph, 'update Person set { a: 3 } where name = "ana"')
    mutate(graph, 'update Person set { a: 4 } where name = "cy"', "draft")
    assert merge(graph, "draft") == "merged"
    assert {n: r["a"] for n, r in rows_of(graph, "node:Person").items()} == {"ana": 3, "bo": 9, "cy": 4}
    assert merge(graph, "draft") == "already_up_to_date"
    assert merge(graph, "main", "draft") == "fast_forward"
    assert content(graph) == content(graph, "draft")
    assert merge(graph, "draft") == "fast_forward"
    assert merge(graph, "main", "draft") == "fast_forward"


def test_a_third_branch_merged_into_both_is_the_base(graph: og.Graph) -> None:
    for name in ("draft", "third"):
        graph.branch_create(name)
    mutate(graph, 'insert Person { name: "di", a: 1 }', "third")
    merge(graph, "third")
    merge(graph, "third", "draft")
    mutate(graph, 'delete Person where name = "di"', "draft")
    mutate(graph, 'update Person set { a: 5 } where name = "ana"')
    # With an older base the row would look inserted by main, and its deletion be lost.
    assert merge(graph, "draft") == "merged"
    assert set(rows_of(graph, "node:Person")) == {"ana", "bo", "cy"}


def test_criss_cross_merges_agree_in_the_end(graph: og.Graph) -> None:
    graph.branch_create("draft")
    mutate(graph, 'update Person set { a: 2 } where name = "ana"')
    mutate(graph, 'update Person set { a: 3 } where name = "bo"', "draft")
    graph.branch_create_from("main", "m")
    merge(graph, "draft")
    merge(graph, "m", "draft")
    assert content(graph) == content(graph, "draft")
    mutate(graph, 'insert Person { name: "ed" }', "draft")
    assert merge(graph, "draft") == "merged"
    assert content(graph) == content(graph, "draft")


def test_a_branch_made_again_merges_as_another_one(graph: og.Graph) -> None:
    graph.branch_create("draft")
    mutate(graph, 'update Person set { a: 2 } where name = "ana"', "draft")
    merge(graph, "draft", delete_branch=True)
    mutate(graph, 'update Person set { a: 7 } where name = "bo"')
    graph.branch_create("draft")
    mutate(graph, 'update Person set { a: 3 } where name = "ana"', "draft")
    mutate(graph, 'update Person set { a: 8 } where name = "bo"')
    assert merge(graph, "draft") == "merged"
    assert {n: r["a"] for n, r in rows_of(graph, "node:Person").items()} == {"ana": 3, "bo": 8, "cy": 1}


def test_a_merge_is_still_possible_when_a_third_branch_is_gone(graph: og.Graph) -> None:
    for name in ("draft", "third"):
        graph.branch_create(name)
    mutate(graph, 'insert Person { name: "di", a: 1 }', "third")
    merge(graph, "third")
    merge(graph, "third", "draft", delete_branch=True)
    assert "third" not in graph.branch_list()
    mutate(graph, 'update Person set { a: 5 } where name = "ana"', "draft")
    assert merge(graph, "draft") == "merged"
    assert rows_of(graph, "node:Person")["ana"]["a"] == 5
