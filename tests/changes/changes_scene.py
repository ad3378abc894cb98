"""A graph whose every type of value can change, and a plain model of what it holds."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import pyarrow as pa

import omnigraph as og
from omnigraph.storage.tables import open_table

SCHEMA = """node Person {
  name: String @key
  age: I32?
  score: F64?
  ratio: F32?
  born: Date?
  seen: DateTime?
  tags: [String]?
  marks: [F64]?
  face: Vector(3)?
  photo: Blob?
  big: U64?
  on: Bool?
}
node City { name: String @key }
edge Knows: Person -> Person { since: I32? note: String? }
"""
P, C, K = "node:Person", "node:City", "edge:Knows"
Row = dict[str, Any]
NAN = float("nan")

# Pairs of neighbours that careless comparison takes for equal, or for different.
VALUES: dict[str, list[Any]] = {
    "age": [None, 0, 1, -1],
    "score": [None, 0.0, -0.0, NAN, 1.5],
    "ratio": [None, 0.0, -0.0, NAN, 0.1],
    "born": [None, date(1970, 1, 1), date(2024, 2, 29)],
    "seen": [None, datetime(1970, 1, 1, tzinfo=UTC), datetime(2024, 2, 29, 12, 0, 0, 1000, tzinfo=UTC)],
    "tags": [None, [], [""], ["a"], ["a", "b"], ["b", "a"], ["ab"]],
    "marks": [None, [], [0.0], [-0.0], [NAN], [1.0, 2.0]],
    "face": [None, [0.0, 0.0, 0.0], [-0.0, 0.0, 0.0], [1.0, 2.0, 3.0]],
    "photo": [None, b"", b"\x00", b"x" * 5000],
    "big": [None, 0, 2**64 - 1],
    "on": [None, True, False],
}


def people(graph: og.Graph, rows: list[Row]) -> pa.Table:
    schema = graph.catalog.arrow_schema(P)
    full = [{"name": row["id"], **row} for row in rows]
    return pa.Table.from_pylist([{n: row.get(n) for n in schema.names} for row in full], schema=schema)


def edges(graph: og.Graph, rows: list[Row]) -> pa.Table:
    schema = graph.catalog.arrow_schema(K)
    return pa.Table.from_pylist([{n: row.get(n) for n in schema.names} for row in rows], schema=schema)


def key_of(row: Row | None) -> Any:
    """Equal for two rows iff nobody could tell them apart."""
    return None if row is None else tuple((name, _key(value)) for name, value in sorted(row.items()))


def _key(value: Any) -> Any:
    if isinstance(value, float):
        return ("float", "nan") if value != value else ("float", repr(value))
    if isinstance(value, list):
        return ("list", tuple(_key(item) for item in value))
    return (type(value).__name__, value)


def stored(graph: og.Graph, target: str, table_key: str = P) -> dict[str, Row]:
    """Everything a target holds in a table, read plainly."""
    snapshot = graph.snapshot_of(target)
    if table_key not in snapshot.tables:
        return {}
    entry = snapshot.tables[table_key]
    table = graph.context.ref(entry.location, entry.table_branch)
    return {row["id"]: row for row in open_table(table, entry.table_version).read().to_pylist()}


@dataclass
class Told:
    """A plain record of what was committed where: each commit's first parent and the rows of both tables after it."""

    parents: dict[str, str | None] = field(default_factory=dict)
    states: dict[str, dict[str, dict[str, Row]]] = field(default_factory=dict)
    heads: dict[str, str] = field(default_factory=dict)

    def note(self, graph: og.Graph, branch: str) -> None:
        """Look at the head of a branch, if it is new."""
        head = graph.head_commit_id_for_branch(branch)
        assert head is not None
        if head not in self.parents:
            self.parents[head] = self.heads.get(branch)
            self.states[head] = {key: stored(graph, branch, key) for key in (P, K)}
        self.heads[branch] = head

    def chain(self, branch: str) -> list[str]:
        """Oldest first."""
        found: list[str] = []
        at: str | None = self.heads[branch]
        while at is not None:
            found.insert(0, at)
            at = self.parents[at]
        return found

    def net(self, one: str, two: str) -> dict[tuple[str, str], tuple[Row | None, Row | None]]:
        found = {}
        for key in (P, K):
            old, new = self.states[one][key], self.states[two][key]
            for name in sorted(old.keys() | new.keys()):
                if key_of(old.get(name)) != key_of(new.get(name)):
                    found[key, name] = (old.get(name), new.get(name))
        return found


def op_of(pair: tuple[Row | None, Row | None]) -> str:
    return "insert" if pair[0] is None else "delete" if pair[1] is None else "update"
