"""How a plan is made: what goes on as what, in which order steps stand, and what a wrong hint is told."""

from __future__ import annotations

import pickle
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from migrations import BASE, MIGRATIONS

from omnigraph.base.errors import CatalogError, ParseError, UnsupportedSchemaChange
from omnigraph.catalog.build import compile_source
from omnigraph.catalog.evolution.plan import SchemaPlan, plan_schema
from omnigraph.catalog.evolution.sources import plan_source, refuse_unsupported
from omnigraph.catalog.identity import assign
from omnigraph.catalog.ir import SchemaIr


def first(source: str) -> SchemaIr:
    return assign(compile_source(source), None, "domain")


def planned(before: str, after: str, **options: Any) -> SchemaPlan:
    return plan_schema(first(before), compile_source(after), **options)


def told(plan: SchemaPlan) -> list[str]:
    """Each step as `kind what`."""
    found = [step.to_json() for step in plan.steps]
    return [f"{s['kind']} {s.get('entity') or s.get('type_name') or s.get('name') or s['to']}" for s in found]


def test_steps_stand_by_kind_and_name_and_drops_last() -> None:
    before = """
    interface I { p: I32? }
    node A implements I { x: I32?  gone: I32?  note: String? }
    node B { y: I32 }
    node Z {}
    edge E: A -> B { old: I32? }
    edge F: Z -> Z
    """
    after = """
    edge E: A -> C { w: I32?  @index(w) }
    node C @rename_from("B") @description("c") { y: I32 @description("why")  new: I32?  @index(y) }
    node D {}
    node A implements I { x: I32? @index  text: String? @rename_from("note") }
    interface I { p: I32?  q: I32? }
    interface J {}
    """
    assert told(planned(before, after)) == [
        "add_property I",
        "add_type J",
        "add_property A",
        "rename_property A",
        "add_constraint A",
        "rename_type C",
        "update_type_metadata C",
        "add_property C",
        "update_property_metadata C",
        "add_constraint C",
        "add_type D",
        "add_property E",
        "add_constraint E",
        "drop_property A",
        "drop_property E",
        "drop_type Z",
        "drop_type F",
    ]


def test_what_a_rename_carries_along_is_no_change_of_its_own() -> None:
    before = """
    node A { k: String @key  t: String? @index  v: Vector(2)? @embed("t")  n: I32?  @range(n, 0..)  @unique(t, n) }
    edge E: A -> A { w: I32?  @unique(src, w) }
    """
    after = """
    node B @rename_from("A") {
      key: String @key @rename_from("k")  text: String? @index @rename_from("t")  v: Vector(2)? @embed("text")
      number: I32? @rename_from("n")  @range(number, 0..)  @unique(text, number)
    }
    edge F: B -> B @rename_from("E") { weight: I32? @rename_from("w")  @unique(src, weight) }
    """
    plan = planned(before, after)
    assert {step.kind for step in plan.steps} == {"rename_type", "rename_property"}
    assert len(plan.steps) == 6


def test_an_exact_name_beats_a_hint() -> None:
    assert (
        planned("node A { x: I32 } node B {}", 'node A @rename_from("B") { x: I32 @rename_from("y") } node B {}').steps
        == ()
    )


def test_a_rename_without_a_hint_is_a_drop_and_something_new() -> None:
    assert told(planned("node A {}", "node B {}")) == ["add_type B", "drop_type A"]


def test_a_name_that_comes_back_is_added_with_another_identity() -> None:
    start = first("node A { x: I32? } node B {}")
    dropped = assign(compile_source("node A {}"), start)
    again = compile_source("node A { x: I32? } node B {}")
    assert told(plan_schema(dropped, again)) == ["add_property A", "add_type B"]
    back = assign(again, dropped).catalog
    assert back.nodes[0].properties[0].property_id != start.catalog.nodes[0].properties[0].property_id
    assert back.nodes[1].type_id != start.catalog.nodes[1].type_id
    assert back.nodes[1].incarnation != start.catalog.nodes[1].incarnation


def test_a_type_renamed_and_renamed_back_keeps_its_identity() -> None:
    start = first("node A { x: I32? }")
    away = assign(compile_source('node B @rename_from("A") { x: I32? }'), start)
    home = compile_source('node A @rename_from("B") { x: I32? }')
    assert told(plan_schema(away, home)) == ["rename_type A"]
    assert assign(home, away).catalog == start.catalog


