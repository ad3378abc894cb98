"""What each statement of a mutation does."""

from __future__ import annotations

import datetime as dt

import pytest
from mutate_scene import edges, people, rows, run

import omnigraph as og


def test_a_keyed_insert_replaces_the_stored_row_entirely(graph: og.Graph) -> None:
    run(graph, 'insert Person { name: "ana", tier: "paid" }')
    assert people(graph)["ana"]["age"] is None
    assert people(graph)["ana"]["tier"] == "paid"
    assert set(people(graph)) == {"ana", "bo"}


def test_an_insert_without_a_key_is_always_a_new_row(graph: og.Graph) -> None:
    body = 'insert Note { text: "hello" }'
    result = run(graph, f"{body} {body}")
    ids = [row["id"] for row in rows(graph, "node:Note")]
    assert (result.affected_nodes, len(set(ids))) == (2, 2)
    assert all(len(i) == 26 for i in ids)


def test_an_edge_may_lead_to_nodes_inserted_in_the_same_query(graph: og.Graph) -> None:
    result = run(graph, 'insert Person { name: "cy" } insert Follows { from: "cy", to: "ana" }')
    assert (result.affected_nodes, result.affected_edges) == (1, 1)
    assert edges(graph, "Follows") == [("ana", "bo"), ("cy", "ana")]


def test_an_edge_may_be_inserted_before_its_endpoint(graph: og.Graph) -> None:
    run(graph, 'insert Follows { from: "cy", to: "ana" } insert Person { name: "cy" }')
    assert ("cy", "ana") in edges(graph, "Follows")


def test_update_sets_only_what_it_names(graph: og.Graph) -> None:
    run(graph, 'update Person set { tier: "free" } where name = "ana"')
    ana = people(graph)["ana"]
    assert (ana["age"], ana["tier"]) == (31, "free")


def test_null_clears_a_nullable_property(graph: og.Graph) -> None:
    run(graph, 'update Person set { age: null } where name = "ana"')
    assert people(graph)["ana"]["age"] is None


def test_one_edge_is_updated_by_its_ends(graph: og.Graph) -> None:
    result = run(graph, 'update Follows set { weight: 0.9 } where from = "ana" and to = "bo"')
    assert (result.affected_nodes, result.affected_edges) == (0, 1)
    assert rows(graph, "edge:Follows")[0]["weight"] == 0.9


def test_deleting_a_node_takes_every_edge_that_starts_or_ends_there(graph: og.Graph) -> None:
    run(graph, 'insert Follows { from: "bo", to: "ana" }')
    result = run(graph, 'delete Person where name = "ana"')
    assert (result.affected_nodes, result.affected_edges) == (1, 3)
    assert (edges(graph, "Follows"), edges(graph, "MemberOf")) == ([], [])
    assert set(people(graph)) == {"bo"}


def test_deleting_an_edge_leaves_its_nodes(graph: og.Graph) -> None:
    result = run(graph, 'delete Follows where from = "ana" and to = "bo"')
    assert (result.affected_nodes, result.affected_edges) == (0, 1)
    assert set(people(graph)) == {"ana", "bo"}


def test_overlapping_deletes_count_an_entity_once(graph: og.Graph) -> None:
    result = run(graph, 'delete Person where name = "ana" delete Person where age > 1 delete Follows where to = "bo"')
    assert (result.affected_nodes, result.affected_edges) == (1, 2)


def test_an_insert_and_an_update_of_the_same_row_count_two(graph: og.Graph) -> None:
    result = run(graph, 'insert Person { name: "cy", age: 1 } update Person set { age: 2 } where name = "cy"')
    assert result.affected_nodes == 2
    assert people(graph)["cy"]["age"] == 2


def test_a_later_statement_sees_earlier_pending_rows(graph: og.Graph) -> None:
    body = """
      insert Person { name: "cy", age: 5 }
      update Person set { age: 40 } where age < 10
      update Person set { tier: "paid" } where age >= 31
    """
    assert run(graph, body).affected_nodes == 4
    found = people(graph)
    assert (found["cy"]["age"], found["cy"]["tier"], found["ana"]["tier"]) == (40, "paid", "paid")


def test_a_pending_row_hides_the_stored_row(graph: og.Graph) -> None:
    body = 'update Person set { age: 50 } where name = "ana" update Person set { tier: "free" } where age = 31'
    assert run(graph, body).affected_nodes == 1
    assert people(graph)["ana"]["tier"] is None


