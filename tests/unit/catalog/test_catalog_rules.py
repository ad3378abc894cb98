"""What a good schema means once compiled. Refusals are the cases under tests/unit/lang/cases."""

from __future__ import annotations

import struct
from datetime import UTC, date, datetime

import pyarrow as pa
import pytest
from catalog_sources import LIBRARY, edge_of, node_of, property_of

from omnigraph.base.errors import CatalogError, ParseError
from omnigraph.catalog.build import compile_source
from omnigraph.catalog.catalog import (
    Annotation,
    Cardinality,
    Check,
    Embed,
    Index,
    Key,
    Range,
    Unique,
)
from omnigraph.catalog.values import stored_default


def test_the_specified_example_compiles() -> None:
    catalog = compile_source(LIBRARY)
    author = catalog.find_node("Author")
    assert author is not None
    assert author.description == "A writer"
    assert author.implements == ("Named",)
    assert [p.name for p in author.key_properties] == ["handle"]
    assert author.ranges == (Range("rating", 0.0, 5.0),)
    assert author.checks == (Check("handle", "^[a-z0-9_]+$"),)
    assert property_of(catalog, "Author", "bio_vec").embed == Embed("bio", "mock-1")


def test_a_missing_interface_property_is_injected_with_its_four_annotations() -> None:
    before = 'interface I { k: I32 @key u: I32 @unique t: String @index v: Vector(2)? @embed("t", model="m") @index }'
    catalog = compile_source(before + "\nnode N implements I { own: I32 }")
    found = catalog.find_node("N")
    assert found is not None
    assert [p.name for p in found.properties] == ["k", "own", "t", "u", "v"]
    assert set(found.constraints) == {Key(("k",)), Unique(("u",)), Index(("t",)), Index(("v",))}
    assert property_of(catalog, "N", "v").embed == Embed("t", "m")


def test_injection_leaves_other_annotations_with_the_interface() -> None:
    source = 'interface I { x: I32 @description("d") @default(1) @note } node N implements I {}'
    catalog = compile_source(source)
    injected = property_of(catalog, "N", "x")
    assert (injected.description, injected.default, injected.annotations) == (None, None, ())
    assert catalog.interfaces[0].properties[0].description == "d"


def test_a_property_the_node_declares_itself_keeps_its_own_annotations() -> None:
    catalog = compile_source("interface I { x: I32 @index } node N implements I { x: I32 }")
    found = catalog.find_node("N")
    assert found is not None
    assert found.constraints == ()


def test_two_interfaces_may_inject_the_same_property_if_they_agree() -> None:
    source = "interface I { x: enum(a, b) @index @unique } interface J { x: enum(b, a) @unique @index }"
    found = compile_source(source + " node N implements J, I {}").find_node("N")
    assert found is not None
    assert found.implements == ("I", "J")
    assert len(found.properties) == 1


def test_an_injected_embedding_may_use_text_of_the_node() -> None:
    source = 'interface I { v: Vector(2) @embed("t") } node N implements I { t: String }'
    assert property_of(compile_source(source), "N", "v").embed == Embed("t")


def test_property_and_body_forms_are_the_same_constraint() -> None:
    after = node_of("a: I32 @key b: I32 @unique c: I32 @index")
    in_body = node_of("@index(c) @unique(b) @key(a) a: I32 b: I32 c: I32")
    assert after == in_body


def test_an_equal_constraint_counts_once() -> None:
    assert node_of("a: I32 @unique @unique(a) @unique(a)").constraints == (Unique(("a",)),)


def test_several_ranges_and_checks_of_one_property_all_hold() -> None:
    node = node_of('a: I32 s: String @range(a, 0..) @range(a, ..9) @check(s, "a") @check(s, "b")')
    assert len(node.constraints) == 4


def test_key_members_form_ids_in_property_id_order() -> None:
    assert [p.name for p in node_of("b: I32 a: String @key(b, a)").key_properties] == ["a", "b"]


@pytest.mark.parametrize("type_", ["String", "Bool", "I32", "U64", "F64", "Date", "DateTime", "enum(a)"])
def test_a_key_may_be_any_required_scalar(type_: str) -> None:
    assert node_of(f"k: {type_} @key").constraints == (Key(("k",)),)


def test_edges_allow_unique_endpoints_and_indexes_on_properties() -> None:
    edge = edge_of("year: I32 @index @unique(src, dst, year)")
    assert set(edge.constraints) == {Index(("year",)), Unique(("src", "dst", "year"))}


def test_cardinality_is_open_unless_given() -> None:
    assert edge_of("").cardinality == Cardinality(0, None)
    assert edge_of("", "@card(1..3)").cardinality == Cardinality(1, 3)


