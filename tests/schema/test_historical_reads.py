"""Old commits are read by the schema in force: under new names, with nothing of what was dropped or made again."""

from __future__ import annotations

from pathlib import Path

import pytest
from past_scene import FIRST, doors, everything, fill, head, made

import omnigraph as og

pytestmark = pytest.mark.slow

RENAMED = """
node Member @rename_from("Person") {
  name: String @key  years: I32? @index @rename_from("age")  bio: String? @index  nick: String?
}
node Town { name: String @key }
edge Knows: Member -> Member { since: I32? }
"""
WIDER = FIRST.replace("nick: String?", "nick: String?  email: String? @index  score: F64?")
NARROWER = FIRST.replace("age: I32? @index", "")


@pytest.fixture(params=[True, False], ids=["indexed", "unindexed"])
def graph(tmp_path: Path, request: pytest.FixtureRequest) -> og.Graph:
    return made(tmp_path, indexed=request.param)


def test_a_renamed_type_and_property_are_found_under_their_new_names(graph: og.Graph) -> None:
    old, rows = head(graph), doors(graph, "Person", ["name", "age", "bio"])
    graph.schema_apply(RENAMED)
    expected = [{"name": r["name"], "years": r["age"], "bio": r["bio"]} for r in rows]
    for target in ({}, {"snapshot": old}, {"snapshot": "main~1"}):
        assert doors(graph, "Member", ["name", "years", "bio"], **target) == expected
    with pytest.raises(og.OmniError):
        graph.query("query q() { match { $x: Person } return { $x.name } }", snapshot=old)


def test_conditions_on_a_renamed_property_find_old_rows_with_and_without_its_index(graph: og.Graph) -> None:
    old = head(graph)
    graph.schema_apply(RENAMED)
    for target in ({}, {"snapshot": old}):
        found = graph.query(
            "query q() { match { $x: Member  $x.years >= 31  $x.years < 42 } return { $x.name } }", **target
        )
        assert found.rows == [{"x.name": "ana"}]
        found = graph.query('query q() { match { $x: Member  search($x.bio, "cats") } return { $x.name } }', **target)
        assert found.rows == [{"x.name": "ana"}]
        assert graph.sql("SELECT name FROM node_Member WHERE years = 42", **target).rows == [{"name": "bob"}]
        walked = "query q() { match { $a: Member { years: 31 }  $a knows $b } return { $b.years } }"
        assert graph.query(walked, **target).rows == [{"b.years": 42}]


def test_a_property_added_later_reads_as_null(graph: og.Graph) -> None:
    old = head(graph)
    graph.schema_apply(WIDER)
    graph.mutate('query m() { update Person set { email: "a@x", score: 1.5 } where name = "ana" }')
    now = doors(graph, "Person", ["name", "age", "email", "score"])
    then = doors(graph, "Person", ["name", "age", "email", "score"], snapshot=old)
    assert now[0] == {"name": "ana", "age": 31, "email": "a@x", "score": 1.5}
    assert then == [{**row, "email": None, "score": None} for row in now]
    for condition in ('$x.email = "a@x"', "$x.score > 0.5", 'search($x.email, "a")'):
        asked = f"query q() {{ match {{ $x: Person  {condition} }} return {{ $x.name }} }}"
        assert graph.query(asked, snapshot=old).rows == []
    assert graph.sql("SELECT count(*) AS n FROM node_Person WHERE email IS NULL", snapshot=old).rows == [{"n": 3}]


def test_a_type_added_later_reads_as_empty(graph: og.Graph) -> None:
    old = head(graph)
    graph.schema_apply(FIRST + "node Club { name: String @key }\nedge In: Person -> Club { since: I32? }\n")
    graph.mutate('query m() { insert Club { name: "chess" }  insert In { from: "ana", to: "chess" } }')
    walked = "query q() { match { $p: Person  $p in $c } return { $p.name, $c.name } }"
    assert graph.query(walked).rows == [{"p.name": "ana", "c.name": "chess"}]
    assert doors(graph, "Club", ["name"], snapshot=old) == []
    for _ in range(2):
        assert graph.query(walked, snapshot=old).rows == []
    assert len(graph.analytics("degree", ["In"], snapshot=old).rows) == 3


def test_a_dropped_property_is_gone_from_the_past_too(graph: og.Graph) -> None:
    old, before = head(graph), doors(graph, "Person", ["name", "bio", "nick"])
    graph.schema_apply(NARROWER)
    assert doors(graph, "Person", ["name", "bio", "nick"], snapshot=old) == before
    assert b'"age"' not in everything(graph, snapshot=old)
    with pytest.raises(og.OmniError):
        graph.sql("SELECT age FROM node_Person", snapshot=old)


def test_a_name_that_was_dropped_and_added_again_never_reaches_the_earlier_property(graph: og.Graph) -> None:
    old = head(graph)
    graph.schema_apply(NARROWER)
    between = head(graph)
    graph.schema_apply(FIRST)
    graph.mutate('query m() { update Person set { age: 99 } where name = "bob" }')
    for target in (old, between):
        assert {row["age"] for row in doors(graph, "Person", ["name", "age"], snapshot=target)} == {None}
        asked = "query q() { match { $x: Person { age: 31 } } return { $x.name } }"
        assert graph.query(asked, snapshot=target).rows == []
    assert [row["age"] for row in doors(graph, "Person", ["name", "age"])] == [None, 99, None]


