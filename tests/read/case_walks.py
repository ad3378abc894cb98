"""Traversals and negation; what each graph looks like is told in `case_scenes`."""

from __future__ import annotations

from read.case_scenes import DANGLING, SPEC, WALKS
from read.cases import Case, column, table

# Where a walk from one person ends: promise, start, edge with hops, ends.
_FROM = (
    ("a traversal gives destinations", "b", "follows", "c"),
    ("parallel edges collapse", "a", "follows", "b"),
    ("hops explore breadth-first", "a", "follows{1,2}", "bc"),
    ("a longer cycle never gives the source", "a", "follows{1,3}", "bcd"),
    ("hops beyond the last node change nothing", "a", "follows{1,9}", "bcde"),
    ("a minimum leaves out nearer nodes", "a", "follows{2,2}", "c"),
    ("a minimum of three leaves out two hops", "a", "follows{3,3}", "d"),
    ("a range gives each node once", "a", "follows{2,4}", "cde"),
    ("nodes found at hop 1 are not found again at hop 2", "c", "follows{2,2}", "be"),
    ("several destinations at each hop", "c", "follows{1,2}", "abde"),
    ("a self-loop gives its node", "d", "follows", "de"),
    ("parallel self-loops give their node once", "e", "follows", "e"),
    ("a self-loop gives its node once over several hops", "d", "follows{1,3}", "de"),
    ("a self-loop is found at hop 1 and so not at hop 2", "e", "follows{2,2}", ""),
    ("a self-loop below the minimum gives nothing", "d", "follows{2,3}", ""),
    ("a node without edges leads nowhere", "f", "follows{1,4}", ""),
    ("an undirected edge is walked both ways", "a", "<follows>", "bc"),
    ("an undirected self-loop gives its node once", "d", "<follows>", "cde"),
    ("undirected hops share one de-duplication", "a", "<follows>{1,2}", "bcd"),
    ("undirected hops with a minimum leave out both neighbours", "a", "<follows>{2,2}", "d"),
    ("an undirected walk never gives its source back", "b", "<follows>{1,4}", "acde"),
)
# Where walks of several hops begin that end at one person.
_TO = (
    ("only the destination bound runs in reverse", "b", "follows", "a"),
    ("a reverse walk has the same hops", "d", "follows{1,2}", "bcd"),
    ("a reverse walk leaves out nearer nodes", "d", "follows{2,2}", "b"),
    ("a reverse walk never gives a longer cycle", "a", "follows{1,3}", "bc"),
    ("an undirected walk reads the same in reverse", "a", "<follows>{2,2}", "d"),
)
_BETWEEN = (
    ("both ends bound keep pairs that an edge connects", "a", "follows", "b", 1),
    ("both ends bound drop pairs that no edge connects", "b", "follows", "a", 0),
    ("both ends bound respect hops", "a", "follows{1,2}", "c", 1),
    ("both ends bound respect the minimum", "a", "follows{2,3}", "b", 0),
    ("both ends bound may be joined against the arrow", "b", "<follows>", "a", 1),
    ("parallel edges between bound ends give one row", "a", "follows", "b", 1),
    ("parallel edges with a variable give a row each", "a", "$w:follows", "b", 2),
)
# Which persons are left: promise, clauses after `$p: Person`.
_LEFT = (
    ("one variable at both ends asks for a self-loop", "$p follows $p", "de"),
    ("one variable at both ends is no longer cycle", "$p follows{1,3} $p", "de"),
    ("one variable at both ends of an undirected edge", "$p <follows>{1,3} $p", "de"),
    ("an anonymous destination only has to exist", "$p follows $_", "abcde"),
    ("an anonymous destination after two hops", "$p follows{2,2} $_", "abc"),
    ("an anonymous source only has to exist", "$_ follows $p", "abcde"),
    ("two anonymous ends are not the same", "$p follows $_ $p memberOf $_", "abc"),
    ("not removes rows with a match", "not { $p memberOf $_ }", "def"),
    ("not looks against the arrow too", "not { $_ follows $p }", "f"),
    ("not respects hops", "not { $p follows{2,2} $_ }", "def"),
    ("not respects undirected edges", "not { $p <follows> $_ }", "f"),
    ("not takes a named inner variable", "not { $p follows $q }", "f"),
    ("not takes filters on inner variables", "not { $p follows $q $q.age > 3 }", "abf"),
    ("not takes an edge variable", "not { $p $w:follows $q $w.weight > 0.5 }", "abcf"),
    ("a filter with NULL inside not is no match", "not { $p.age > 2 }", "abf"),
    ("not may bind an outer variable again", "not { $p: Person { age: 2 } }", "acdef"),
    ("not with an inner binding of its own", 'not { $t: Team { code: "t" } $p memberOf $t }', "cdef"),
    ("not with a component that has no rows", 'not { $p.age > 0 $q: Person { name: "?" } }', "abcdef"),
    ("not with a component that has rows", 'not { $p.age > 3 $q: Person { name: "f" } }', "abcf"),
    ("not blocks nest", "not { $p follows $q not { $q memberOf $_ } }", "abf"),
    ("not blocks nest twice", "not { $p follows $q not { $q memberOf $t not { $t contains $_ } } }", "bf"),
    ("not blocks conjoin", "not { $p memberOf $_ } not { $p follows $_ }", "f"),
    ("inner variables are local", "not { $p follows $q $q.age > 3 } not { $p memberOf $q $q.size = 2 }", "f"),
    ("an inner not sees the outermost row", "not { $p follows $q not { $q follows{1,2} $p } }", "abef"),
    ("a traversal and a not", "$p memberOf $_ not { $p follows $q $q memberOf $_ }", ""),
)
_WEIGHTS = (
    (
        "an edge variable gives one row per edge",
        '$p: Person { name: "a" } $p $w:follows $q',
        ("f1", "a", "b"),
        ("f2", "a", "b"),
    ),
    (
        "parallel self-loops with a variable are kept",
        '$p: Person { name: "e" } $p $w:follows $q',
        ("f8", "e", "e"),
        ("f9", "e", "e"),
    ),
    (
        "an undirected self-loop with a variable comes once",
        '$p: Person { name: "d" } $p $w:<follows> $q',
        ("f5", "d", "c"),
        ("f6", "d", "d"),
        ("f7", "d", "e"),
    ),
    (
        "an undirected edge with a variable comes from both ends",
        "$p: Person $q: Person $p $w:<follows> $q $w.weight = 0.3",
        ("f3", "b", "c"),
        ("f3", "c", "b"),
    ),
    (
        "an edge with a variable may be asked in reverse",
        '$q: Person { name: "e" } $p $w:follows $q',
        ("f7", "d", "e"),
        ("f8", "e", "e"),
        ("f9", "e", "e"),
    ),
    ("a filter reads the property of an edge", "$p $w:follows $q $w.weight >= 0.8", ("f8", "e", "e"), ("f9", "e", "e")),
    (
        "a property of an edge may be NULL",
        '$p: Person { name: "c" } $p $w:follows $q $w.weight != 0.1',
        ("f4", "c", "a"),
    ),
    ("an edge is found by its id", '$p $w:follows $q $w.id = "f5"', ("f5", "c", "d")),
)


