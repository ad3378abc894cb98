"""Text and vector search; the texts are tokenized as the full-text index does it."""

from __future__ import annotations

from typing import Any

from read.case_scenes import Scene, edges, keyed
from read.cases import Case, column, table

DOCS = Scene(
    "docs",
    """
node Doc { name: String @key  title: String? @index  year: I32?  vec: Vector(2)? @index }
edge Cites: Doc -> Doc
""",
    {
        "node:Doc": keyed(
            "name",
            {"name": "d1", "title": "the quick brown fox", "vec": [1, 0], "year": 1},
            {"name": "d2", "title": "Quick foxes jumping", "vec": [0, 1], "year": 2},
            {"name": "d3", "title": "slow brown bear", "vec": [0.6, 0.8], "year": 2},
            {"name": "d4", "vec": [0, 0]},
            {"name": "d5", "title": "fox fox fox", "year": 3},
            {"name": "d6", "title": "a fix", "vec": [-1, 0]},
        ),
        "edge:Cites": edges(("c1", "d2", "d3"), ("c2", "d2", "d1"), ("c3", "d1", "d5")),
    },
)
_MATCHES = (
    ("search finds stems", 'search($d.title, "fox")', "d1 d2 d5"),
    ("search takes any of its words", 'search($d.title, "bear jump")', "d2 d3"),
    ("search knows no case", 'search($d.title, "QUICK")', "d1 d2"),
    ("a stop word alone matches nothing", 'search($d.title, "the")', ""),
    ("an empty query matches nothing", 'search($d.title, "")', ""),
    ("match_text wants its words side by side", 'match_text($d.title, "quick fox")', "d2"),
    ("match_text wants its words in order", 'match_text($d.title, "fox brown")', ""),
    ("match_text of one word is that word", 'match_text($d.title, "brown")', "d1 d3"),
    ("fuzzy takes words within some edits", 'fuzzy($d.title, "fix", 1)', "d1 d5 d6"),
    ("fuzzy without edits takes the word", 'fuzzy($d.title, "fix", 0)', "d6"),
    ("fuzzy allows two edits where nothing is said", 'fuzzy($d.title, "fix")', "d1 d5 d6"),
    ("fuzzy compares words, not stems", 'fuzzy($d.title, "foxes", 0)', "d2"),
    ("fuzzy knows no case", 'fuzzy($d.title, "quik", 1)', "d1 d2"),
    ("text matches are conjunctive", 'search($d.title, "fox") search($d.title, "brown")', "d1"),
    ("a text match in a negation", 'not { search($d.title, "fox") }', "d3 d4 d6"),
    ("a text match on the far end", '$d cites $e search($e.title, "brown")', "d2 d2"),
)
_RRF = 'rrf(nearest($d.vec, [0.0, 1.0]), bm25($d.title, "fox"))'


def _ranked(promise: str, clauses: str, order: str, names: str) -> Case:
    body = f"match {{ $d: Doc {clauses} }} return {{ $d.name }} order {{ {order} }} limit 9"
    return Case(promise, DOCS, body, column("d.name", *names.split()))


def _docs(promise: str, body: str, expected: list[dict[str, Any]]) -> Case:
    return Case(promise, DOCS, f"match {{ $d: Doc {body}", expected)