@pytest.mark.parametrize("empty", [frozenset(), frozenset({"node:A", "edge:E"})])
def test_a_drop_from_an_empty_table_has_no_code(empty: frozenset[str]) -> None:
    plan = planned(
        "node A { x: I32? } node B { y: I32? } edge E: A -> A", 'node C @rename_from("A") {} node B {}', empty=empty
    )
    codes = [step.to_json().get("code") for step in plan.steps if step.kind.startswith("drop")]
    # In the order node:B.y, node:A.x (now C), edge:E.
    assert codes == (["OG-DS-104", None, None] if empty else ["OG-DS-104", "OG-DS-104", "OG-DS-103"])


def test_an_interface_has_no_rows_so_it_may_gain_what_its_nodes_may_not() -> None:
    before = "interface I {} interface J {} node A implements I {} node B { q: I32 }"
    alone = planned(before, before.replace("interface J {}", "interface J { q: I32 }"))
    assert alone.supported
    assert alone.additive
    shared = planned(before, before.replace("interface I {}", "interface I { q: I32 }"))
    assert told(shared) == ["add_property I", "unsupported_change node:A.q"]


def test_what_an_interface_loses_touches_no_row_of_nodes_that_declare_it_themselves() -> None:
    before = "interface I { q: I32? } node A implements I { q: I32? }"
    plan = planned(before, before.replace("interface I { q: I32? }", "interface I { }"))
    assert told(plan) == ["drop_property I"]
    assert plan.additive
    injected = planned("interface I { q: I32? } node A implements I { }", "interface I { } node A implements I { }")
    assert told(injected) == ["drop_property I", "drop_property A"]
    assert not injected.additive


def test_a_hint_in_one_of_two_interfaces_with_the_same_property_is_enough() -> None:
    before = "interface I { x: I32 } interface J { x: I32 } node A implements I, J {}"
    one = 'interface I { y: I32 } interface J { y: I32 @rename_from("x") } node A implements I, J {}'
    assert told(planned(before, one.replace("interface I { y: I32 }", 'interface I { y: I32 @rename_from("x") }'))) == [
        "rename_property I",
        "rename_property J",
        "rename_property A",
    ]
    assert compile_source(one).nodes[0].properties[0].rename_from == "x"
    with pytest.raises(ParseError, match="disagree on the annotations"):
        compile_source(one.replace("interface I { y: I32 }", 'interface I { y: I32 @rename_from("z") }'))


def test_a_composite_constraint_goes_with_its_property_and_the_drop_says_so() -> None:
    [step] = planned("node A { x: I32? y: I32? @unique(x, y) }", "node A { x: I32? }").steps
    assert step.to_json()["constraints"] == ["@unique(x, y)"]


@pytest.mark.parametrize(
    ("written", "supported"),
    [
        ("n: I32? @unique", True),
        ("n: I32 @default(1) @unique", False),
        ("n: I32? @unique(n, x)", True),
        ("n: I32 @default(1) @unique(n, x)", False),
        ("n: I32 @default(1) @range(n, 0..9)", True),
        ("n: I32? @range(n, 0..9)", True),
        ("n: I32 @default(1) @key(k, n)", False),
    ],
)
def test_a_new_property_brings_only_rules_that_no_row_can_break(written: str, supported: bool) -> None:
    key = "" if "@key" in written else " @key"
    assert (
        planned("node A { k: String @key x: I32? }", f"node A {{ k: String{key} x: I32? {written} }}").supported
        is supported
    )


