"""The graphs of the hand-written cases on disk, and all cases asked of them at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

import pyarrow as pa

import omnigraph as og
from omnigraph.settings import Settings
from read import case_search
from read.agree import misfit
from read.case_scenes import Rows, Scene
from read.cases import Case, all_cases
from read.row_lines import write_lines

CASES = [*all_cases(), *case_search.CASES]
SCENES = {case.scene.name: case.scene for case in CASES}
# Nothing here outlives a power cut.
QUICK = Settings(storage_durability="os")


def made(folder: Path, scene: Scene) -> og.Graph:
    """A graph of one commit with every index; edges to nowhere come in where nobody looks for their ends."""
    graph = og.Graph.init(str(folder / scene.name), scene.schema, settings=QUICK)
    if scene.loadable:
        graph.load(write_lines(folder / f"{scene.name}.jsonl", scene.rows), mode="append")
    else:
        written(graph, scene.rows)
    return graph


def made_in_pieces(folder: Path, whole: og.Graph, scene: Scene) -> og.Graph:
    """The same rows without an index, in several fragments, some of them written twice and a row gone again."""
    graph = og.Graph.init(str(folder / scene.name), scene.schema, settings=QUICK)
    tables = {key: whole.view().table(key).read() for key, rows in scene.rows.items() if rows}
    for half in range(2):
        parts = {key: table.take(pa.array(range(half, len(table), 2), pa.int64())) for key, table in tables.items()}
        graph.write({key: og.Append(part) for key, part in parts.items() if len(part)})
    again = {key: table.slice(0, 2) for key, table in tables.items()}
    extra = {key: table.slice(0, 1).set_column(0, "id", pa.array(["gone"])) for key, table in tables.items()}
    graph.write({key: og.Upsert(pa.concat_tables([again[key], extra[key].cast(again[key].schema)])) for key in tables})
    graph.write({key: og.Delete(("gone",)) for key in tables})
    return graph


def written(graph: og.Graph, tables: Rows) -> None:
    changes = {key: og.Append(_table(graph, key, rows)) for key, rows in tables.items() if rows}
    if changes:
        graph.write(changes)


def _table(graph: og.Graph, key: str, rows: Iterable[dict[str, object]]) -> pa.Table:
    schema = graph.catalog.arrow_schema(key)
    return pa.Table.from_pylist([{name: row.get(name) for name in schema.names} for row in rows], schema=schema)


def broken_promises(graphs: Mapping[str, og.Graph], asked: Callable[[Case], bool] = lambda _: True) -> list[str]:
    """The cases whose rows are not the expected ones, with what is wrong."""
    found = []
    for case in filter(asked, CASES):
        rows = graphs[case.scene.name].query(case.source, case.params).to_json()["rows"]
        wrong = misfit(case.query, case.expected, rows)
        if wrong is not None:
            found.append(f"{case}: {wrong}")
    return found
