"""What the parser refuses, with the text, the place and the hint a reader gets."""

from __future__ import annotations

import pickle

import pytest

from omnigraph.base.errors import BadRequest, ParseError
from omnigraph.lang.gq import parse_queries
from omnigraph.lang.pg.lexer import BASE_TYPES

D2 = "rule D2: a mutation query cannot mix inserts/updates and deletes; split into separate mutations"


def refusal(source: str) -> ParseError:
    with pytest.raises(ParseError) as refused:
        parse_queries(source)
    return refused.value


def in_read(source: str) -> str:
    return f"query q() {{ match {{ $p: P {source} }} return {{ 1 }} }}"


def in_return(source: str) -> str:
    return f"query q() {{ match {{ $p: P }} return {{ {source} }} }}"


def in_order(source: str) -> str:
    return f"query q() {{ match {{ $p: P }} return {{ 1 }} order {{ {source} }} limit 1 }}"


def in_mutation(source: str) -> str:
    return f"query q() {{ {source} }}"


def in_header(source: str) -> str:
    return f"query q{source} {{ match {{ $p: P }} return {{ 1 }} }}"


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("quer q() {}", "1:1: unexpected 'quer', expected 'query' or the end of the file"),
        ("query Q() {}", "1:7: unexpected 'Q', expected a name"),
        ("query q() {}", "1:12: unexpected '}', expected 'delete', 'insert', 'match' or 'update'"),
        ("query q() { match { $p: P } }", "1:29: unexpected '}', expected 'return'"),
        ("query q() { match { $p: P return { 1 } }", "1:27: unexpected 'return', expected '}'"),
        ("query q() { match { $p: P } return { 1 order { x } }", "1:40: unexpected 'order', expected '}'"),
        ("query q() { match { $p: P } return { 1 }", "1:41: unexpected end of file, expected 'limit', 'order' or '}'"),
        ("query q() { match { } return { 1 } }", "1:21: unexpected '}', expected 'not', a name, a value or a variable"),
        (in_return(""), "1:39: unexpected '}', expected a name, a value or a variable"),
        (in_return("$p.x,"), "1:44: unexpected '}', expected a name, a value or a variable"),
        (in_return("$p."), "1:42: unexpected '}', expected a name"),
        (in_return("$P.x"), "1:38: expected a variable name after '$'"),
        (in_return("$ p"), "1:38: expected a variable name after '$'"),
        (in_return("1e5"), "1:38: malformed number '1e5'"),
        (in_return("- 1"), "1:38: unexpected character '-'"),
        (in_return("99999999999999999999"), "1:38: integer is outside -9223372036854775808..18446744073709551615"),
        (in_return('"a'), "1:38: unterminated string"),
        (in_return(r'"a\x"'), "1:40: unsupported escape sequence '\\x'"),
        ('query q() { match { $p: P } return { "a\\', "1:40: unterminated escape sequence"),
        ("query q() { /* x", "1:13: unterminated comment"),
        (in_return("foo(1)"), "1:38: unknown function 'foo'"),
        (in_return("cuont($p)"), "1:38: unknown function 'cuont'"),
        (in_return("count()"), "1:38: count takes 1 argument, got 0"),
        (in_return("search($p.x)"), "1:38: search takes 2 arguments, got 1"),
        (in_return('fuzzy($p.x, "a", 1, 2)'), "1:38: fuzzy takes 2 or 3 arguments, got 4"),
        (in_return("now(1)"), "1:38: now takes 0 arguments, got 1"),
        (in_return("date(1)"), "1:43: date takes a text"),
        (in_return("datetime($x)"), "1:47: datetime takes a text"),
        (in_return("[1, $x]"), "1:42: a list literal holds only literals"),
        (in_return("[now()]"), "1:39: a list literal holds only literals"),
        (in_read("$p not $q"), "1:30: unexpected 'not', expected '.', ':', a name, a variable or an operator"),
        (in_read("$p Knows $q"), "1:30: unexpected 'Knows', expected '.', ':', a name, a variable or an operator"),
        (in_read("$q: p"), "1:31: unexpected 'p', expected a type name"),
        (in_read("$p.x"), "1:32: unexpected '}', expected an operator"),
        (in_read("$p: P {}"), "1:34: unexpected '}', expected a name"),
        (in_read("not { }"), "1:33: unexpected '}', expected 'not', a name, a value or a variable"),
        (in_read("$p knows{1} $q"), "1:37: unexpected '}', expected ','"),
        (in_read("$p knows{,2} $q"), "1:36: unexpected ',', expected an integer"),
        (in_read("count($p)"), "1:27: count is no clause of a match"),
        (in_read('nearest($p.v, "x")'), "1:27: nearest is no clause of a match"),
        (in_read("now()"), "1:27: a value alone is no clause"),
        (in_read("$q: P { x: $p.y }"), "1:40: unexpected '.', expected ',' or '}'"),
        (in_read("$q: P { x: word }"), "1:38: unexpected 'word', expected a literal, a parameter or now()"),
        (in_read("$q: P { x: count($p) }"), "1:38: unexpected 'count(…)', expected a literal, a parameter or now()"),
        (in_read("$q: P { x: 1 y: 2 }"), "1:40: unexpected 'y', expected ',' or '}'"),
        ("query q() { match { $p: P } return { 1 } limit -1 }", "1:48: limit must not be negative"),
        ("query q() { match { $p: P } return { 1 } limit 1.5 }", "1:48: unexpected '1.5', expected an integer"),
        (in_order(""), "1:51: unexpected '}', expected a name, a value or a variable"),
        (in_order("a b"), "1:52: unexpected 'b', expected ',', 'asc', 'desc' or '}'"),
        (in_header("($x: Strng)"), "1:13: unknown parameter type 'Strng'"),
        (in_header("($x: Vector)"), "1:13: Vector requires a dimension"),
        (in_header("($x: Vector(0))"), "1:20: Vector dimension must be greater than zero"),
        (in_header("($x: Vector(-1))"), "1:20: Vector dimension must be greater than zero"),
        (in_header("($x: Vector(2147483648))"), "1:20: Vector dimension must be at most 2147483647"),
        (in_header("($x: I32(3))"), "1:13: type 'I32' takes no dimension"),
        (in_header("($x: [Blob])"), "1:14: Blob is not supported as a list element"),
        (in_header("($x: [Vector])"), "1:14: Vector requires a dimension"),
        (in_header("($x: I32, $x: I32)"), "1:18: duplicate parameter 'x'"),
        (in_header("($__x: I32)"), "1:9: parameter name '__x' is reserved"),
        (in_header("($_: I32)"), "1:9: '$_' binds nothing and is no parameter"),
        (in_header("(x: I32)"), "1:9: unexpected 'x', expected ')' or a variable"),
        (in_header("() @exat"), "1:11: unknown query annotation '@exat'"),
        (in_header("() @exact @exact"), "1:18: @exact is repeated"),
        (in_header('() @description("a") @description("b")'), "1:29: @description is repeated"),
        (in_header('() @instruction("a") @exact @instruction("a")'), "1:36: @instruction is repeated"),
        (in_header('() @exact("a")'), "1:11: @exact takes no argument"),
        (in_header("() @description"), "1:11: @description requires a non-empty text"),
        (in_header('() @instruction("")'), "1:11: @instruction requires a non-empty text"),
        ("query q() @exact { delete P where a = 1 }", "1:11: @exact is not supported on a mutation"),
        ("query q() { insert P { a } }", "1:26: unexpected '}', expected ':'"),
        ("query q() { insert P { a: b } }", "1:27: unexpected 'b', expected a literal, a parameter or now()"),
        ("query q() { insert p { a: 1 } }", "1:20: unexpected 'p', expected a type name"),
        ("query q() { update P set { a: 1 } }", "1:35: unexpected '}', expected 'where'"),
        ("query q() { delete P }", "1:22: unexpected '}', expected 'where'"),
        ("query q() { delete P where a contains 1 }", "1:30: unexpected 'contains', expected an operator"),
        (
            in_mutation("delete P where a = 1 or b = 2"),
            "1:34: unexpected 'or', expected 'and', 'delete', 'insert', 'update' or '}'",
        ),
        (
            in_mutation("insert P { a: 1 } match { $p: P } return { 1 }"),
            "1:31: unexpected 'match', expected 'delete', 'insert', 'update' or '}'",
        ),
        ("query q() { insert P { a: 1 } delete P where a = 1 }", f"1:31: {D2}"),
        ("query q() { delete P where a = 1 update P set { a: 1 } where a = 2 }", f"1:34: {D2}"),
        ("query q() { delete P where a = 1 }\nquery q() { delete P where a = 1 }", "2:7: duplicate query name 'q'"),
        (in_order("nearest($p.v, 1) asc"), "1:67: nearest takes no 'asc'"),
        (in_order("nearest($p.v, 1) desc"), "1:67: nearest takes no 'desc'"),
    ],
)  # fmt: skip
def test_source_is_refused_with_its_text_and_place(source: str, text: str) -> None:
    assert str(refusal(source)) == f"parse error: {text}"


