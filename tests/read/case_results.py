"""Projection, aggregation, ordering and limit."""

from __future__ import annotations

from typing import Any

from read.case_scenes import EMPTY, LETTERS, SPEC, VALUES, WALKS
from read.cases import Case, column, table

_GONE = '$p: Person { name: "?" }'
_EVERYONE = "$p: Person"


def _spec(promise: str, body: str, expected: list[dict[str, Any]], declares: str = "", **params: Any) -> Case:
    return Case(promise, SPEC, body, expected, declares, params)


def _thing(promise: str, name: str, returned: str, expected: dict[str, Any]) -> Case:
    return Case(promise, VALUES, f'match {{ $t: Thing {{ name: "{name}" }} }} return {{ {returned} }}', [expected])


def _things(promise: str, returned: str, expected: dict[str, Any]) -> Case:
    return Case(promise, VALUES, f"match {{ $t: Thing }} return {{ {returned} }}", [expected])


def _words(promise: str, order: str, *texts: str) -> Case:
    body = f"match {{ $w: Word }} return {{ $w.text, $w.n as n, $w.mark as mark }} {order}"
    rows = {row["text"]: (row["text"], row.get("n"), row.get("mark")) for row in LETTERS.rows["node:Word"]}
    return Case(promise, LETTERS, body, table("w.text n mark", *(rows[text] for text in texts)))


def _ordered(promise: str, order: str, *names: str) -> Case:
    body = f"match {{ $t: Thing }} return {{ $t.name }} order {{ {order} }}"
    return Case(promise, VALUES, body, column("t.name", *names))


_PROJECTIONS = [
    _spec(
        "a property is named by variable and property",
        f"match {{ {_EVERYONE} }} return {{ $p.age }}",
        column("p.age", 31, None),
    ),
    _spec(
        "an alias names a column", f"match {{ {_EVERYONE} }} return {{ $p.age as years }}", column("years", 31, None)
    ),
    _spec("a bare variable is its id", f"match {{ {_EVERYONE} }} return {{ $p }}", column("p", "ana", "bo")),
    _spec(
        "an id is a column of its own name", f"match {{ {_EVERYONE} }} return {{ $p.id }}", column("p.id", "ana", "bo")
    ),
    _spec(
        "a parameter is named by itself",
        f"match {{ {_EVERYONE} }} return {{ $x, $p }}",
        table("x p", (7, "ana"), (7, "bo")),
        "$x: I32",
        x=7,
    ),
    _spec(
        "a NULL parameter is null",
        f"match {{ {_EVERYONE} }} return {{ $x, $p }}",
        table("x p", (None, "ana"), (None, "bo")),
        "$x: I32?",
    ),
    _spec("a literal is named literal", f'match {{ {_EVERYONE} }} return {{ "hi" }}', column("literal", "hi", "hi")),
    _spec(
        "columns come in the order written",
        f"match {{ {_EVERYONE} }} return {{ $p.age, $p.name }}",
        table("p.age p.name", (31, "ana"), (None, "bo")),
    ),
    _spec(
        "equal rows are not merged",
        "match { $p: Person $q: Person } return { $p.name }",
        column("p.name", "ana", "ana", "bo", "bo"),
    ),
    _spec(
        "an edge variable shows its id and properties",
        "match { $p $w:follows $q } return { $w.id, $w.weight }",
        table("w.id w.weight", ("f1", 0.5)),
    ),
    _thing(
        "an unsafe integer is a decimal string",
        "big",
        "$t.i64, $t.u64",
        {"t.i64": str(2**63 - 1), "t.u64": str(2**64 - 1)},
    ),
    _thing(
        "a negative unsafe integer is a decimal string", "low", "$t.i64, $t.u64", {"t.i64": str(-(2**63)), "t.u64": 0}
    ),
    _thing(
        "the first integer beyond is a decimal string",
        "mid",
        "$t.i64, $t.u64",
        {"t.i64": str(2**53 + 1), "t.u64": str(2**53)},
    ),
    _thing("32-bit integers are numbers", "big", "$t.i32, $t.u32", {"t.i32": 2**31 - 1, "t.u32": 2**32 - 1}),
    _thing("floats are numbers", "big", "$t.f32, $t.f64", {"t.f32": 0.1, "t.f64": 1e300}),
    _thing("a Date is text", "big", "$t.day", {"t.day": "2024-02-29"}),
    _thing("a DateTime is text in UTC with milliseconds", "mid", "$t.at", {"t.at": "2024-02-29T13:00:00.000Z"}),
    _thing(
        "moments before the epoch are text",
        "low",
        "$t.day, $t.at",
        {"t.day": "1969-12-31", "t.at": "1969-12-31T23:59:59.999Z"},
    ),
    _thing(
        "lists are arrays of such values",
        "big",
        "$t.nums, $t.days, $t.tags",
        {"t.nums": [str(2**63 - 1), 3], "t.days": ["2024-02-29"], "t.tags": ["a", "b_c", "ß"]},
    ),
    _thing("an empty list is not null", "low", "$t.tags, $t.days", {"t.tags": [], "t.days": []}),
    _thing(
        "what is not there is null",
        "none",
        "$t.flag, $t.text, $t.tags, $t.vec, $t.at",
        {"t.flag": None, "t.text": None, "t.tags": None, "t.vec": None, "t.at": None},
    ),
    _thing("booleans and enums are themselves", "big", "$t.flag, $t.kind", {"t.flag": True, "t.kind": "high"}),
    _thing("a vector is an array of numbers", "low", "$t.vec", {"t.vec": [0.6, 0.8]}),
    Case(
        "a composite id is the array of its key",
        VALUES,
        "match { $x: Place } return { $x }",
        column("x", '["7","eu"]', '["7","us"]'),
    ),
]

