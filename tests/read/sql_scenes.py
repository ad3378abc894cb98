"""A small graph for SQL: five people who follow each other, with a value of every type."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph as og

SCHEMA = """
node Person {
  name: String @key
  age: I32?
  big: U64?
  score: F64?
  narrow: F32?
  born: Date?
  seen: DateTime? @index
  tags: [String]?
  place: Vector(2)?
  photo: Blob?
}
edge Follows: Person -> Person { weight: F64? }
"""
NAMES = ["ana", "bo", "cy", "di", "ed"]
SEEN = [datetime(2024, 1, day, 12, tzinfo=UTC) for day in range(1, 6)]


def people() -> dict[str, Any]:
    return {
        "name": NAMES,
        "age": pa.array([31, None, 17, 44, 31], pa.int32()),
        "big": pa.array([1, 2, 2**63, None, 5], pa.uint64()),
        "score": [0.0, -0.0, 1.5, None, 2.5],
        "narrow": pa.array([0.1, 0.2, None, 0.4, 0.5], pa.float32()),
        "born": [date(1990, 1, 1), None, date(2007, 5, 6), date(1980, 2, 3), date(1993, 4, 5)],
        "seen": SEEN,
        "tags": [["a", "b"], [], None, ["c"], ["a"]],
        "place": pa.array([[1.0, 0.0], [0.0, 1.0], None, [0.5, 0.5], [1.0, 1.0]], pa.list_(pa.float32(), 2)),
        "photo": [b"jpg", None, None, None, None],
    }


def made(folder: Path, settings: og.Settings | None = None) -> og.Graph:
    graph = og.Graph.init(str(folder / "g"), SCHEMA, settings=settings)
    follows = pa.table(
        {"from": ["ana", "ana", "bo", "cy"], "to": ["bo", "cy", "cy", "ana"], "weight": [0.5, 1.0, None, 2.0]}
    )
    graph.load_frames({"Person": pa.table(people()), "Follows": follows}, mode="append")
    return graph


def answers(graph: og.Graph, sql: str, **more: Any) -> list[tuple[Any, ...]]:
    return [tuple(row.values()) for row in graph.sql(sql, **more).rows]
