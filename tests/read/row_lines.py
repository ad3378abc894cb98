"""Rows of the read tests as a file that a load takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import orjson


def write_lines(path: Path, tables: Mapping[str, Sequence[Mapping[str, Any]]]) -> Path:
    """NDJSON of `{table_key: rows}`, nodes before edges; ids are given, so that answers can name them."""
    with open(path, "wb") as file:
        for table_key in sorted(tables, reverse=True):
            kind, name = table_key.split(":")
            for row in tables[table_key]:
                data = {key: value for key, value in row.items() if key not in ("src", "dst")}
                ends = {"from": row["src"], "to": row["dst"]} if kind == "edge" else {}
                file.write(orjson.dumps({"edge" if kind == "edge" else "type": name, **ends, "data": data}) + b"\n")
    return path
