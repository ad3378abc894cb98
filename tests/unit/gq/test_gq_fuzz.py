"""No text crashes the parser or the checker, and printing loses nothing the tree says."""

from __future__ import annotations

import pytest
from gq_sources import CATALOG, FIXTURES
from gq_strategies import files
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from omnigraph.base.errors import ParseError, SourceError, TypeCheckError
from omnigraph.lang.gq import parse_queries, print_queries
from omnigraph.lang.gq.ast import QueryFile
from omnigraph.lang.gq.lexer import NESTING_MAX
from omnigraph.lang.source import SOURCE_CHARS_MAX
from omnigraph.plan.check import check_query
from omnigraph.plan.lint import SchemaSource, lint

pytestmark = pytest.mark.slow

_PIECES = [
    "query ", "q", "(", ")", "{", "}", "[", "]", "match ", "match {", "return ", "return {", "order {", "limit ",
    "not {", "insert ", "update ", "delete ", "set {", "where ", " and ", " as ", " asc", " desc", "null", "true",
    "$", "$p", "$_", "$w", "$p.name", ".", ":", ",", "@", "@exact", "@description(", "Person", "Team", "follows",
    "memberOf", " contains ", " starts_with ", "<", ">", "<=", ">=", "!=", "=", "1", "-1", "1.5", "1.", "-", '"',
    '"a"', '"\\', "nearest(", "search(", "fuzzy(", "bm25(", "rrf(", "count(", "now()", "date(", "datetime(", "String",
    "Vector(", "[I32]", "?", "{1,2}", "{1,}", "//", "/*", "*/", "\n", " ", "\t", "\x00", "é", "𝒳", "\u2028",
    "99999999999999999999", "name: ", "age: 3",
]  # fmt: skip
_GOOD = [path.read_text(encoding="utf-8") for path in sorted(FIXTURES.glob("T*/*.gq"))]

# Generated trees are large and the machine may be busy: time is not what these tests are about.
unhurried = settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
thorough = settings(unhurried, max_examples=300)
few = settings(unhurried, max_examples=50)


def refuses_politely_or_accepts(source: str) -> None:
    refused: list[SourceError] = []
    try:
        tree = parse_queries(source)
    except ParseError as error:
        refused.append(error)
    else:
        for query in tree.queries:
            try:
                check_query(CATALOG, query)
            except TypeCheckError as error:
                assert error.rule in {f"T{number}" for number in range(1, 26)}
                refused.append(error)
    for error in refused:
        assert 1 <= (error.line or 0) <= source.count("\n") + 1
        assert (error.column or 0) >= 1
        assert str(error)


@unhurried
@given(st.text(max_size=200))
def test_no_text_crashes_the_parser(source: str) -> None:
    refuses_politely_or_accepts(source)


@thorough
@given(st.lists(st.sampled_from(_PIECES), max_size=40).map("".join))
def test_no_mix_of_pieces_of_the_language_crashes_the_parser(source: str) -> None:
    refuses_politely_or_accepts(source)


@thorough
@given(st.lists(st.sampled_from(_PIECES), max_size=20).map(" ".join), st.booleans())
def test_no_mix_of_pieces_inside_a_query_crashes_parser_or_checker(middle: str, reads: bool) -> None:
    body = f"match {{ $p: Person {middle} }} return {{ $p }}" if reads else f"insert Person {{ name: {middle} }}"
    refuses_politely_or_accepts(f"query q($n: String) {{ {body} }}")


@thorough
@given(st.sampled_from(_GOOD), st.data())
def test_no_cut_swap_or_insertion_crashes_parser_or_checker(source: str, data: st.DataObject) -> None:
    cut = data.draw(st.integers(0, len(source)))
    until = data.draw(st.integers(cut, min(len(source), cut + 12)))
    piece = data.draw(st.sampled_from(_PIECES))
    refuses_politely_or_accepts(source[:cut])
    refuses_politely_or_accepts(source[:cut] + piece + source[cut:])
    refuses_politely_or_accepts(source[:cut] + piece + source[until:])
    refuses_politely_or_accepts(source[:cut] + source[until:])