@pytest.mark.parametrize(
    ("before", "after", "place", "text"),
    [
        ("node A {}", 'node A {}\n node B @rename_from("C") {}', "2:9", "no accepted declaration has that name"),
        ("node A {}", 'node B {}\nedge E: B -> B @rename_from("A")', "2:16", "across declaration kinds"),
        ("node A {}", 'node B @rename_from("A") {}\nnode C @rename_from("A") {}', "2:8", "consumed by more than one"),
        (
            "node A { x: I32 }",
            'node A {\n  y: I32 @rename_from("z") }',
            "2:10",
            "no accepted declaration has that name",
        ),
        (
            "node A { x: I32 } node B {}",
            'node A { x: I32 }\nnode B { y: I32 @rename_from("x") }',
            "2:17",
            "property moves across owners are not supported",
        ),
        ("node A { x: I32 }", 'node A { x: I32\n y: I32 @rename_from("x") }', "2:9", "consumed by more than one"),
        (
            "interface I { x: I32 } node A implements I {}",
            'interface I { y: I32 @rename_from("z") }\nnode A implements I {}',
            "1:22",
            "no accepted declaration has that name",
        ),
    ],
)
def test_a_wrong_hint_is_refused_at_its_place(before: str, after: str, place: str, text: str) -> None:
    with pytest.raises(CatalogError) as caught:
        plan_source(first(before), after, file="new.pg")
    assert str(caught.value).startswith(f"catalog error: new.pg:{place}: @rename_from(")
    assert text in str(caught.value)
    assert caught.value.hint
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize(
    ("after", "place", "entity", "hint"),
    [
        (BASE.replace("age: I32?", "age: I64?"), "new.pg:4:3: ", "node:Person.age", "another name"),
        (BASE.replace("name: String", "name: String?"), "new.pg:1:19: ", "interface:Named.name", "another name"),
        (BASE.replace("age: I32?", "age: I32?\n  born: Date"), "new.pg:5:3: ", "node:Person.born", "@default"),
        (BASE.replace("-> Book\n", "-> Book @card(1..)\n"), "new.pg:13:6: ", "edge:Holds", "as it is"),
    ],
)
def test_the_first_change_that_cannot_be_made_is_refused_at_its_place(
    after: str, place: str, entity: str, hint: str
) -> None:
    plan = plan_source(first(BASE), after, file="new.pg")
    with pytest.raises(UnsupportedSchemaChange) as caught:
        refuse_unsupported(plan, after, "new.pg")
    assert str(caught.value).startswith(f"{place}unsupported change on {entity}: ")
    assert plan.unsupported[0].describe() in str(caught.value)
    assert hint in caught.value.hint
    assert "Nothing was written" in caught.value.hint


def test_what_a_node_has_from_an_interface_is_found_there() -> None:
    before = "interface I { x: I32 }\nnode A implements I {}"
    after = "interface I { x: I32  y: I32 }\nnode A implements I {}"
    plan = plan_source(first(before), after)
    with pytest.raises(UnsupportedSchemaChange, match=r"^1:23: unsupported change on node:A.y: \[OG-MF-103\]"):
        refuse_unsupported(plan, after)


def test_what_was_taken_out_of_the_text_is_refused_without_a_place() -> None:
    with pytest.raises(UnsupportedSchemaChange, match=r"^unsupported change on interface:I: removing"):
        refuse_unsupported(planned("interface I {}", ""), "")


def test_a_supported_plan_is_not_refused() -> None:
    refuse_unsupported(planned("", "node A {}"), "node A {}")


_SOURCES = st.sampled_from([BASE, *(case.after for case in MIGRATIONS)])
_ORDER = {"interface": 0, "node": 1, "edge": 2}


@settings(max_examples=60, deadline=None)
@given(st.lists(_SOURCES, min_size=2, max_size=4))
def test_any_chain_of_schemas_ends_with_nothing_left_to_do(sources: list[str]) -> None:
    accepted = first(sources[0])
    for source in sources[1:]:
        desired = compile_source(source)
        try:
            plan = plan_schema(accepted, desired)
        except CatalogError:
            continue
        kinds = [s.to_json() for s in plan.steps if not s.kind.startswith("drop") and s.kind != "unsupported_change"]
        assert [_ORDER[s["type_kind"]] for s in kinds] == sorted(_ORDER[s["type_kind"]] for s in kinds)
        dropping = [s.kind.startswith("drop") for s in plan.steps if s.kind != "unsupported_change"]
        assert dropping == sorted(dropping)
        after = assign(desired, accepted)
        assert plan_schema(after, desired).steps == ()
        assert (plan.steps == ()) == (after == accepted)
        accepted = after


def test_a_node_type_cannot_go_while_an_edge_type_needs_it() -> None:
    with pytest.raises(CatalogError, match="edge 'Holds' references unknown source type 'Shelf'"):
        plan_source(first(BASE), BASE.replace("node Shelf { label: String @key }\n", ""), file="new.pg")
