"""Any text may be an id or a value: loads, statements, cascades and look-ups find exactly what was meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from omnigraph.base.errors import InvalidData, KeyConflict
from omnigraph.graph import Graph
from omnigraph.settings import Settings

pytestmark = pytest.mark.slow

SCHEMA = """
node Person { name: String @key  mail: String? @unique  n: I32? }
node Pair { a: String  b: String  n: I32?  @key(a, b) }
edge Follows: Person -> Person { why: String? }
"""
SPELT = [
    "",
    "'",
    "''",
    "\\",
    "\\'",
    '"',
    "`",
    "``",
    "' OR '1'='1",
    "'; DROP TABLE Person; --",
    "') OR true --",
    "/* */",
    "a\x00b",
    "\x00",
    "a",
    "A",
    "a ",
    " a",
    "line\nbreak\r\n\ttab",
    "\u2028",
    "\u200b",
    "\ufeff",
    "\u202e",
    "é",
    "e\u0301",
    "日本語",
    "🦉‍👩‍🚀",
    "null",
    "true",
    "%",
    "_",
    "$n",
    "{}",
    '["a","b"]',
    "'" * 5000,
    "X" * 20_000,
    "\U0010ffff",
]
TEXTS = st.one_of(
    st.sampled_from(SPELT),
    st.text(st.sampled_from("'\\\"`;-*/%_\n\x00 aAé{}$()=,[]"), max_size=12),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=30),
)
# What a power cut would leave is no matter here.
QUICK = Settings.resolve(storage_durability="os")
NAMES = st.lists(TEXTS, unique=True, min_size=3, max_size=8)


@pytest.fixture(scope="module", params=["scanned", "indexed"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Path, bool]:
    folder = tmp_path_factory.mktemp("hostile")
    return Graph.init(str(folder / "g"), SCHEMA, settings=QUICK), folder, request.param == "indexed"


def load(place: tuple[Graph, Path, bool], lines: list[dict[str, Any]], mode: Any) -> None:
    graph, folder, index = place
    (folder / "in.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="ascii")
    graph.load(folder / "in.jsonl", mode=mode, index=index)


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def table(graph: Graph, key: str, *columns: str) -> list[tuple[Any, ...]]:
    rows = graph.view().table(key).read(list(columns)).to_pylist()
    return sorted(tuple(row[c] for c in columns) for row in rows)


def once(graph: Graph, body: str, **params: str) -> tuple[int, int]:
    """Run one statement with these texts; how many nodes and edges it reached."""
    head = ", ".join(f"${name}: String" for name in params)
    done = graph.mutate(f"query q({head}) {{ {body} }}", params)
    return done.affected_nodes, done.affected_edges


@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(names=NAMES, pick=st.integers(0, 100))
@example(names=SPELT, pick=0)
@example(names=SPELT, pick=12)
@example(names=["a\x00b", "a", "a\x00"], pick=0)
@example(names=["'", "''", "\\'"], pick=1)
def test_every_text_is_only_a_text(place: tuple[Graph, Path, bool], names: list[str], pick: int) -> None:
    graph = place[0]
    ring = list(zip(names, names[1:] + names[:1], strict=True))
    people = {name: (f"<{name}>", 0) for name in names}
    lines = [person(name, mail=mail, n=n) for name, (mail, n) in people.items()]
    lines += [{"edge": "Follows", "from": a, "to": b, "data": {"id": f"{a}→", "why": b}} for a, b in ring]
    load(place, lines, "overwrite")
    assert table(graph, "node:Person", "id", "mail", "n") == sorted((k, *v) for k, v in people.items())
    one = names[pick % len(names)]

    load(place, [person(one, n=1)], "merge")
    people[one] = ("", 1)
    assert once(graph, "update Person set { mail: $m } where id = $n", n=one, m="") == (1, 0)
    assert once(graph, "update Person set { n: 2 } where name = $n and mail = $m", n=one, m="") == (1, 0)
    assert once(graph, "update Person set { n: 9 } where name = $n", n=one + "?") == (0, 0)
    people[one] = ("", 2)
    assert table(graph, "node:Person", "id", "mail", "n") == sorted((k, *v) for k, v in people.items())
    with pytest.raises(KeyConflict):
        load(place, [person(one)], "append")

    after, before = dict(ring)[one], {b: a for a, b in ring}[one]
    assert once(graph, "update Follows set { why: $w } where from = $f and to = $t", f=one, t=after, w=one) == (0, 1)
    assert once(graph, "delete Follows where id = $i and why = $w", i=f"{one}→", w=one) == (0, 1)
    assert once(graph, "insert Follows { from: $f, to: $f }", f=one) == (0, 1)
    version = graph.snapshot().version
    found = graph.entity_at("node:Person", one, version)
    assert found is not None
    assert (found["id"], found["name"], found["n"]) == (one, one, 2)
    assert graph.entity_at("node:Person", one + "?", version) is None

    # The edge that leads here and the loop go with the node; nothing else does.
    assert once(graph, "delete Person where name = $n", n=one) == (1, 2)
    assert table(graph, "node:Person", "id") == sorted((name,) for name in names if name != one)
    assert table(graph, "edge:Follows", "src", "dst") == sorted((a, b) for a, b in ring if one not in (a, b))
    with pytest.raises(InvalidData, match=r"dst .* not found in Person"):
        once(graph, "insert Follows { from: $f, to: $t }", f=before, t=one)


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=st.lists(st.tuples(TEXTS, TEXTS), unique=True, min_size=2, max_size=6))
@example(names=[("a", 'b","c'), ('a","b', "c"), ("", ""), ('"', "\\"), ("\x00", "'"), ("🦉", "\n")])
def test_composite_keys_of_any_text_stay_apart(place: tuple[Graph, Path, bool], names: list[tuple[str, str]]) -> None:
    graph = place[0]
    load(place, [{"type": "Pair", "data": {"a": a, "b": b, "n": 0}} for a, b in names], "overwrite")
    assert table(graph, "node:Pair", "a", "b") == sorted(names)
    for number, (a, b) in enumerate(names[:2], 1):
        body = f"insert Pair {{ a: $a, b: $b, n: {number} }}"
        assert once(graph, body, a=a, b=b) == (1, 0)
    expected = dict.fromkeys(names, 0) | {pair: number for number, pair in enumerate(names[:2], 1)}
    assert table(graph, "node:Pair", "a", "b", "n") == sorted((*pair, n) for pair, n in expected.items())
    assert once(graph, "delete Pair where a = $a and b = $b", a=names[0][0], b=names[0][1]) == (1, 0)
    assert table(graph, "node:Pair", "a", "b") == sorted(names[1:])


@settings(max_examples=8, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(names=NAMES)
@example(names=SPELT)
def test_a_unique_value_is_taken_only_by_the_same_text(place: tuple[Graph, Path, bool], names: list[str]) -> None:
    graph = place[0]
    ends = [{"edge": "Follows", "from": "p0", "to": "p0"}]
    load(place, [person(f"p{k}", mail=name) for k, name in enumerate(names)] + ends, "overwrite")
    for name in names[:2]:
        with pytest.raises(InvalidData, match=r"@unique violation on Person\.mail"):
            once(graph, 'insert Person { name: "new", mail: $m }', m=name)
    assert once(graph, 'insert Person { name: "new", mail: $m }', m=max(names, key=len) + "!") == (1, 0)
    assert len(table(graph, "node:Person", "id")) == len(names) + 1