@thorough
@given(st.sampled_from(_GOOD), st.sampled_from(_GOOD), st.data())
def test_no_splice_of_two_queries_crashes_parser_or_checker(one: str, other: str, data: st.DataObject) -> None:
    head = one.split(" ")
    tail = other.split(" ")
    cut, start = data.draw(st.integers(0, len(head))), data.draw(st.integers(0, len(tail)))
    refuses_politely_or_accepts(" ".join(head[:cut] + tail[start:]))


@few
@given(files)
def test_no_tree_crashes_the_checker(tree: QueryFile) -> None:
    refuses_politely_or_accepts(print_queries(tree))


@unhurried
@given(files)
def test_reading_what_was_printed_gives_the_same_tree(tree: QueryFile) -> None:
    assert parse_queries(print_queries(tree)) == tree


@few
@given(files)
def test_printing_is_canonical(tree: QueryFile) -> None:
    printed = print_queries(tree)
    assert print_queries(parse_queries(printed)) == printed


@few
@given(st.one_of(st.text(max_size=80), files.map(print_queries)))
def test_lint_answers_about_any_text(source: str) -> None:
    report = lint(CATALOG, source, schema_source=SchemaSource("file", "s.pg"), query_path="q.gq")
    assert report.to_json()["status"] == ("error" if report.errors else "ok")


@pytest.mark.parametrize(
    "source",
    [
        "query q() { match { " + "not { " * 100_000,
        "query q() { match { " + "not { " * 200 + "$p: P" + " }" * 200 + " } return { 1 } }",
        "query q() { match { $p: P } return { " + "[" * 100_000,
        "query q() { match { $p: P } return { " + "[" * 200 + "]" * 200 + " } }",
        "query q() { match { $p: P } return { " + "count(" * 200 + "1" + ")" * 200 + " } }",
        "query q() { insert P { x: " + "[" * 100_000,
        "query " * 100_000,
        "{" * 100_000,
        "(" * 100_000,
        "$" * 100_000,
        "-" * 100_000,
        "@exact " * 10_000,
        '"' + "\\" * 100_001,
        "/*" * 100_000,
        "query q(" + "$a: I32, " * 5_000,
        "x" * 300,
        "9" * 100_000,
        "query q() { match { $p: P } return { 1 } limit " + "9" * 1_000 + " }",
    ],
    ids=lambda source: f"{source[:12]}{len(source)}",
)
def test_hostile_nesting_and_repetition_is_refused_politely(source: str) -> None:
    with pytest.raises(ParseError):
        parse_queries(source)


def nested(depth: int) -> str:
    """A query with brackets nested that deep."""
    inner = depth - 2
    return "query q() { match { $p: Person " + "not { $p follows $_ " * inner + "}" * inner + " } return { $p } }"


def test_nesting_is_allowed_up_to_its_limit_and_named_beyond() -> None:
    check_query(CATALOG, parse_queries(nested(NESTING_MAX)).queries[0])
    with pytest.raises(ParseError, match=f"brackets are nested more than {NESTING_MAX} deep"):
        parse_queries(nested(NESTING_MAX + 1))


def test_a_source_beyond_its_limit_is_refused_unread() -> None:
    with pytest.raises(ParseError, match="query source has more than"):
        parse_queries(" " * (SOURCE_CHARS_MAX + 1))


def test_many_queries_and_clauses_are_no_problem() -> None:
    chain = " ".join(f"$a{i} follows $a{i + 1}" for i in range(2_000))
    body = f"query chain() {{ match {{ {chain} $a2000: Person }} return {{ $a0.name }} }}"
    check_query(CATALOG, parse_queries(body).queries[0])
    many = "\n".join(f'query q{i}() {{ delete Person where name = "x" }}' for i in range(500))
    assert len(parse_queries(many).queries) == 500
