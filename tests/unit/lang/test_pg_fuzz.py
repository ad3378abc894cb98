"""No text crashes the parser, and printing loses nothing the tree says."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pg_strategies import schemas

from omnigraph.base.errors import CatalogError, ParseError, SourceError
from omnigraph.catalog.build import build, compile_source
from omnigraph.lang.pg import parse_schema, print_schema
from omnigraph.lang.pg.ast import SchemaAst

pytestmark = pytest.mark.slow

_PIECES = [
    "node ", "edge ", "interface ", "implements ", "enum", "enum(", "A", "B", "Person", "x", "src", "true", ":", "->",
    "{", "}", "(", ")", "[", "]", "?", "@", "@key", "@unique(", "@range(", "@check(", "@card(", "@default(", "@embed(",
    "@rename_from(", ",", "=", "..", "1", "-1", "1.5", "1.", "-", '"', '"a"', '"\\', "\\n", "String", "I32", "Vector",
    "Vector(", "Blob", "//", "/*", "*/", "\n", " ", "\t", "\r", "\x00", "é", "𝒳", "\u2028", "99999999999999999999",
]  # fmt: skip


# Generated trees are large and the machine may be busy: time is not what these tests are about.
unhurried = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
thorough = settings(unhurried, max_examples=400)


def refusal(source: str) -> SourceError | None:
    try:
        compile_source(source)
    except (ParseError, CatalogError) as refused:
        return refused
    return None


def refuses_politely_or_accepts(source: str) -> None:
    refused = refusal(source)
    if refused is not None:
        assert (refused.line or 0) >= 1
        assert (refused.column or 0) >= 1


@unhurried
@given(st.text(max_size=200))
def test_no_text_crashes_the_parser(source: str) -> None:
    refuses_politely_or_accepts(source)


@thorough
@given(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))
def test_no_mix_of_pieces_of_the_language_crashes_the_parser(source: str) -> None:
    refuses_politely_or_accepts(source)


@unhurried
@given(schemas, st.data())
def test_no_cut_or_swap_of_a_good_schema_crashes_the_parser(tree: SchemaAst, data: st.DataObject) -> None:
    source = print_schema(tree)
    cut = data.draw(st.integers(0, len(source)))
    piece = data.draw(st.sampled_from(_PIECES))
    refuses_politely_or_accepts(source[:cut])
    refuses_politely_or_accepts(source[:cut] + piece + source[cut:])
    refuses_politely_or_accepts(source[:cut] + source[cut + 1 :])


@unhurried
@given(schemas)
def test_reading_what_was_printed_gives_the_same_tree(tree: SchemaAst) -> None:
    assert parse_schema(print_schema(tree)) == tree


@unhurried
@given(schemas)
def test_printing_is_canonical(tree: SchemaAst) -> None:
    printed = print_schema(tree)
    assert print_schema(parse_schema(printed)) == printed


@unhurried
@given(schemas)
def test_no_tree_crashes_the_catalog(tree: SchemaAst) -> None:
    with suppress(ParseError, CatalogError):
        build(tree)