def test_a_name_that_was_dropped_and_added_again_never_reaches_the_earlier_type(
    graph: og.Graph, tmp_path: Path
) -> None:
    old = head(graph)
    graph.schema_apply(FIRST.replace("node Town { name: String @key }\n", ""))
    graph.schema_apply(FIRST)
    assert doors(graph, "Town", ["name"], snapshot=old) == []
    fill(graph, [{"type": "Town", "data": {"name": "rome"}}], tmp_path)
    assert doors(graph, "Town", ["name"], snapshot=old) == []
    assert doors(graph, "Town", ["name"]) == [{"name": "rome"}]


def test_names_that_changed_places_are_told_apart(graph: og.Graph) -> None:
    old = head(graph)
    graph.schema_apply(FIRST.replace("bio: String? @index", 'about: String? @index @rename_from("bio")'))
    graph.schema_apply(
        FIRST.replace("bio: String? @index", 'about: String? @index  bio: String? @index @rename_from("nick")').replace(
            "nick: String?", ""
        )
    )
    rows = doors(graph, "Person", ["name", "about", "bio"], snapshot=old)
    assert rows[0] == {"name": "ana", "about": "ana likes cats", "bio": "a"}
    assert rows == doors(graph, "Person", ["name", "about", "bio"])
    for target in ({}, {"snapshot": old}):
        asked = 'query q() { match { $x: Person  search($x.bio, "cats") } return { $x.name } }'
        assert graph.query(asked, **target).rows == []
        assert graph.query('query q() { match { $x: Person { bio: "b" } } return { $x.name } }', **target).rows == [
            {"x.name": "bob"}
        ]


def test_a_tag_and_a_time_show_the_past_by_the_schema_in_force(graph: og.Graph) -> None:
    graph.tag_create("first")
    at = graph.list_commits()[0].created_at
    graph.schema_apply(RENAMED)
    expected = [31, 42, None]
    for target in ({"snapshot": "first"}, {"as_of": at}):
        assert [row["years"] for row in doors(graph, "Member", ["name", "years"], **target)] == expected
    version = graph.snapshot_of("first").version
    assert (graph.entity_at("node:Member", "ana", version) or {})["years"] == 31


def test_memory_of_an_earlier_schema_is_not_used_for_a_later_one(graph: og.Graph) -> None:
    asked = "query q() { match { $x: Person } return { $x.name, $x.age } order { $x.name } }"
    for _ in range(3):
        assert [row["x.age"] for row in graph.query(asked).rows] == [31, 42, None]
    graph.schema_apply(NARROWER)
    graph.schema_apply(FIRST)
    for _ in range(3):
        assert [row["x.age"] for row in graph.query(asked).rows] == [None, None, None]
    graph.mutate('query m() { update Person set { age: 5 } where name = "cyd" }')
    assert [row["x.age"] for row in graph.query(asked).rows] == [None, None, 5]


def test_a_second_handle_reads_by_the_new_schema_without_being_told(graph: og.Graph) -> None:
    other = og.Graph.open(graph.uri, "r")
    old, before = head(graph), doors(other, "Person", ["name", "age"])
    graph.schema_apply(RENAMED)
    found = doors(other, "Member", ["name", "years"], snapshot=old)
    assert [row["years"] for row in found] == [row["age"] for row in before]


def test_commits_from_before_a_required_property_was_added_can_be_reverted(graph: og.Graph) -> None:
    graph.mutate('query m() { update Person set { age: 32 } where name = "ana" }')
    updated = head(graph)
    graph.mutate('query m() { delete Person where name = "cyd" }')
    deleted = head(graph)
    graph.schema_apply(FIRST.replace("nick: String?", 'nick: String?  tier: String @default("gold")'))
    graph.commit_revert(deleted)
    graph.commit_revert(updated)
    # A row that comes back has what every row got.
    rows = [(r["name"], r["age"], r["tier"]) for r in doors(graph, "Person", ["name", "age", "tier"])]
    assert rows == [("ana", 31, "gold"), ("bob", 42, "gold"), ("cyd", None, "gold")]
    # A read of the past does not claim that the row had it then.
    assert {r["tier"] for r in doors(graph, "Person", ["name", "tier"], snapshot=deleted)} == {None}


def test_a_commit_from_before_a_rename_is_reverted_under_the_new_names(graph: og.Graph) -> None:
    graph.mutate('query m() { update Person set { age: 32 } where name = "ana" }')
    updated = head(graph)
    graph.schema_apply(RENAMED)
    graph.commit_revert(updated)
    assert [r["years"] for r in doors(graph, "Member", ["name", "years"])] == [31, 42, None]
    assert [past.op for past in graph.history("Member", "ana")] == ["update", "update", "insert"]
    with pytest.raises(og.Conflict, match="schema_boundary"):
        graph.branch_reset("main", updated)