@pytest.mark.parametrize(
    ("source", "hint"),
    [
        ("qury q() {}", "Did you mean 'query'?"),
        ("query q() { mtach { $p: P } return { 1 } }", "Did you mean 'match'?"),
        (in_return("cuont($p)"), "Did you mean 'count'?"),
        (in_header("($x: integr)"), f"There are {', '.join(BASE_TYPES)} and Vector(N)."),
        (in_header("($x: Integer)"), "Write I32."),
        (in_header("($x: string)"), "Did you mean 'String'?"),
        (in_header("() @exat"), "Did you mean 'exact'?"),
        (in_read("$p WorksAt $q"), "Names of edges and properties start lower-case here: worksAt."),
        (in_read("$q: person"), "Type names start upper-case: Person."),
        ("query q() { insert P { tier: paid } }", 'A text is quoted: "paid".'),
        ("query q() { match { $p: P return { 1 } }", "A block before it is still open."),
    ],
)
def test_a_slip_is_answered_with_what_was_probably_meant(source: str, hint: str) -> None:
    assert refusal(source).hint == hint


def test_a_refusal_names_its_file() -> None:
    with pytest.raises(ParseError, match=r"^parse error: people\.gq:1:1: unexpected 'x'"):
        parse_queries("x", "people.gq")


def test_rule_d2_is_a_bad_request_seen_while_parsing() -> None:
    refused = refusal("query q() { insert P { a: 1 } update P set { a: 1 } where a = 2 delete P where a = 1 }")
    assert isinstance(refused, BadRequest)
    assert refused.text == D2
    assert refused.code == "bad_request"
    assert (refused.line, refused.column) == (1, 65)
    assert str(pickle.loads(pickle.dumps(refused))) == str(refused)


def test_text_that_is_no_unicode_is_refused_at_its_place() -> None:
    assert str(refusal("// ok\nx\ud800")) == "parse error: 2:2: query source is not valid Unicode text"
