"""The graphs of the cases are graphs: they load, and what comes back is what the evaluator reads."""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

import omnigraph as og
from read.case_scenes import SCENES, Scene
from read.naive_parts import stored
from read.row_lines import write_lines


@pytest.mark.parametrize("scene", [scene for scene in SCENES if scene.loadable], ids=lambda scene: scene.name)
def test_a_loaded_scene_holds_the_rows_the_evaluator_reads(scene: Scene, tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), scene.schema)
    graph.load(write_lines(tmp_path / "rows.jsonl", scene.rows), mode="append", index=False)

    assert exported(graph, scene) == {
        table.table_key: {row["id"]: read(table, row) for row in scene.rows.get(table.table_key, ())}
        for table in scene.catalog.tables()
    }


def exported(graph: og.Graph, scene: Scene) -> dict[str, dict[str, dict[str, object]]]:
    found: dict[str, dict[str, dict[str, object]]] = {table.table_key: {} for table in scene.catalog.tables()}
    for line in b"".join(graph.export()).splitlines():
        record = orjson.loads(line)
        key = f"node:{record['type']}" if "type" in record else f"edge:{record['edge']}"
        row = record["data"] | ({"src": record["from"], "dst": record["to"]} if "edge" in record else {})
        found[key][row["id"]] = read(scene.catalog.find_table(key), row)
    return found


def read(table, row):
    return {
        **{name: row[name] for name in ("id", "src", "dst") if name in row},
        **{known.name: stored(known.type, row.get(known.name)) for known in table.properties},
    }
