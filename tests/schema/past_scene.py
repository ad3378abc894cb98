"""A small graph whose schema changes, and its rows as each door of reading shows them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import omnigraph as og

FIRST = """
node Person { name: String @key  age: I32? @index  bio: String? @index  nick: String? }
node Town { name: String @key }
edge Knows: Person -> Person { since: I32? }
"""
PEOPLE = [
    {"name": "ana", "age": 31, "bio": "ana likes cats", "nick": "a"},
    {"name": "bob", "age": 42, "bio": "bob likes dogs", "nick": "b"},
    {"name": "cyd", "age": None, "bio": None, "nick": None},
]
LINES = [
    *({"type": "Person", "data": row} for row in PEOPLE),
    {"type": "Town", "data": {"name": "oslo"}},
    {"edge": "Knows", "from": "ana", "to": "bob", "data": {"id": "k", "since": 2000}},
]
Row = dict[str, Any]


def made(place: Path, schema: str = FIRST, *, indexed: bool = True) -> og.Graph:
    graph = og.Graph.init(str(place / "graph"), schema)
    fill(graph, LINES, place, index=indexed)
    return graph


def fill(graph: og.Graph, lines: Sequence[Row], place: Path, **more: Any) -> None:
    file = place / "lines.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    graph.load(str(file), mode=more.pop("mode", "append"), **more)


def head(graph: og.Graph, branch: str = "main") -> str:
    found = graph.head_commit_id_for_branch(branch)
    assert found is not None
    return found


def by_query(graph: og.Graph, type_: str, columns: Sequence[str], **target: Any) -> list[Row]:
    wanted = ", ".join(f"$x.{column} as {column}" for column in columns)
    text = f"query q() {{ match {{ $x: {type_} }} return {{ {wanted} }} order {{ $x.name }} }}"
    return graph.query(text, **target).rows


def by_sql(graph: og.Graph, type_: str, columns: Sequence[str], **target: Any) -> list[Row]:
    return graph.sql(f"SELECT {', '.join(columns)} FROM node_{type_} ORDER BY name", **target).rows


def by_export(graph: og.Graph, type_: str, columns: Sequence[str], **target: Any) -> list[Row]:
    lines = b"".join(graph.export([type_], **target)).splitlines()
    return [{column: row["data"].get(column) for column in columns} for row in map(json.loads, lines)]


def doors(graph: og.Graph, type_: str, columns: Sequence[str], **target: Any) -> list[Row]:
    """The rows of a type, which every door must show alike, cold and from memory."""
    first = by_query(graph, type_, columns, **target)
    assert by_query(graph, type_, columns, **target) == first
    assert by_sql(graph, type_, columns, **target) == first
    assert by_export(graph, type_, columns, **target) == first
    return first


def everything(graph: og.Graph, **target: Any) -> bytes:
    return b"".join(graph.export(**target))