CASES = [
    *(
        Case(promise, DOCS, f"match {{ $d: Doc {clauses} }} return {{ $d.name }}", column("d.name", *names.split()))
        for promise, clauses, names in _MATCHES
    ),
    _docs(
        "a text match is a Bool",
        '$d.year = 2 } return { $d, search($d.title, "fox") as m }',
        table("d m", ("d2", True), ("d3", False)),
    ),
    _ranked("bm25 keeps the rows that match, best first, equals by id", "", 'bm25($d.title, "fox")', "d5 d1 d2"),
    _ranked("bm25 is best first whatever the direction says", "", 'bm25($d.title, "fox") asc', "d5 d1 d2"),
    _ranked("later keys break equal scores", "", 'bm25($d.title, "fox") desc, $d.year desc', "d5 d2 d1"),
    _ranked("a filter comes before bm25", "$d.year < 3", 'bm25($d.title, "fox")', "d1 d2"),
    _ranked("nearest leaves out NULL and zero vectors", "", "nearest($d.vec, [1.0, 0.0])", "d1 d3 d2 d6"),
    _ranked("a filter comes before nearest", "$d.year = 2", "nearest($d.vec, [1.0, 0.0])", "d3 d2"),
    _docs(
        "nearest is the cosine distance",
        "} return { $d, nearest($d.vec, [2.0, 0.0]) as far } order { far } limit 4",
        table("d far", ("d1", 0.0), ("d3", 0.4), ("d2", 1.0), ("d6", 2.0)),
    ),
    _docs(
        "the limit cuts what is near",
        "} return { $d } order { nearest($d.vec, [1.0, 0.0]) } limit 2",
        column("d", "d1", "d3"),
    ),
    _docs(
        "nearest may be returned without ordering",
        "} return { $d, nearest($d.vec, [0.0, 1.0]) as far } order { $d.year desc } limit 2",
        table("d far", ("d5", None), ("d2", 0.0)),
    ),
    _docs(
        "rows of one entity have one distance",
        "$d cites $e } return { $d, $e } order { nearest($d.vec, [0.0, 1.0]) } limit 9",
        table("d e", ("d2", "d1"), ("d2", "d3"), ("d1", "d5")),
    ),
    _docs(
        "rrf adds reciprocal ranks",
        f"}} return {{ $d, {_RRF} as s }} order {{ s }} limit 3",
        table("d s", ("d2", 1 / 61 + 1 / 63), ("d1", 1 / 63 + 1 / 62), ("d5", 1 / 61)),
    ),
    _docs(
        "rrf takes entities, then rows",
        f"$d cites $e }} return {{ $d, $e }} order {{ {_RRF} }} limit 1",
        table("d e", ("d2", "d1")),
    ),
    _docs(
        "k of rrf is the caller's",
        f"}} return {{ $d, {_RRF[:-1]}, 1) as s }} order {{ s }} limit 3",
        table("d s", ("d2", 1 / 2 + 1 / 4), ("d1", 1 / 4 + 1 / 3), ("d5", 1 / 2)),
    ),
    _docs(
        "rrf ranks all rows that match, however few are returned",
        f"}} return {{ $d, {_RRF} as s }} order {{ $d.name }} limit 3",
        table("d s", ("d1", 1 / 63 + 1 / 62), ("d2", 1 / 61 + 1 / 63), ("d3", 1 / 62)),
    ),
    _docs(
        "of two entities that a fusion scores alike the smaller id is taken, whatever stands beside it",
        '$a cites $d } return { $a, $d } order { rrf(bm25($d.title, "fox"), bm25($d.title, "bear")) } limit 1',
        table("a d", ("d2", "d3")),
    ),
    _docs(
        "the nearest arm of a fusion keeps as many entities as the limit",
        f"}} return {{ $d, {_RRF} as s }} order {{ $d.name }} limit 1",
        table("d s", ("d1", 1 / 62)),
    ),
    _docs(
        "nearest through an alias is nearest first whatever the direction says",
        "} return { $d, nearest($d.vec, [1.0, 0.0]) as far } order { far desc } limit 2",
        table("d far", ("d1", 0.0), ("d3", 0.4)),
    ),
    _docs(
        "a fusion through an alias is best first whatever the direction says",
        f"}} return {{ $d, {_RRF} as s }} order {{ s asc }} limit 2",
        table("d s", ("d2", 1 / 61 + 1 / 63), ("d5", 1 / 61)),
    ),
    _docs(
        "rows that nearest orders alike come in the order of later keys",
        "} return { $d } order { nearest($d.vec, [0.0, 1.0]), $d.year desc } limit 4",
        column("d", "d2", "d3", "d1", "d6"),
    ),
]
