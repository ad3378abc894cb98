"""A graph of the base schema with rows in every table, and a model of what each step makes of rows."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import omnigraph as og

Rows = dict[str, list[dict[str, Any]]]
"""By table key, each row with its id and, of an edge, its ends."""

LINES: tuple[dict[str, Any], ...] = (
    {"type": "Person", "data": {"handle": "ana", "name": "Ana", "age": 30, "nick": "an", "tier": "gold"}},
    {"type": "Person", "data": {"handle": "bo", "name": "Bo", "tier": "silver", "face": [1.0, 2.0]}},
    {"type": "Person", "data": {"handle": "cy", "name": "Cy", "age": 7, "tier": "gold"}},
    {"type": "Book", "data": {"isbn": "b1", "title": "One"}},
    {"type": "Book", "data": {"isbn": "b2", "title": "Two"}},
    {"type": "Shelf", "data": {"label": "top"}},
    {"edge": "Wrote", "from": "ana", "to": "b1", "data": {"id": "w1", "year": 1999}},
    {"edge": "Wrote", "from": "bo", "to": "b2", "data": {"id": "w2"}},
    {"edge": "Holds", "from": "top", "to": "b1", "data": {"id": "h1"}},
)


def load_lines(graph: og.Graph, folder: Path, lines: Iterable[Mapping[str, Any]], mode: Any = "append") -> None:
    file = folder / "rows.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    graph.load(file, mode=mode)


def exported(graph: og.Graph, **target: Any) -> list[dict[str, Any]]:
    text = b"".join(graph.export(**target)).decode()
    return [json.loads(line) for line in text.splitlines()]


def rows_of(graph: og.Graph, **target: Any) -> Rows:
    """Every row a reader sees; each type of the catalog has an entry."""
    found: Rows = {table.table_key: [] for table in graph.catalog.tables()}
    for line in exported(graph, **target):
        key = f"node:{line['type']}" if "type" in line else f"edge:{line['edge']}"
        ends = {end: line[end] for end in ("from", "to") if end in line}
        found[key].append({**ends, **line.get("data", {})})
    return found


def changed(rows: Rows, steps: Iterable[Mapping[str, Any]], *, old_commit: bool = False) -> Rows:
    """The rows after these steps, or what an old commit shows of them: nothing is filled in there."""
    found = {key: [dict(row) for row in kept] for key, kept in rows.items()}
    for step in steps:
        if step.get("type_kind") == "interface":
            continue
        match step["kind"]:
            case "add_type":
                found[f"{step['type_kind']}:{step['name']}"] = []
            case "drop_type":
                del found[f"{step['type_kind']}:{step['name']}"]
            case "rename_type":
                found[f"{step['type_kind']}:{step['to']}"] = found.pop(f"{step['type_kind']}:{step['from']}")
            case "add_property":
                value = None if old_commit else step.get("default")
                _each(found, step, lambda row, s=step, v=value: row.update({s["property_name"]: v}))
            case "drop_property":
                _each(found, step, lambda row, s=step: row.pop(s["property_name"]))
            case "rename_property":
                _each(found, step, lambda row, s=step: row.update({s["to"]: row.pop(s["from"])}))
    return found


def _each(rows: Rows, step: Mapping[str, Any], change: Any) -> None:
    for row in rows[f"{step['type_kind']}:{step['type_name']}"]:
        change(row)