def _persons(promise: str, clauses: str, names: str, shown: str = "p") -> Case:
    body = f"match {{ $p: Person {clauses} }} return {{ ${shown}.name }}"
    return Case(promise, WALKS, body, column(f"{shown}.name", *names))


def _teams(promise: str, clauses: str, *codes: str) -> Case:
    return Case(promise, WALKS, f"match {{ {clauses} }} return {{ $t.code }}", column("t.code", *codes))


def _reverse(promise: str, end: str, walk: str, names: str) -> Case:
    body = f'match {{ $q: Person {{ name: "{end}" }} $p {walk} $q }} return {{ $p.name }}'
    return Case(promise, WALKS, body, column("p.name", *names))


def _between(promise: str, start: str, walk: str, end: str, times: int) -> Case:
    ends = f'$p: Person {{ name: "{start}" }} $q: Person {{ name: "{end}" }}'
    body = f"match {{ {ends} $p {walk} $q }} return {{ $p.name, $q.name }}"
    return Case(promise, WALKS, body, table("p.name q.name", *[(start, end)] * times))


def _edges(promise: str, clauses: str, *rows: tuple[str, str, str]) -> Case:
    body = f"match {{ {clauses} }} return {{ $w.id, $p.name, $q.name }}"
    return Case(promise, WALKS, body, table("w.id p.name q.name", *rows))


