"""A graph with two sides to merge, and how tests see it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

import omnigraph as og

SCHEMA = """
node Person {
  name: String @key
  a: I32?
  b: String?
  mail: String?
  tier: enum(gold, tin)?
  @unique(mail)
  @range(a, 0..1000)
  @check(b, "^[a-z]*$")
}
node City { name: String @key }
edge Knows: Person -> Person { w: I32?  t: String? }
edge LivesIn: Person -> City @card(0..1)
edge Owns: Person -> City @card(1..2)
"""

Row = Mapping[str, Any]


def new_graph(folder: Path, schema: str = SCHEMA) -> og.Graph:
    # Nobody pulls the plug here, and a disk that others use is slow to sync.
    return og.Graph.init(str(folder / "graph"), schema, settings=og.Settings(storage_durability="os"))


def write(
    graph: og.Graph, branch: str | None, table_key: str, rows: list[dict[str, Any]], delete: tuple[str, ...] = ()
) -> str:
    """Upsert rows and delete ids in one table; what is left out of a row is null."""
    schema = graph.catalog.arrow_schema(table_key)
    full = [{**dict.fromkeys(schema.names), **row} for row in rows]
    change = og.Upsert(pa.Table.from_pylist(full, schema=schema), delete)
    return graph.write({table_key: change}, branch=branch).graph_commit_id


def person(name: str, **values: Any) -> dict[str, Any]:
    return {"id": name, "name": name, **values}


def people(graph: og.Graph, branch: str | None, *rows: dict[str, Any], delete: tuple[str, ...] = ()) -> str:
    return write(graph, branch, "node:Person", list(rows), delete)


def mutate(graph: og.Graph, body: str, branch: str | None = None, **more: Any) -> str:
    done = graph.mutate(f"query q() {{ {body} }}", branch=branch, **more)
    assert done.commit is not None
    return done.commit


def rows_of(graph: og.Graph, table_key: str, branch: str | None = None, at: str | None = None) -> dict[str, Row]:
    """The rows of a table by id."""
    view = graph.view(branch) if at is None else graph.view_of(None, at)[0]
    return {row["id"]: row for row in view.table(table_key).read().to_pylist()}


def content(graph: og.Graph, branch: str | None = None) -> list[str]:
    return sorted(b"".join(graph.export(branch=branch)).decode().splitlines())


def conflicts_of(error: og.MergeConflicts) -> set[tuple[str, str, str]]:
    return {(c["table_key"], c["row_id"], c["kind"]) for c in error.merge_conflicts}


def files_below(folder: Path) -> dict[str, int]:
    """Every file with its size, locks aside: what a call that writes nothing must leave alone."""
    return {
        str(path.relative_to(folder)): path.stat().st_size
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "__locks" not in path.parts
    }


def filled(path: Path, choices: Mapping[str, Any]) -> None:
    """Write a choice, by row id, into a resolution file."""
    told = json.loads(path.read_text())
    for entry in told["choices"]:
        if entry["row_id"] in choices:
            entry["choice"] = choices[entry["row_id"]]
    path.write_text(json.dumps(told))
