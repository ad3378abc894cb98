"""The graph that bulk loads change, the rows they bring, and what a user can see of it before and after."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import omnigraph as og
from omnigraph.engine.upkeep.cleanup import cleanup
from omnigraph.engine.upkeep.result import CleanupResult

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique  @range(age, 0..150) }
edge Knows: Person -> Person { since: I32? }
"""
MODES = ("append", "merge", "overwrite")
WAIT_S = 200


def person(name: str, age: int) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "age": age % 150, "email": f"{name}@{age}"}}


def knows(number: int, one: str, other: str, since: int) -> dict[str, Any]:
    return {"edge": "Knows", "from": one, "to": other, "data": {"id": f"k{number}", "since": since}}


def stored_rows(size: int) -> list[dict[str, Any]]:
    people = [person(f"p{n}", n) for n in range(size)]
    return people + [knows(n, f"p{n}", f"p{(n * 7) % size}", n) for n in range(size // 2)]


def rows_for(mode: str, size: int) -> list[dict[str, Any]]:
    """As many rows again: all new, half of them new, or all that there shall be."""
    first = {"append": size, "merge": size // 2, "overwrite": 0}[mode]
    people = [person(f"p{n}", n + 1) for n in range(first, first + size)]
    edges = [knows(n // 2, f"p{n}", f"p{first}", n) for n in range(first, first + size, 2)]
    rows = people + edges
    # Rows of both kinds all over the file, so that each piece of it has some.
    return [row for part in range(5) for row in rows[part::5]]


def write_lines(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def content(graph: og.Graph) -> list[str]:
    return sorted(line.decode() for part in graph.export() for line in part.splitlines())


@dataclass
class Origin:
    """A graph that is only copied, the input of each mode, and what one process alone makes of them."""

    folder: Path
    size: int
    before: list[str] = field(default_factory=list)
    afters: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        graph = og.Graph.init(str(self.folder / "origin"), SCHEMA)
        graph.load(write_lines(self.folder / "stored.jsonl", stored_rows(self.size)), mode="append", engine="embedded")
        self.before = content(graph)

    def file(self, mode: str) -> str:
        path = self.folder / f"{mode}.jsonl"
        return str(path if path.exists() else write_lines(path, rows_for(mode, self.size)))

    def after(self, mode: str) -> list[str]:
        if mode not in self.afters:
            graph = og.Graph.open(self.copy(self.folder / f"after-{mode}"))
            graph.load(self.file(mode), mode=mode, engine="embedded", index=False)
            self.afters[mode] = content(graph)
        return self.afters[mode]

    def copy(self, to: Path) -> str:
        return str(shutil.copytree(self.folder / "origin", to))


def check_rows(graph: og.Graph, expected: list[str]) -> None:
    """Every row exactly once: the counts, the ids, a sum over the values, and then each row."""
    told = [json.loads(line) for line in expected]
    for key, kind, name, number in (("node:Person", "type", "Person", "age"), ("edge:Knows", "edge", "Knows", "since")):
        wanted = [row["data"] for row in told if row.get(kind) == name]
        table = graph.view().table(key).read(["id", number])
        assert graph.snapshot().tables[key].row_count == table.num_rows == len(wanted)
        assert len(set(table["id"].to_pylist())) == len(wanted)
        assert sum(table[number].to_pylist()) == sum(row[number] for row in wanted)
    assert content(graph) == expected


def files_of(uri: str) -> set[str]:
    return {os.path.relpath(os.path.join(at, name), uri) for at, _, names in os.walk(uri) for name in names}


def staging(uri: str) -> set[str]:
    return {name for name in files_of(uri) if name.startswith("__staging/")}


def table_files(uri: str) -> set[str]:
    return {n for n in files_of(uri) if n.startswith(("nodes/", "edges/")) and ("/data/" in n or "/_deletions/" in n)}


def sweep(uri: str, **settings: Any) -> CleanupResult:
    """A cleanup for which everything there is has been lying about for an hour; every commit is kept."""
    for name in files_of(uri):
        path = os.path.join(uri, name)
        os.utime(path, (os.stat(path).st_mtime - 3_600,) * 2)
    return cleanup(og.Graph.open(uri, **settings).context, 1_000_000, None, True, timedelta(0))


def until(told: Callable[[], Any], what: str) -> Any:
    deadline = time.monotonic() + WAIT_S
    while not (found := told()):
        assert time.monotonic() < deadline, what
        time.sleep(0.01)
    return found
