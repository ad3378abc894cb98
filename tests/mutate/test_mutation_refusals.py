"""A mutation that breaks a rule says which, and changes nothing."""

from __future__ import annotations

from typing import Any

import pytest
from mutate_scene import edges, people, run

import omnigraph as og

pytestmark = pytest.mark.slow

REFUSED = [
    (
        'insert MemberOf { from: "ana", to: "core" }',
        "@card violation on edge MemberOf: source 'ana' has 2 edges (max 1)",
    ),
    ('insert Follows { from: "ana", to: "nobody" }', "dst 'nobody' not found in Person"),
    ('insert Follows { from: "nobody", to: "ana" }', "src 'nobody' not found in Person"),
    ('insert Follows { from: "ana", to: "bo" }', "@unique violation on Follows.(src, dst)"),
    ('insert Person { name: "x", age: 151 }', "@range violation on Person.age: value 151 > max 150"),
    ('insert Person { name: "x", age: -1 }', "@range violation on Person.age: value -1 < min 0"),
    ('insert Person { name: "x", email: "nothing" }', "@check violation on Person.email: value 'nothing'"),
    (
        'insert Person { name: "x", email: "a@b" } insert Person { name: "y", email: "a@b" }',
        "@unique violation on Person.email: value 'a@b' held by 'x' and 'y'",
    ),
    ('insert Person { name: "x", tier: "gold" }', "expects one of [free, paid]"),
    ('update Person set { name: "x" } where name = "ana"', "cannot update @key property 'name'"),
    ('update Person set { age: 200 } where name = "ana"', "@range violation on Person.age: value 200 > max 150"),
    ('insert Owns { from: "ana", to: "no-note" }', "dst 'no-note' not found in Note"),
    ('insert Person { name: "x" } delete Person where name = "ana"', "rule D2"),
    ('update Follows set { to: "core" } where from = "ana"', "type error: T16"),
]


@pytest.mark.parametrize(("body", "says"), REFUSED)
def test_a_broken_rule_is_named_and_nothing_changes(graph: og.Graph, body: str, says: str) -> None:
    before, content = graph.snapshot(), people(graph)
    with pytest.raises(og.OmniError) as refused:
        run(graph, body)
    assert says in str(refused.value)
    assert graph.snapshot() == before
    assert people(graph) == content


@pytest.mark.parametrize(
    ("head", "value", "says"),
    [
        ("q($v: I64)", 2**31, "exceeds I32 range"),
        ("q($v: String)", "gold", "invalid enum value 'gold' for Person.tier (expected: free, paid)"),
    ],
)
def test_a_parameter_is_checked_when_it_is_used(graph: og.Graph, head: str, value: Any, says: str) -> None:
    name = "tier" if "String" in head else "age"
    with pytest.raises(og.OmniError) as refused:
        run(graph, f'update Person set {{ {name}: $v }} where name = "ana"', {"v": value}, head)
    assert says in str(refused.value)


def test_a_null_parameter_for_a_required_property_is_refused(graph: og.Graph) -> None:
    with pytest.raises(og.OmniError) as refused:
        run(graph, "insert Note { text: $t }", {"t": None}, "q($t: String?)")
    assert "'text'" in str(refused.value)


def test_a_unique_value_released_by_an_update_may_be_taken_by_a_later_statement(graph: og.Graph) -> None:
    run(graph, 'update Person set { email: "a@b" } where name = "ana"')
    run(
        graph,
        'update Person set { email: null } where name = "ana" update Person set { email: "a@b" } where name = "bo"',
    )
    assert (people(graph)["ana"]["email"], people(graph)["bo"]["email"]) == (None, "a@b")


def test_deleting_edges_below_the_minimum_is_refused_unless_the_source_goes_too(graph: og.Graph) -> None:
    run(graph, 'insert Note { text: "n" }')
    note = graph.view().table("node:Note").read(["id"]).column("id")[0].as_py()
    run(graph, f'insert Owns {{ from: "ana", to: "{note}" }}')
    with pytest.raises(og.OmniError, match=r"@card violation on edge Owns: source 'ana' has 0 edges \(min 1\)"):
        run(graph, 'delete Owns where from = "ana"')
    result = run(graph, 'delete Person where name = "ana"')
    assert result.affected_nodes == 1
    assert edges(graph, "Owns") == []


def test_the_error_tells_every_violation(graph: og.Graph) -> None:
    with pytest.raises(og.InvalidData) as refused:
        run(graph, 'insert Follows { from: "x", to: "y" } insert Follows { from: "z", to: "ana" }')
    assert refused.value.total == 3
    assert "statement" in refused.value.hint
    assert [v["reason"] for v in refused.value.violations] == ["dst_not_found", "src_not_found", "src_not_found"]
    assert {v["type"] for v in refused.value.violations} == {"Follows"}


@pytest.mark.parametrize(
    "value", ["it's", 'a"b', "'; DROP TABLE x; --", "%", "_", "\\", "a\nb", "ключ", "a\x00b", "`id`"]
)
def test_hostile_values_are_only_values(graph: og.Graph, value: str) -> None:
    head = "q($n: String)"
    run(graph, "insert Person { name: $n, age: 1 }", {"n": value}, head)
    assert run(graph, "update Person set { age: 2 } where name = $n", {"n": value}, head).affected_nodes == 1
    assert people(graph)[value]["age"] == 2
    run(graph, "insert Follows { from: $n, to: $n }", {"n": value}, head)
    result = run(graph, "delete Person where name = $n", {"n": value}, head)
    assert (result.affected_nodes, result.affected_edges) == (1, 1)
    assert set(people(graph)) == {"ana", "bo"}