_FOLLOWS = [("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "d"), ("d", "e"), ("e", "e")]
_PAIRS = "return { $p.name, $q.name }"
_DANGLING = (
    ("a destination that is not there is dropped", '$p: Person { name: "ana" } $p follows $q', "q", "bo"),
    ("a source that is not there is dropped", "$p follows $q", "q", "bo"),
    ("an edge to nowhere is dropped with its variable", "$p $w:follows $q", "w", "f2"),
    ("an anonymous destination has to be there", "$p: Person $p memberOf $_", "p"),
    ("not finds no destination that is not there", "$p: Person not { $p memberOf $_ }", "p", "ana", "bo"),
)

CASES = [
    *(_persons(promise, f'$p.name = "{start}" $p {walk} $q', ends, "q") for promise, start, walk, ends in _FROM),
    *(_reverse(*rest) for rest in _TO),
    *(_between(*rest) for rest in _BETWEEN),
    *(_persons(*rest) for rest in _LEFT),
    *(_edges(*rest) for rest in _WEIGHTS),
    *(
        Case(promise, DANGLING, f"match {{ {body} }} return {{ ${of}.id }}", column(f"{of}.id", *ids))
        for promise, body, of, *ids in _DANGLING
    ),
    _persons(
        "a node filter on the way does not stop the walk",
        '$p.name = "a" $p follows{1,3} $q $q: Person { age: 4 }',
        "d",
        "q",
    ),
    _persons("traversals chain", '$p.name = "a" $p follows $q $q follows $r', "c", "r"),
    _persons(
        "a chain of traversals may come back to its start",
        '$p.name = "a" $p follows $q $q follows $r $r follows $s',
        "ad",
        "s",
    ),
    _persons(
        "a triangle joins three traversals", "$p follows $q $q follows $r $r follows $p $p.name != $q.name", "abc"
    ),
    _teams("edges between different types lead to the other type", '$p: Person { name: "b" } $p memberOf $t', "t"),
    _teams(
        "between different types equal ids are no self-loop", '$p: Person { name: "a" } $p memberOf $t', "t", "u", "a"
    ),
    _teams("edges between different types never chain", '$p: Person { name: "c" } $p memberOf{1,3} $t', "a"),
    _teams("between different types {1,3} equals {1,1}", '$p: Person { name: "a" } $p memberOf{1,3} $t', "t", "u", "a"),
    _teams("between different types a second hop gives nothing", '$p: Person { name: "a" } $p memberOf{2,3} $t'),
    _teams("an edge may be named contains", '$q: Team { code: "t" } $q contains{1,2} $t', "u", "a"),
    _teams("a left variable of the to-type walks backwards", '$p: Person { name: "b" } $t: Team $t memberOf $p', "t"),
    _teams("not infers the direction as outside", "$t: Team not { $t memberOf $_ }"),
    _teams(
        "not takes ends of different types from outside",
        '$t: Team $p: Person { name: "b" } not { $p memberOf $t }',
        "u",
        "a",
    ),
    _teams("not looks backwards between equal types by the order of its ends", "$t: Team not { $_ contains $t }", "t"),
    Case(
        "a component without a binding scans its first edge",
        WALKS,
        f"match {{ $p follows $q }} {_PAIRS}",
        table("p.name q.name", *_FOLLOWS),
    ),
    Case(
        "an undirected component without a binding gives both ways",
        WALKS,
        f"match {{ $p <follows> $q }} {_PAIRS}",
        table("p.name q.name", *sorted({*_FOLLOWS, *((q, p) for p, q in _FOLLOWS)})),
    ),
    Case(
        "not takes both ends of an edge from outside",
        WALKS,
        f"match {{ $p: Person $q: Person $p follows $q not {{ $q follows $p }} }} {_PAIRS}",
        table("p.name q.name", ("a", "b"), ("b", "c"), ("c", "a"), ("c", "d"), ("d", "e")),
    ),
    Case(
        "two walks of one row combine",
        WALKS,
        'match { $p: Person { name: "c" } $p follows $q $p memberOf $t } return { $q.name, $t.code }',
        table("q.name t.code", ("a", "a"), ("d", "a")),
    ),
    Case(
        "two edge variables of one pair combine",
        WALKS,
        'match { $p: Person { name: "a" } $p $v:follows $q $p $w:follows $q } return { $v.id, $w.id }',
        table("v.id w.id", ("f1", "f1"), ("f1", "f2"), ("f2", "f1"), ("f2", "f2")),
    ),
    Case(
        "an anonymous end of an edge variable keeps the edges",
        WALKS,
        'match { $p: Person { name: "a" } $p $w:follows $_ } return { $w.id }',
        column("w.id", "f1", "f2"),
    ),
    Case(
        "who is in no team",
        SPEC,
        "match { $p: Person not { $p memberOf $_ } } return { $p.name }",
        column("p.name", "bo"),
    ),
    Case(
        "who one follows",
        SPEC,
        "match { $p: Person { name: $n } $p $w:follows $q $w.weight >= $min not { $q memberOf $_ } } "
        "return { $q.name, $w.weight as strength } order { strength desc } limit 10",
        table("q.name strength", ("bo", 0.5)),
        "$n: String, $min: F64",
        {"n": "ana", "min": 0.25},
    ),
]
