"""Filters, NULL, numbers, texts, lists, dates, components."""

from __future__ import annotations

from typing import Any

from read.case_scenes import EMPTY, LETTERS, SPEC, VALUES, WALKS
from read.cases import Case, column, table

_NUMBERS = (
    ("an integer column never equals a fraction", "$t.i32 = 2.7", ()),
    ("an integer is unequal to a fraction", "$t.i32 != 2.7", ("big", "low", "mid")),
    ("an integer may be above a fraction", "$t.i32 > 2.7", ("big",)),
    ("an integer may be below a fraction", "$t.i32 <= 2.7", ("low", "mid")),
    ("an integer equals a float of the same value", "$t.i32 = 2.0", ("mid",)),
    ("an out-of-range literal does not wrap", "$t.i32 = 4294967298", ()),
    ("a literal above the range is above every value", "$t.i32 < 4294967298", ("big", "low", "mid")),
    ("an unsigned column equals no negative number", "$t.u32 = -1", ()),
    ("an unsigned column is above every negative number", "$t.u32 > -1", ("big", "low", "mid")),
    ("the largest u64 is found", "$t.u64 = 18446744073709551615", ("big",)),
    ("the smallest i64 is found", "$t.i64 = -9223372036854775808", ("low",)),
    ("a literal beyond every integer matches nothing", "$t.u64 >= 18446744073709551616.0", ()),
    ("an integer is not rounded to compare with a float column", "$t.i64 = $t.f64", ()),
    ("an integer just above a double is above it", "$t.i64 > $t.f64", ("mid",)),
    ("u64 and double are equal where their values are", "$t.u64 = $t.f64", ("mid",)),
    ("i64 and u64 compare by value", "$t.i64 < $t.u64", ("big", "low")),
    ("an f32 does not equal the double it was rounded from", "$t.f32 = 0.1", ()),
    ("an f32 compares as the number it holds", "$t.f32 > 0.1", ("big", "mid")),
    ("an f32 equals an integer", "$t.f32 = 2", ("mid",)),
    ("a literal may stand on the left", "2.7 < $t.i32", ("big",)),
)
_OTHERS = (
    ("NULL equals not even itself", "$t.i32 = $t.i32", ("big", "low", "mid")),
    ("NULL is unequal to nothing", '$t.text != ""', ("big", "low")),
    ("a Bool compares with a Bool", "$t.flag = false", ("low",)),
    ("not true is false, not NULL", "$t.flag != true", ("low",)),
    ("contains is case-sensitive", '$t.text contains "straße"', ("low",)),
    ("contains takes a percent sign literally", '$t.text contains "50%"', ("big",)),
    ("contains takes an underscore literally", '$t.text contains "50_"', ()),
    ("starts_with is case-sensitive", '$t.text starts_with "Str"', ("big",)),
    ("starts_with takes a percent sign literally", '$t.text starts_with "%"', ()),
    ("every text starts with the empty one, NULL does not", '$t.text starts_with ""', ("big", "low", "mid")),
    ("every text contains the empty one, NULL does not", '$t.text contains ""', ("big", "low", "mid")),
    ("a list contains its elements", '$t.tags contains "a"', ("big",)),
    ("membership is no pattern", '$t.tags contains "b%c"', ()),
    ("membership compares whole elements", '$t.tags contains "b"', ()),
    ("an element that is twice in a list matches once", "$t.nums contains 3", ("big", "mid")),
    ("membership compares numbers by value", "$t.nums contains 3.0", ("big", "mid")),
    ("no integer element equals a fraction", "$t.nums contains 3.5", ()),
    ("the largest element is found", "$t.nums contains 9223372036854775807", ("big",)),
    ("a list of dates contains a date", '$t.days contains date("2024-02-29")', ("big",)),
    ("a literal list contains a property", "[1, 2, 7] contains $t.i32", ("mid",)),
    ("a Date equals a Date", '$t.day = date("2024-02-29")', ("big",)),
    ("days before the epoch are before it", '$t.day < date("1970-01-01")', ("low",)),
    ("moments compare to the millisecond", '$t.at > datetime("2024-02-29T12:00:00Z")', ("big", "mid")),
    ("an offset is the same moment", '$t.at = datetime("2024-02-29T14:00:00+01:00")', ("mid",)),
    ("what is past is before now", "$t.at < now()", ("big", "low", "mid")),
    ("now is one moment", "now() = now()", ("big", "low", "mid", "none")),
    ("an enum equals a member", '$t.kind = "low"', ("low", "mid")),
    ("enum members order as texts", '$t.kind > "high"', ("low", "mid")),
    ("a false constant keeps nothing", "1 = 2", ()),
    ("a true constant keeps everything", "1 = 1.0", ("big", "low", "mid", "none")),
    ("an id is a property", '$t.id = "mid"', ("mid",)),
    ("filters are conjunctive", "$t.i32 > 0 $t.u32 < 10", ("mid",)),
)
_LETTERS = (
    ("texts order by bytes: capitals first", '$w.text < "a"', ("Z",)),
    ("texts order by bytes: accents behind letters", '$w.text > "z"', ("é", "\uffff", "\U0001f600")),
    ("texts order by bytes: what UTF-16 writes as two units is last", '$w.text > "\uffff"', ("\U0001f600",)),
)


