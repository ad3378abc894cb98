"""Compaction spread over executors gives the same tables as one process does."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from index_answers import disagreements

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCHEMA = """
node Person { name: String @key  age: I32? @index  bio: String? @index  v: Vector(2)? @index  photo: Blob? }
edge Knows: Person -> Person
"""


def in_pieces(graph: og.Graph, folder: Path, first: int, branch: str | None = None) -> None:
    for piece in range(3):
        numbers = range(first + 10 * piece, first + 10 * piece + 5)
        path = folder / "rows.jsonl"
        rows: list[dict[str, Any]] = [
            {"type": "Person", "data": {"name": f"p{n}", "age": n, "bio": f"w{n}", "v": [1, n], "photo": "base64:aGk="}}
            for n in numbers
        ]
        rows += [{"edge": "Knows", "from": f"p{n}", "to": f"p{n}", "data": {"id": f"k{n}"}} for n in numbers]
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        graph.load(path, mode="append", branch=branch, index=piece == 0, engine="embedded")
    graph.mutate(f'query q() {{ delete Person where name = "p{first + 1}" }}', branch=branch)


def shown(graph: og.Graph) -> dict[str, Any]:
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found: dict[str, Any] = {}
    for branch in graph.branch_list():
        view = graph.view(branch)
        for key in view.entries:
            rows = view.table(key).dataset.to_table(columns=columns)
            found[f"{branch} {key}"] = rows.to_pylist(), view.table(key).fragment_count(), view.entry(key).table_version
        found[branch] = b"".join(graph.export(branch=branch))
    return found


def test_executors_and_one_process_leave_equal_tables_on_main_and_on_a_fork(spark: Any, tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "spread"), SCHEMA)
    in_pieces(graph, tmp_path, 0)
    shutil.copytree(graph.uri, tmp_path / "one")
    one = og.Graph.open(str(tmp_path / "one"))
    for each, engine in ((one, "embedded"), (graph, "spark")):
        assert each.optimize(engine=engine).commit is not None
        each.branch_create("draft")
        in_pieces(each, tmp_path, 100, "draft")
        assert each.optimize("draft", engine=engine).commit is not None
        assert disagreements(each) == []
        assert each.optimize("draft", engine=engine).commit is None
    assert shown(graph) == shown(one)
