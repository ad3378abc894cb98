"""The merged state obeys every rule: what each side may do alone, both together may not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from merge_scene import conflicts_of, content, mutate, new_graph, people, person, rows_of, write

import omnigraph as og

pytestmark = pytest.mark.slow


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = new_graph(tmp_path)
    people(made, None, *(person(name) for name in ("ana", "bo", "cy")))
    write(made, None, "node:City", [{"id": name, "name": name} for name in ("oslo", "rome", "bern")])
    made.branch_create("draft")
    return made


def edge(name: str, src: str, dst: str) -> dict[str, Any]:
    return {"id": name, "src": src, "dst": dst}


def edges(graph: og.Graph, branch: str | None, table_key: str, *rows: dict[str, Any]) -> None:
    write(graph, branch, table_key, list(rows))


def refused(graph: og.Graph, source: str = "draft", into: str = "main", **more: Any) -> set[tuple[str, str, str]]:
    before = content(graph), content(graph, "draft")
    with pytest.raises(og.MergeConflicts) as error:
        graph.branch_merge(source, into, **more)
    assert (content(graph), content(graph, "draft")) == before
    return conflicts_of(error.value)


@pytest.mark.parametrize("strategy", [None, "ours", "theirs"])
@pytest.mark.parametrize("granularity", ["row", "property"])
@pytest.mark.parametrize("end", ["src", "dst"])
@pytest.mark.parametrize(("source", "into"), [("draft", "main"), ("main", "draft")])
def test_an_edge_here_and_its_node_deleted_there_are_an_orphan(
    graph: og.Graph, end: str, source: str, into: str, strategy: Any, granularity: Any
) -> None:
    ends = ("bo", "ana") if end == "src" else ("ana", "bo")
    edges(graph, "draft", "edge:Knows", edge("e", *ends))
    mutate(graph, 'delete Person where name = "bo"')
    found = refused(graph, source, into, strategy=strategy, granularity=granularity)
    assert found == {("edge:Knows", "e", "orphan_edge")}


def test_every_edge_of_a_deleted_node_is_told(graph: og.Graph) -> None:
    edges(graph, "draft", "edge:Knows", edge("e", "ana", "bo"), edge("f", "ana", "cy"))
    mutate(graph, 'delete Person where name = "ana"')
    with pytest.raises(og.MergeConflicts) as error:
        graph.branch_merge("draft")
    messages = [c["message"] for c in error.value.merge_conflicts]
    assert messages == ["src 'ana' not found in Person", "src 'ana' not found in Person"]


@pytest.mark.parametrize("strategy", [None, "ours", "theirs"])
def test_a_value_taken_on_both_sides_is_a_unique_violation(graph: og.Graph, strategy: Any) -> None:
    mutate(graph, 'update Person set { mail: "m" } where name = "ana"')
    mutate(graph, 'update Person set { mail: "m" } where name = "bo"', "draft")
    assert refused(graph, strategy=strategy) == {("node:Person", "bo", "unique_violation")}


def test_a_value_that_the_merge_frees_may_be_taken(graph: og.Graph) -> None:
    mutate(graph, 'update Person set { mail: "m" } where name = "ana"', "draft")
    graph.branch_merge("draft")
    mutate(graph, 'update Person set { mail: "n" } where name = "ana"', "draft")
    mutate(graph, 'update Person set { mail: "m" } where name = "bo"', "draft")
    graph.branch_merge("draft")
    assert {n: r["mail"] for n, r in rows_of(graph, "node:Person").items()} == {"ana": "n", "bo": "m", "cy": None}


def test_swapped_values_meet_only_halfway(graph: og.Graph) -> None:
    """By property, one row takes a value from the source that another keeps in the target."""
    people(graph, None, person("ana", mail="one"), person("bo", mail="two"))
    graph.branch_merge("main", "draft")
    people(graph, "draft", person("ana", mail="two"), person("bo", mail="three"))
    people(graph, None, person("ana", mail="one", a=5), person("bo", mail="two", a=5))
    graph.branch_merge("draft", granularity="property")
    assert {n: (r["mail"], r["a"]) for n, r in rows_of(graph, "node:Person").items() if n != "cy"} == {
        "ana": ("two", 5),
        "bo": ("three", 5),
    }


def test_the_same_edge_on_both_sides_is_two_edges(graph: og.Graph) -> None:
    for branch in (None, "draft"):
        mutate(graph, 'insert Knows { from: "ana", to: "bo" }', branch)
    graph.branch_merge("draft")
    assert len(rows_of(graph, "edge:Knows")) == 2


def test_unless_unique_endpoints_forbid_it(tmp_path: Path) -> None:
    graph = new_graph(tmp_path, "node P { k: String @key }\nedge K: P -> P { @unique(src, dst) }")
    write(graph, None, "node:P", [{"id": n, "k": n} for n in ("a", "b")])
    graph.branch_create("draft")
    edges(graph, "draft", "edge:K", edge("theirs", "a", "b"))
    edges(graph, None, "edge:K", edge("ours", "a", "b"))
    assert refused(graph) == {("edge:K", "theirs", "unique_violation")}


@pytest.mark.parametrize("strategy", [None, "theirs"])
def test_too_many_edges_of_one_source_break_its_cardinality(graph: og.Graph, strategy: Any) -> None:
    edges(graph, "draft", "edge:LivesIn", edge("e", "ana", "oslo"))
    edges(graph, None, "edge:LivesIn", edge("f", "ana", "rome"))
    assert refused(graph, strategy=strategy) == {("edge:LivesIn", "ana", "cardinality_violation")}


def test_too_few_edges_of_one_source_break_its_cardinality(graph: og.Graph) -> None:
    edges(graph, None, "edge:Owns", edge("e", "ana", "oslo"), edge("f", "ana", "rome"))
    graph.branch_merge("main", "draft")
    write(graph, "draft", "edge:Owns", [], ("e",))
    write(graph, None, "edge:Owns", [], ("f",))
    assert refused(graph) == {("edge:Owns", "ana", "cardinality_violation")}


def test_a_source_that_is_deleted_owes_no_edges(graph: og.Graph) -> None:
    edges(graph, None, "edge:Owns", edge("e", "ana", "oslo"))
    graph.branch_merge("main", "draft")
    mutate(graph, 'delete Person where name = "ana"', "draft")
    mutate(graph, 'insert City { name: "nice" }')
    graph.branch_merge("draft")
    assert rows_of(graph, "edge:Owns") == {}


def test_all_violations_are_told_together(graph: og.Graph) -> None:
    edges(graph, "draft", "edge:LivesIn", edge("e", "ana", "oslo"), edge("g", "bo", "bern"))
    edges(graph, None, "edge:LivesIn", edge("f", "ana", "rome"))
    mutate(graph, 'delete City where name = "bern"')
    mutate(graph, 'update Person set { mail: "m" } where name = "ana"')
    mutate(graph, 'update Person set { mail: "m" } where name = "bo"', "draft")
    with pytest.raises(og.MergeConflicts) as error:
        graph.branch_merge("draft")
    told = [(c["table_key"], c["row_id"], c["kind"]) for c in error.value.merge_conflicts]
    assert told == [
        ("edge:LivesIn", "ana", "cardinality_violation"),
        ("edge:LivesIn", "g", "orphan_edge"),
        ("node:Person", "bo", "unique_violation"),
    ]
    text = str(error.value)
    assert text.startswith("merge conflicts: edge:LivesIn 'ana' (cardinality_violation), ")


def test_a_strategy_may_cause_or_remove_a_violation(graph: og.Graph) -> None:
    edges(graph, None, "edge:Knows", edge("e", "ana", "bo"))
    graph.branch_merge("main", "draft")
    people(graph, "draft", person("bo", a=1))
    write(graph, None, "edge:Knows", [], ("e",))
    people(graph, None, delete=("bo",))
    edges(graph, "draft", "edge:Knows", {**edge("e", "ana", "bo"), "w": 1})
    # ours: node and edge stay deleted. theirs: both are back. Either holds; a mixture would not.
    told = graph.branch_merge("draft", dry_run=True, strategy="ours")
    assert isinstance(told, og.MergePreview)
    assert told.would_commit
    graph.branch_merge("draft", strategy="theirs")
    assert rows_of(graph, "edge:Knows")["e"]["w"] == 1
    assert "bo" in rows_of(graph, "node:Person")


def test_after_a_refusal_the_next_write_and_merge_go_on(graph: og.Graph) -> None:
    edges(graph, "draft", "edge:LivesIn", edge("e", "ana", "oslo"))
    edges(graph, None, "edge:LivesIn", edge("f", "ana", "rome"))
    refused(graph)
    write(graph, "draft", "edge:LivesIn", [edge("h", "bo", "oslo")], ("e",))
    mutate(graph, 'insert City { name: "nice" }')
    graph.branch_merge("draft")
    assert set(rows_of(graph, "edge:LivesIn")) == {"f", "h"}
    assert graph.recoveries().pending == ()