_AGGREGATES = [
    _spec(
        "count and avg of all",
        f"match {{ {_EVERYONE} }} return {{ count($p) as n, avg($p.age) as a }}",
        table("n a", (2, 31.0)),
    ),
    _spec(
        "an aggregate without alias is named by its argument",
        f"match {{ {_EVERYONE} }} return {{ avg($p.age) }}",
        column("p.age", 31.0),
    ),
    _spec("a counted variable names its column", f"match {{ {_EVERYONE} }} return {{ count($p) }}", column("p", 2)),
    _spec("count leaves NULL out", f"match {{ {_EVERYONE} }} return {{ count($p.age) as n }}", column("n", 1)),
    _spec("count of a literal counts rows", f"match {{ {_EVERYONE} }} return {{ count(1) as n }}", column("n", 2)),
    _spec(
        "count counts rows, not distinct values",
        "match { $p: Person $q: Person } return { count($p) as n }",
        column("n", 4),
    ),
    _spec(
        "no rows give one row without group keys",
        f"match {{ {_GONE} }} return {{ count($p) as n, sum($p.age) as s, min($p.name) as m }}",
        table("n s m", (0, None, None)),
    ),
    _spec("no rows give no rows with group keys", f"match {{ {_GONE} }} return {{ $p.name, count($p) as n }}", []),
    Case(
        "an empty graph has a count",
        EMPTY,
        "match { $p: Person $p follows $q } return { count($q) as n }",
        column("n", 0),
    ),
    _spec("limit 0 leaves out even that row", f"match {{ {_GONE} }} return {{ count($p) as n }} limit 0", []),
    Case(
        "NULL is a group of its own",
        VALUES,
        "match { $t: Thing } return { $t.kind, count($t) as n, max($t.i32) as top }",
        table("t.kind n top", ("high", 1, 2**31 - 1), ("low", 2, 2), (None, 1, None)),
    ),
    Case(
        "a group of only NULLs gives null and counts 0",
        VALUES,
        'match { $t: Thing { name: "none" } } return '
        "{ $t.name, count($t.i32) as n, sum($t.i32) as s, avg($t.f64) as a, min($t.day) as d }",
        table("t.name n s a d", ("none", 0, None, None, None)),
    ),
    Case(
        "destinations are counted by source",
        WALKS,
        "match { $p follows $q } return { $p.name, count($q) as n }",
        table("p.name n", ("a", 1), ("b", 1), ("c", 2), ("d", 2), ("e", 1)),
    ),
    Case(
        "edges are counted and summed by source",
        WALKS,
        "match { $p $w:follows $q } return { $p, count($w.weight) as n, sum($w.weight) as s }",
        table("p n s", ("a", 2, 0.3), ("b", 1, 0.3), ("c", 1, 0.4), ("d", 2, 1.3), ("e", 2, 1.7)),
    ),
    Case(
        "several group keys",
        WALKS,
        "match { $p $w:follows $q } return { $p.name, $q.name, count($w.id) as n }",
        table(
            "p.name q.name n",
            ("a", "b", 2),
            ("b", "c", 1),
            ("c", "a", 1),
            ("c", "d", 1),
            ("d", "d", 1),
            ("d", "e", 1),
            ("e", "e", 2),
        ),
    ),
    Case(
        "groups of edges whose key is NULL",
        WALKS,
        "match { $p memberOf $t } return { $t.size as size, count($p) as n }",
        table("size n", (1, 2), (2, 2), (None, 1)),
    ),
    Case(
        "aggregates over a negation",
        WALKS,
        "match { $p: Person not { $p memberOf $_ } } return { count($p) as n, max($p.age) as top }",
        table("n top", (3, 5)),
    ),
    Case(
        "pairs that no edge connects",
        WALKS,
        "match { $p: Person $q: Person not { $p follows $q } } return { count($p) as n }",
        column("n", 29),
    ),
    _things(
        "a sum is a double and never wraps",
        "sum($t.i64) as s, sum($t.u64) as u",
        {"s": float(2**53), "u": float(2**64 + 2**53)},
    ),
    _things("a sum of 32-bit integers leaves their range", "sum($t.u32) as s", {"s": float(2**32 + 6)}),
    _things("avg is a double", "avg($t.i32) as a", {"a": 1 / 3}),
    _things(
        "min and max of integers keep their type",
        "min($t.i64) as low, max($t.u64) as high",
        {"low": str(-(2**63)), "high": str(2**64 - 1)},
    ),
    _things(
        "min and max of dates are dates",
        "min($t.day) as first, max($t.at) as last",
        {"first": "1969-12-31", "last": "2024-02-29T13:00:00.000Z"},
    ),
    _things(
        "min and max of texts go by bytes",
        "min($t.text) as first, max($t.text) as last",
        {"first": "", "last": "straße 50x"},
    ),
    _things("max of a float keeps its type", "max($t.f32) as top, min($t.f64) as low", {"top": 2.0, "low": -0.5}),
]