def _one(promise: str, clauses: str, names: tuple[str, ...], declares: str = "", **params: Any) -> Case:
    body = f"match {{ $t: Thing {clauses} }} return {{ $t.name }}"
    return Case(promise, VALUES, body, column("t.name", *names), declares, params)


def _letters(promise: str, clauses: str, texts: tuple[str, ...]) -> Case:
    return Case(promise, LETTERS, f"match {{ $w: Word {clauses} }} return {{ $w.text }}", column("w.text", *texts))


def _people(promise: str, body: str, *names: str, declares: str = "", **params: Any) -> Case:
    return Case(promise, SPEC, f"match {{ {body} }} return {{ $p.name }}", column("p.name", *names), declares, params)


CASES = [
    *(_one(*rest) for rest in (*_NUMBERS, *_OTHERS)),
    *(_letters(*rest) for rest in _LETTERS),
    _one("a NULL parameter equals nothing", "$t.i32 = $n", (), "$n: I32?", n=None),
    _one("a NULL parameter is unequal to nothing", "$t.i32 != $n", (), "$n: I32?"),
    _one("a NULL parameter is in no list", "$t.nums contains $n", (), "$n: I64?"),
    _one("a float parameter compares with integers by value", "$t.i64 >= $x", ("big", "mid"), "$x: F64", x=2.0**53),
    _one(
        "an integer parameter may be larger than the column",
        "$t.i32 < $x",
        ("big", "low", "mid"),
        "$x: U64",
        x=2**64 - 1,
    ),
    _one("a decimal string is an integer parameter", "$t.u64 = $x", ("big",), "$x: U64", x=str(2**64 - 1)),
    _one("a list parameter contains", "$xs contains $t.name", ("low", "mid"), "$xs: [String]", xs=["mid", "low", "?"]),
    _one("an empty list contains nothing", "$xs contains $t.name", (), "$xs: [String]", xs=[]),
    _one("a Date parameter is a Date", "$t.day >= $d", ("big", "mid"), "$d: Date", d="2024-02-29"),
    Case(
        "a map entry of a list asks for membership",
        VALUES,
        'match { $t: Thing { tags: "A" } } return { $t }',
        column("t", "mid"),
    ),
    Case("a map entry matches an id", VALUES, 'match { $t: Thing { id: "big" } } return { $t }', column("t", "big")),
    Case(
        "a composite key is an id",
        VALUES,
        'match { $x: Place { id: "[\\"7\\",\\"eu\\"]" } } return { $x.size }',
        column("x.size", 3),
    ),
    Case(
        "map entries are conjunctive",
        VALUES,
        'match { $x: Place { code: 7, region: "us" } } return { $x.region }',
        column("x.region", "us"),
    ),
    Case("nodes without a key have ids", VALUES, "match { $n: Note } return { $n }", column("n", "n1", "n2")),
    _people("a binding alone gives every node", "$p: Person", "ana", "bo"),
    _people("a map entry filters", '$p: Person { name: "ana" }', "ana"),
    _people("a parameter in a map filters", "$p: Person { name: $n }", "bo", declares="$n: String", n="bo"),
    _people("a NULL parameter in a map matches nothing", "$p: Person { age: $n }", declares="$n: I32?", n=None),
    _people("unequal to a value leaves NULL out", "$p: Person $p.age != 30", "ana"),
    _people("equal to the value leaves NULL out", "$p: Person $p.age = 31", "ana"),
    _people("a variable bound twice meets both maps", '$p: Person { age: 31 } $p: Person { name: "ana" }', "ana"),
    _people("a variable bound twice meets no contradiction", '$p: Person { age: 31 } $p: Person { name: "bo" }'),
    _people("a filter may come before its binding", "$p.age > 30 $p: Person", "ana"),
    Case(
        "unconnected components combine as a cross product",
        SPEC,
        "match { $p: Person $t: Team } return { $p.name, $t.code }",
        table("p.name t.code", ("ana", "core"), ("bo", "core")),
    ),
    Case(
        "a type crossed with itself gives every pair",
        SPEC,
        "match { $p: Person $q: Person } return { $p.name, $q.name }",
        table("p.name q.name", ("ana", "ana"), ("ana", "bo"), ("bo", "ana"), ("bo", "bo")),
    ),
    Case(
        "a filter may join two components",
        WALKS,
        "match { $p: Person $t: Team $p.age = $t.size } return { $p.name, $t.code }",
        table("p.name t.code", ("a", "a"), ("b", "t")),
    ),
    _people("a component without rows empties the product", '$p: Person $t: Team { code: "?" }'),
    Case("an empty graph gives no rows", EMPTY, "match { $p: Person $p follows $q } return { $q.name }", []),
]
