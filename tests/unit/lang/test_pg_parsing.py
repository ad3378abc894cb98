"""What the schema language accepts, and what the tree then says."""

from __future__ import annotations

import pytest

from omnigraph.base.errors import ParseError
from omnigraph.lang.diagnostics import Position
from omnigraph.lang.pg import parse_schema
from omnigraph.lang.pg.ast import (
    Annotation,
    Bound,
    Card,
    Constraint,
    EdgeDecl,
    Ident,
    InterfaceDecl,
    Keyword,
    Literal,
    LiteralKind,
    NodeDecl,
    PropertyDecl,
    TypeForm,
)


def parse_node(source: str) -> NodeDecl:
    (declaration,) = parse_schema(source).declarations
    assert isinstance(declaration, NodeDecl)
    return declaration


def parse_edge(source: str) -> EdgeDecl:
    (declaration,) = parse_schema(source).declarations
    assert isinstance(declaration, EdgeDecl)
    return declaration


def parse_property(source: str) -> PropertyDecl:
    (declared,) = parse_node(f"node A {{ {source} }}").properties
    return declared


def integer(value: int) -> Literal:
    return Literal(LiteralKind.INTEGER, value)


def text(value: str) -> Literal:
    return Literal(LiteralKind.STRING, value)


@pytest.mark.parametrize("source", ["", " \t\r\n", "// only a comment", "/* a */ /* b\n */", "/**/", "//"])
def test_a_text_without_declarations_is_an_empty_schema(source: str) -> None:
    assert parse_schema(source).declarations == ()


def test_comments_and_blanks_separate_tokens_anywhere() -> None:
    spread = "node/*a*/A//b\n{x/**/:\r\nI32\t?/* c ** / */@/*d*/key\n}"
    assert parse_schema(spread) == parse_schema("node A { x: I32? @key }")


def test_a_comment_mark_inside_a_string_is_text() -> None:
    node = parse_node('node A @note("// not /* a */ comment") {}')
    assert node.annotations == (Annotation("note", text("// not /* a */ comment")),)


@pytest.mark.parametrize("word", ["node", "edge", "interface", "implements", "enum", "true", "false", "_", "nodeX"])
def test_a_property_may_be_named_like_a_keyword(word: str) -> None:
    declared = parse_property(f"{word}: I32")
    assert declared.name == word


def test_keyword_names_work_in_constraints_and_annotations() -> None:
    node = parse_node("node A { enum: enum(a) @node @index node: I32 @unique(enum, node) @range(edge, 0..) }")
    assert [declared.name for declared in node.properties] == ["enum", "node"]
    assert node.properties[0].annotations == (Annotation("node"), Annotation("index"))
    assert node.constraints[0] == Constraint("unique", (Ident("enum"), Ident("node")))


def test_an_annotation_named_enum_takes_ordinary_arguments() -> None:
    declared = parse_property('x: I32 @enum("a b")')
    assert declared.annotations == (Annotation("enum", text("a b")),)


@pytest.mark.parametrize("value", ["gold", "7", "2024-01", "-", "-5", "node", "enum", "true", "_", "A", "a--b", "--"])
def test_an_enum_value_may_look_like_anything(value: str) -> None:
    declared = parse_property(f"x: enum({value}, other)")
    assert declared.type.values == (value, "other")


def test_after_an_enum_numbers_are_numbers_again() -> None:
    node = parse_node("node A { x: enum(1-2) y: Vector(3) @range(z, 1..2) }")
    assert node.properties[1].type.dimension == 3
    assert node.constraints == (Constraint("range", (Ident("z"), Bound(integer(1), integer(2)))),)


@pytest.mark.parametrize("name", ["key", "unique", "index", "range", "check"])
def test_the_five_constraint_words_before_a_parenthesis_start_a_body_constraint(name: str) -> None:
    node = parse_node(f"node A {{ x: I32 @{name} /* c */ (a, b) }}")
    assert node.properties[0].annotations == ()
    assert node.constraints == (Constraint(name, (Ident("a"), Ident("b"))),)


@pytest.mark.parametrize("name", ["key", "unique", "index"])
def test_without_a_parenthesis_they_are_annotations(name: str) -> None:
    node = parse_node(f"node A {{ x: I32 @{name} y: I32 }}")
    assert node.properties[0].annotations == (Annotation(name),)
    assert node.constraints == ()


def test_annotations_and_then_constraints_may_follow_a_property_on_one_line() -> None:
    node = parse_node('node A { x: I32 @index @description("d") @unique(a, b) @range(x, 1..5) }')
    assert [a.name for a in node.properties[0].annotations] == ["index", "description"]
    assert [c.name for c in node.constraints] == ["unique", "range"]


@pytest.mark.parametrize(
    ("source", "lo", "hi"),
    [
        ("1..5", 1, 5), ("1 .. 5", 1, 5), ("-5..-1", -5, -1), ("0.0..5.0", 0.0, 5.0), ("1..5.5", 1, 5.5),
        ("1..", 1, None), ("-0.5..", -0.5, None), ("..5", None, 5), ("..-5", None, -5), ("007..08", 7, 8),
    ],
)  # fmt: skip
def test_bounds_are_inclusive_pairs_with_one_side_optional(source: str, lo: float | None, hi: float | None) -> None:
    node = parse_node(f"node A {{ @range(x, {source}) }}")
    bound = node.constraints[0].args[1]
    assert isinstance(bound, Bound)
    found = [None if end is None else end.value for end in (bound.lo, bound.hi)]
    assert found == [lo, hi]
    assert [type(end) for end in found] == [type(lo), type(hi)]