_ORDERS = [
    _spec(
        "NULL is first in asc",
        f"match {{ {_EVERYONE} }} return {{ $p.name }} order {{ $p.age asc }}",
        column("p.name", "bo", "ana"),
    ),
    _spec(
        "asc is meant where nothing is said",
        f"match {{ {_EVERYONE} }} return {{ $p.name }} order {{ $p.age }}",
        column("p.name", "bo", "ana"),
    ),
    _spec(
        "NULL is last in desc",
        f"match {{ {_EVERYONE} }} return {{ $p.name }} order {{ $p.age desc }}",
        column("p.name", "ana", "bo"),
    ),
    _spec(
        "an alias is a key",
        f"match {{ {_EVERYONE} }} return {{ $p.name as n }} order {{ n desc }}",
        column("n", "bo", "ana"),
    ),
    _words("texts order by their bytes", "order { $w.text }", "Z", "a", "é", "\uffff", "\U0001f600"),
    _words("ties of an ascending key order by id", "order { n }", "é", "a", "\uffff", "Z", "\U0001f600"),
    _words("ties of a descending key order by ascending id", "order { n desc }", "Z", "\U0001f600", "a", "\uffff", "é"),
    _words("a second key orders ties", "order { mark, n desc }", "\U0001f600", "Z", "a", "\uffff", "é"),
    _words("a second key has its own direction", "order { mark desc, n }", "é", "\uffff", "a", "Z", "\U0001f600"),
    _words("limit cuts the ordered rows", "order { n desc } limit 3", "Z", "\U0001f600", "a"),
    _words("limit 0 gives no rows", "order { n desc } limit 0"),
    _words("a limit beyond the rows gives all", "order { n desc } limit 99", "Z", "\U0001f600", "a", "\uffff", "é"),
    _ordered("i64 orders by value", "$t.i64", "none", "low", "mid", "big"),
    _ordered("u64 orders by value", "$t.u64 desc", "big", "mid", "low", "none"),
    _ordered("f64 orders by value", "$t.f64", "none", "low", "mid", "big"),
    _ordered("dates order in time", "$t.day desc", "mid", "big", "low", "none"),
    _ordered("moments order in time", "$t.at", "none", "low", "big", "mid"),
    _ordered("enums order as texts", "$t.kind desc", "low", "mid", "big", "none"),
    Case(
        "ties order by the ids of all variables, by their names",
        SPEC,
        "match { $q: Person $p: Person } return { $q, $p, 1 as k } order { k desc }",
        table("q p k", ("ana", "ana", 1), ("bo", "ana", 1), ("ana", "bo", 1), ("bo", "bo", 1)),
    ),
    Case(
        "ties order by the ids of edges too",
        WALKS,
        "match { $p $w:follows $q } return { $w.id } order { $q.name desc } limit 4",
        column("w.id", "f7", "f8", "f9", "f5"),
    ),
    Case(
        "a variable that is not returned still orders ties",
        WALKS,
        "match { $p: Person $p follows $q } return { $p.name } order { $p.name } limit 4",
        column("p.name", "a", "b", "c", "c"),
    ),
    Case(
        "groups order by an aggregate and a key",
        WALKS,
        "match { $p follows $q } return { $p.name as s, count($q) as n } order { n desc, s desc } limit 3",
        table("s n", ("d", 2), ("c", 2), ("e", 1)),
    ),
    Case(
        "groups order by a returned property",
        WALKS,
        "match { $p follows $q } return { $p.name, max($q.age) as top } order { $p.name desc } limit 2",
        table("p.name top", ("e", 5), ("d", 5)),
    ),
    Case(
        "a NULL aggregate is smallest",
        VALUES,
        "match { $t: Thing } return { $t.name as name, min($t.i32) as low } order { low, name }",
        table("name low", ("none", None), ("low", -(2**31)), ("mid", 2), ("big", 2**31 - 1)),
    ),
    Case(
        "limit without order gives that many rows",
        WALKS,
        "match { $p: Person } return { $p.name } limit 2",
        column("p.name", *"abcdef"),
    ),
]

CASES = [*_PROJECTIONS, *_AGGREGATES, *_ORDERS]