@pytest.mark.parametrize(
    ("type_", "bounds", "lo", "hi"),
    [
        ("I32", "0..5", 0, 5), ("I32", "0.5..4.5", 1, 4), ("I32", "-0.5..", 0, None), ("F64", "0..5", 0.0, 5.0),
        ("U64", "..18446744073709551615", None, 2**64 - 1),
        ("F32", "0.1..", struct.unpack("f", struct.pack("f", 0.1))[0], None),
    ],
)  # fmt: skip
def test_range_bounds_become_values_of_the_property_type(
    type_: str, bounds: str, lo: float | None, hi: float | None
) -> None:
    (found,) = node_of(f"x: {type_} @range(x, {bounds})").ranges
    assert (found.lo, found.hi) == (lo, hi)
    assert (type(found.lo), type(found.hi)) == (type(lo), type(hi))


@pytest.mark.parametrize(
    ("type_", "literal", "kept", "stored"),
    [
        ("String", '"x"', "x", "x"), ("Bool", "true", True, True), ("I32", "-7", -7, -7), ("F64", "1", 1.0, 1.0),
        ("F32?", "0.5", 0.5, 0.5), ("enum(a, b)", "a", "a", "a"), ("enum(a, 2-b)", '"2-b"', "2-b", "2-b"),
        ("Date", '"2024-02-29"', "2024-02-29", date(2024, 2, 29)),
        ("DateTime", '"2024-02-29"', "2024-02-29T00:00:00.000Z", datetime(2024, 2, 29, tzinfo=UTC)),
        ("DateTime", '"2024-02-29 12:00:00.5+02:00"', "2024-02-29T10:00:00.500Z",
         datetime(2024, 2, 29, 10, 0, 0, 500_000, UTC)),
        ("DateTime", '"0001-01-01T00:00:00Z"', "0001-01-01T00:00:00.000Z", datetime(1, 1, 1, tzinfo=UTC)),
    ],
)  # fmt: skip
def test_a_default_is_a_literal_of_the_property_type(type_: str, literal: str, kept: object, stored: object) -> None:
    declared = node_of(f"x: {type_} @default({literal})").properties[0]
    assert declared.default == kept
    assert type(declared.default) is type(kept)
    value = stored_default(declared.type, declared.default) if declared.default is not None else None
    assert value == stored
    column = pa.array([value], node_of(f"x: {type_}").arrow_schema.field("x").type)
    assert column[0].as_py() == stored


def test_a_default_may_sit_on_the_edge_of_its_range_and_match_its_check() -> None:
    assert node_of("x: I32 @default(5) @range(x, 0..5)").properties[0].default == 5
    assert node_of('x: String @default("abc") @check(x, "b")').properties[0].default == "abc"
    assert edge_of("x: I32 @default(5)").properties[0].default == 5


@pytest.mark.parametrize(
    "text", ["0001-01-01T00:00:00+01:00", "9999-12-31T23:59:59-01:00", "2024-13-01", "2024-01-01T00:00", "soon"]
)
def test_a_datetime_default_outside_the_calendar_is_refused(text: str) -> None:
    with pytest.raises(ParseError, match="invalid DateTime literal"):
        node_of(f'x: DateTime @default("{text}")')


def test_unknown_annotations_are_kept_as_metadata() -> None:
    node = compile_source('node N @b @a("x", y=1) { p: I32 @pii(high) @pii(low) }').find_node("N")
    assert node is not None
    assert node.annotations == (Annotation("a", '"x", y=1'), Annotation("b"))
    assert node.properties[0].annotations == (Annotation("pii", "high"), Annotation("pii", "low"))


def test_descriptions_and_instructions_are_kept_on_both_kinds_of_types() -> None:
    edge = edge_of('x: I32 @description("p")', '@description("d") @instruction("i")')
    assert (edge.description, edge.instruction, edge.properties[0].description) == ("d", "i", "p")


def test_edges_are_found_by_exact_name_then_in_lower_case() -> None:
    catalog = compile_source("node A {} edge WorksAt: A -> A")
    edge = catalog.find_edge("WorksAt")
    assert edge is not None
    assert catalog.find_edge("worksAt") is edge
    assert catalog.find_edge("WORKSAT") is edge
    assert catalog.find_edge("works_at") is None


def test_a_node_an_edge_and_an_interface_may_share_a_name() -> None:
    catalog = compile_source("interface A {} node A {} edge A: A -> A")
    assert [table.table_key for table in catalog.tables()] == ["edge:A", "node:A"]


def test_node_names_are_case_sensitive() -> None:
    assert len(compile_source("node Ab {} node AB {}").nodes) == 2


def test_a_node_may_have_properties_named_like_edge_columns() -> None:
    assert node_of("src: I32 dst: I32 from: I32 to: I32").arrow_schema.names == ["id", "dst", "from", "src", "to"]


def test_declarations_may_stand_in_any_order() -> None:
    compile_source("edge E: A -> B node B implements I {} node A {} interface I { x: I32 }")


def test_an_error_in_the_catalog_names_its_file() -> None:
    with pytest.raises(CatalogError) as refused:
        compile_source("node A {}\nnode A {}", "lib.pg")
    assert str(refused.value) == "catalog error: lib.pg:2:6: duplicate node type: A"