def test_string_escapes_are_decoded() -> None:
    node = parse_node(r'node A @note("a\"b\\c\nd\re\tf ü \\n") {}')
    assert node.annotations[0].value == text('a"b\\c\nd\re\tf ü \\n')


def test_a_string_may_span_lines_and_positions_still_count() -> None:
    node = parse_node('node A @note("a\nb") { x: I32 }')
    assert node.annotations[0].value == text("a\nb")
    assert node.properties[0].at == Position(2, 7)


@pytest.mark.parametrize(
    ("source", "value"),
    [
        ("1", integer(1)), ("-1", integer(-1)), ("1.50", Literal(LiteralKind.FLOAT, 1.5)),
        ("true", Literal(LiteralKind.BOOL, True)), ('"x"', text("x")), ("word", Ident("word")),
        ("18446744073709551615", integer(2**64 - 1)), ("-9223372036854775808", integer(-(2**63))),
    ],
)  # fmt: skip
def test_an_annotation_takes_a_literal_or_a_word(source: str, value: Literal | Ident) -> None:
    assert parse_property(f"x: I32 @note({source})").annotations == (Annotation("note", value),)


def test_literals_of_different_kinds_are_different() -> None:
    trees = [parse_schema(f"node A @note({value}) {{}}") for value in ("1", "1.0", "true", '"1"')]
    assert all(a != b for i, a in enumerate(trees) for b in trees[i + 1 :])


def test_keywords_follow_the_value_of_an_annotation() -> None:
    declared = parse_property('v: Vector(8)? @embed("bio", model="m", node=1)')
    assert declared.type.nullable
    keywords = (Keyword("model", text("m")), Keyword("node", integer(1)))
    assert declared.annotations == (Annotation("embed", text("bio"), keywords),)


@pytest.mark.parametrize(
    "base", ["String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "DateTime", "Date"]
)
def test_every_base_type_stands_alone_and_in_lists(base: str) -> None:
    node = parse_node(f"node A {{ a: {base} b: {base}? c: [{base}] d: [{base}]? }}")
    assert [(p.type.form, p.type.base, p.type.nullable) for p in node.properties] == [
        (TypeForm.SCALAR, base, False),
        (TypeForm.SCALAR, base, True),
        (TypeForm.LIST, base, False),
        (TypeForm.LIST, base, True),
    ]


def test_a_type_may_be_named_like_a_property_type() -> None:
    node, edge = parse_schema("node String {} edge Vector: String -> String").declarations
    assert (node.name, edge.name) == ("String", "Vector")


def test_an_edge_needs_no_body() -> None:
    assert parse_edge("edge E: A -> B") == parse_edge("edge E : A->B {}")


@pytest.mark.parametrize(
    ("source", "card"),
    [("", None), ("@card(0..)", Card(0, None)), ("@card ( 1 .. 3 )", Card(1, 3)), ("@card(0..0)", Card(0, 0))],
)
def test_cardinality_directly_follows_the_endpoints(source: str, card: Card | None) -> None:
    edge = parse_edge(f'edge E: A -> B {source} @note("x") {{ y: I32 }}')
    assert edge.card == card
    assert edge.annotations == (Annotation("note", text("x")),)


def test_an_edge_without_body_ends_where_the_next_declaration_starts() -> None:
    declarations = parse_schema("edge E: A -> B @note node C {} interface D {} edge F: C -> C").declarations
    assert [type(d) for d in declarations] == [EdgeDecl, NodeDecl, InterfaceDecl, EdgeDecl]


def test_a_node_lists_its_annotations_then_its_interfaces() -> None:
    node = parse_node('node A @description("d") implements B, C {}')
    assert [ref.name for ref in node.implements] == ["B", "C"]
    assert [a.name for a in node.annotations] == ["description"]


def test_positions_count_lines_and_columns_from_one() -> None:
    node = parse_node("\r\n/* two\nlines */ node A {\n\tname: String\n}")
    assert node.at == Position(3, 15)
    assert node.properties[0].at == Position(4, 2)
    assert node.properties[0].type.at == Position(4, 8)


def test_positions_do_not_count_for_equality() -> None:
    assert parse_schema("node A { x: I32 }") == parse_schema("\n\n  node A{x:I32}")


def test_a_source_that_is_too_large_is_refused_before_it_is_read() -> None:
    with pytest.raises(ParseError, match="more than 1048576 characters"):
        parse_schema(" " * (1024 * 1024 + 1))


def test_half_a_surrogate_pair_is_refused_with_its_place() -> None:
    with pytest.raises(ParseError) as refused:
        parse_schema("node A {}\n// \ud800")
    assert (refused.value.line, refused.value.column) == (2, 4)


@pytest.mark.parametrize(
    "source",
    [
        "[" * 100_000,
        "node A { x: " + "[" * 100_000,
        "{" * 100_000,
        "node A @a(" + "(" * 100_000,
        "/*" * 100_000,
        '"' + "\\" * 100_001,
        "@" * 100_000,
        "node A { x: enum(" + "a," * 100_000 + ") }",
        "node A " + "@a " * 50_000,
        "-" * 100_000,
        "." * 100_000,
    ],
    ids=lambda source: source[:14],
)
def test_hostile_nesting_and_repetition_is_refused_politely(source: str) -> None:
    with pytest.raises(ParseError):
        parse_schema(source)
