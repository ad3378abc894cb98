"""Graphs in many small pieces, and what of them must not change."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import omnigraph as og

SCHEMA = """
node Person {
  name: String @key
  age: I32? @index
  bio: String? @index
  v: Vector(4)? @index
  photo: Blob?
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? }
edge LivesIn: Person -> City
"""
P, C, K, L = "node:Person", "node:City", "edge:Knows", "edge:LivesIn"
FACTS = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def person(name: str, number: int = 0) -> dict[str, Any]:
    data = {"name": name, "age": number % 7, "bio": f"word{number % 5} {name}", "v": [1.0, number % 3, 0.5, number % 5]}
    return {"type": "Person", "data": data | ({"photo": "base64:aGVsbG8="} if number % 2 else {})}


def city(name: str) -> dict[str, Any]:
    return {"type": "City", "data": {"name": name}}


def knows(one: str, other: str, since: int = 0) -> dict[str, Any]:
    return {"edge": "Knows", "from": one, "to": other, "data": {"id": f"{one}-{other}", "since": since}}


def load(graph: og.Graph, folder: Path, rows: Iterable[dict[str, Any]], **more: Any) -> None:
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    graph.load(path, **{"mode": "merge", "index": False, **more})


def people(first: int, count: int) -> list[dict[str, Any]]:
    """People who know the one before."""
    numbers = range(first, first + count)
    return [person(f"p{n}", n) for n in numbers] + [knows(f"p{n}", f"p{max(n - 1, first)}", n) for n in numbers]


def in_pieces(graph: og.Graph, folder: Path, first: int = 0, pieces: int = 5, branch: str | None = None) -> None:
    """Loads of a few rows each, with indexes after the first, and rows that change and go."""
    for piece in range(pieces):
        load(graph, folder, people(first + 10 * piece, 6), branch=branch, index=piece == 0)
    write(graph, f'update Person set {{ age: 99 }} where name = "p{first + 1}"', branch)
    write(graph, f'delete Person where name = "p{first + 12}"', branch)


def write(graph: og.Graph, body: str, branch: str | None = None) -> None:
    graph.mutate(f"query q() {{ {body} }}", branch=branch)


def stored(graph: og.Graph, branch: str = "main") -> dict[str, list[tuple[Any, ...]]]:
    """Every row of a branch with its row id and row versions, by table."""
    view = graph.view(branch)
    found = {}
    for key in view.entries:
        dataset = view.table(key).dataset
        plain = [name for name in dataset.schema.names if name not in ("photo", "id")]
        rows = dataset.to_table(columns=[*FACTS, *plain]).to_pylist()
        found[key] = sorted(tuple(map(str, row.values())) for row in rows)
    return found


def exported(graph: og.Graph, **target: Any) -> list[bytes]:
    return sorted(b"".join(graph.export(**target)).splitlines())


def fragments(graph: og.Graph, branch: str = "main") -> dict[str, int]:
    view = graph.view(branch)
    return {key: view.table(key).fragment_count() for key in view.entries}
