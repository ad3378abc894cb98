"""Ids come from one counter, are kept while names stay, and are never given twice."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from catalog_sources import DOMAIN
from hypothesis import given, settings
from hypothesis import strategies as st

from omnigraph.base.errors import CatalogError
from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import Catalog
from omnigraph.catalog.identity import assign
from omnigraph.catalog.ir import SchemaIr


def first(source: str) -> SchemaIr:
    return assign(compile_source(source), None, DOMAIN)


def then(previous: SchemaIr, source: str) -> SchemaIr:
    return assign(compile_source(source), previous)


def ids(catalog: Catalog) -> dict[str, int]:
    """Every id by a readable name: `node A`, `node A.x`, `node A#` for the incarnation."""
    found: dict[str, int] = {}
    for known in (*catalog.interfaces, *catalog.nodes, *catalog.edges):
        place = f"{known.kind} {known.name}"
        found |= {place: known.type_id, f"{place}#": known.incarnation}
        found |= {f"{place}.{declared.name}": declared.property_id for declared in known.properties}
    return found


def test_the_first_schema_numbers_types_then_properties_then_incarnations() -> None:
    source = "edge E: B -> A { w: I32 } node B { y: I32 x: I32 } node A { z: I32 } interface I { q: I32 }"
    ir = first(source)
    assert ids(ir.catalog) == {
        "interface I": 1, "node A": 2, "node B": 3, "edge E": 4,
        "interface I.q": 5, "node A.z": 6, "node B.x": 7, "node B.y": 8, "edge E.w": 9,
        "interface I#": 10, "node A#": 11, "node B#": 12, "edge E#": 13,
    }  # fmt: skip
    assert ir.next_identity_id == 14
    assert ir.schema_identity_domain == DOMAIN


def test_an_empty_schema_starts_the_counter_at_one() -> None:
    assert first("").next_identity_id == 1


def test_the_same_schema_again_changes_nothing() -> None:
    before = first("node A { x: I32 } edge E: A -> A")
    assert then(before, "edge E: A -> A node A { x: I32 }") == before


def test_new_declarations_take_the_next_ids_and_old_ones_keep_theirs() -> None:
    before = first("node B { x: I32 }")
    after = then(before, "node A { p: I32 } node B { w: I32? x: I32 }")
    assert ids(after.catalog) == {
        "node B": 1, "node B.x": 2, "node B#": 3, "node A": 4, "node A.p": 5, "node B.w": 6, "node A#": 7,
    }  # fmt: skip
    assert after.next_identity_id == 8


def test_a_dropped_and_re_added_type_is_somebody_else() -> None:
    before = first("node A { x: I32 }")
    gone = then(before, "")
    back = then(gone, "node A { x: I32 }")
    assert gone.next_identity_id == before.next_identity_id
    assert not set(ids(back.catalog).values()) & set(ids(before.catalog).values())


def test_a_dropped_and_re_added_property_is_somebody_else() -> None:
    before = first("node A { x: I32 y: I32 }")
    back = then(then(before, "node A { y: I32 }"), "node A { x: I32? y: I32 }")
    assert ids(back.catalog)["node A.x"] == before.next_identity_id
    assert ids(back.catalog)["node A"] == ids(before.catalog)["node A"]


def test_a_rename_with_a_hint_keeps_every_id() -> None:
    before = first("node Person { name: String } edge Knows: Person -> Person")
    renamed = 'node Member @rename_from("Person") { title: String @rename_from("name") }'
    after = then(before, renamed + 'edge Likes: Member -> Member @rename_from("Knows")')
    old, new = ids(before.catalog), ids(after.catalog)
    pairs = [("node Person", "node Member"), ("node Person.name", "node Member.title"), ("edge Knows", "edge Likes")]
    assert all(old[a] == new[b] for a, b in [*pairs, ("node Person#", "node Member#")])
    assert after.next_identity_id == before.next_identity_id


def test_a_rename_without_a_hint_is_a_drop_and_an_add() -> None:
    before = first("node Person {}")
    after = then(before, "node Member {}")
    assert not set(ids(after.catalog).values()) & set(ids(before.catalog).values())


def test_two_types_may_swap_names_only_as_exact_matches() -> None:
    before = first("node A {} node B {}")
    after = then(before, 'node A @rename_from("B") {} node B @rename_from("A") {}')
    assert ids(after.catalog) == ids(before.catalog)


def test_an_exact_match_beats_a_hint() -> None:
    before = first("node A { x: I32 }")
    again = then(before, 'node A @rename_from("Gone") { x: I32 @rename_from("gone") }')
    assert again == before


def test_hints_are_inert_in_a_first_schema_and_leave_no_trace() -> None:
    hinted = first('node A @rename_from("B") { x: I32 @rename_from("y") }')
    assert hinted == first("node A { x: I32 }")
    assert hinted.catalog.nodes[0].rename_from is None
    assert hinted.catalog.nodes[0].properties[0].rename_from is None


@pytest.mark.parametrize(
    ("accepted", "desired", "why"),
    [
        ("node A {}", 'node B @rename_from("C") {}', "no accepted declaration has that name"),
        ("node A {}", 'node B {} edge E: B -> B @rename_from("A")', "across declaration kinds"),
        ("node A {}", 'node B @rename_from("A") {} node C @rename_from("A") {}', "consumed by more than one"),
        ("node A {}", 'node A {} node C @rename_from("A") {}', "consumed by more than one"),
        ("node A { x: I32 }", 'node A { y: I32 @rename_from("z") }', "no accepted declaration has that name"),
        (
            "node A { x: I32 } node B {}",
            'node A {} node B { y: I32 @rename_from("x") }',
            "property moves across owners",
        ),
        ("node A { x: I32 }", 'node A { x: I32 y: I32 @rename_from("x") }', "consumed by more than one"),
        (
            "node A { x: I32 }",
            'node A { y: I32 @rename_from("x") z: I32 @rename_from("x") }',
            "consumed by more than one",
        ),
    ],
)
def test_a_wrong_hint_is_refused(accepted: str, desired: str, why: str) -> None:
    with pytest.raises(CatalogError, match=why):
        then(first(accepted), desired)


def _sources() -> Iterator[st.SearchStrategy[str]]:
    members = st.sets(st.sampled_from("pqrs"), max_size=3)
    for kind in ("interface", "node"):
        types = st.dictionaries(st.sampled_from("ABCD"), members, max_size=3)
        yield types.map(lambda known, kind=kind: "\n".join(_declare(kind, name, known[name]) for name in known))


def _declare(kind: str, name: str, members: set[str]) -> str:
    return f"{kind} {name} {{ {' '.join(f'{member}: I32' for member in members)} }}"


sources = st.tuples(*_sources()).map("\n".join)


@settings(deadline=None)
@given(st.lists(sources, min_size=1, max_size=6))
def test_no_history_of_schemas_gives_an_id_twice(history: list[str]) -> None:
    ir = first(history[0])
    owner = {number: name for name, number in ids(ir.catalog).items()}
    for source in history[1:]:
        after = then(ir, source)
        held = ids(ir.catalog)
        for name, number in ids(after.catalog).items():
            assert number < after.next_identity_id
            if name in held:
                assert number == held[name]
            else:
                assert number >= ir.next_identity_id
                assert number not in owner
            owner[number] = name
        assert after.next_identity_id >= ir.next_identity_id
        ir = after