def test_now_is_one_moment_for_the_whole_query(graph: og.Graph) -> None:
    body = 'update Person set { seen: now() } where name = "ana" insert Person { name: "cy", seen: now() }'
    run(graph, body)
    found = people(graph)
    assert found["ana"]["seen"] == found["cy"]["seen"]
    assert abs(found["cy"]["seen"] - dt.datetime.now(dt.UTC)) < dt.timedelta(minutes=5)


def test_every_type_can_be_given_as_a_literal_and_as_a_parameter(graph: og.Graph) -> None:
    literals = """insert Person {
      name: "x", age: -0, score: 1.5, ratio: 0.25, born: date("1999-12-31"), photo: "base64:aGk=",
      seen: datetime("2024-01-31T12:00:00.123Z"), tags: ["a", "b"], vec: [1, 2.5, 3], big: 18446744073709551615 }"""
    run(graph, literals)
    head = """q($n: String, $a: I32, $s: F64, $r: F32, $b: Date, $d: DateTime, $t: [String], $v: Vector(3), $u: U64,
              $p: Blob)"""
    body = """insert Person { name: $n, age: $a, score: $s, ratio: $r, born: $b, seen: $d, tags: $t, vec: $v, big: $u,
              photo: $p }"""
    params = {
        "n": "y",
        "a": 0,
        "s": 1.5,
        "r": 0.25,
        "b": "1999-12-31",
        "d": "2024-01-31T12:00:00.123Z",
        "t": ["a", "b"],
        "v": [1, 2.5, 3],
        "u": "18446744073709551615",
        "p": "base64:aGk=",
    }
    run(graph, body, params, head)
    x, y = people(graph)["x"], people(graph)["y"]
    assert {k: v for k, v in x.items() if k not in ("id", "name")} == {
        k: v for k, v in y.items() if k not in ("id", "name")
    }
    assert (x["photo"], x["big"], x["vec"]) == (b"hi", 2**64 - 1, [1.0, 2.5, 3.0])


def test_zero_matches_is_success_without_a_commit(graph: og.Graph) -> None:
    before = graph.snapshot()
    result = run(graph, 'update Person set { age: 1 } where name = "zoe"')
    assert (result.affected_nodes, result.commit, result.operation_id) == (0, None, None)
    assert graph.snapshot() == before


def test_one_query_is_one_commit_that_says_what_happened(graph: og.Graph) -> None:
    before = graph.snapshot().version
    result = run(
        graph,
        'insert Person { name: "cy" } insert Follows { from: "cy", to: "bo" }',
        actor="act-ana",
        message="welcome",
        metadata={"ticket": 7},
    )
    commit = graph.get_commit(result.commit)
    assert graph.snapshot().version == before + 1
    assert (commit.kind, commit.actor_id, commit.message) == ("mutation", "act-ana", "welcome")
    assert commit.metadata["ticket"] == 7
    assert (commit.counts["node:Person"].inserts, commit.counts["edge:Follows"].inserts) == (1, 1)
    assert graph.operation(result.operation_id).commit.graph_commit_id == result.commit


def test_mutate_as_gives_the_actor_first(graph: og.Graph) -> None:
    result = graph.mutate_as("act-bo", 'query q() { insert Person { name: "cy" } }')
    assert graph.get_commit(result.commit).actor_id == "act-bo"


def test_a_mutation_on_a_branch_leaves_main_alone(graph: og.Graph) -> None:
    graph.branch_create("draft")
    result = run(graph, 'delete Person where name = "ana"', branch="draft")
    assert (result.branch, result.affected_edges) == ("draft", 2)
    assert (edges(graph, "Follows", "draft"), edges(graph, "Follows")) == ([], [("ana", "bo")])


def test_writing_to_an_internal_branch_is_refused(graph: og.Graph) -> None:
    with pytest.raises(og.BadRequest, match="does not allow internal system ref"):
        run(graph, 'insert Person { name: "x" }', branch="__schema_apply_lock__")


def test_a_read_query_is_sent_to_query(graph: og.Graph) -> None:
    with pytest.raises(og.BadRequest, match="only reads"):
        graph.mutate("query q() { match { $p: Person } return { $p.name } }")
