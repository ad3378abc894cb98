"""The verbs people use, as things a process can die in; and what a user can see of a graph before and after."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from omnigraph.base.failpoints import WINDOWS
from omnigraph.graph import Graph

SCHEMA = """
node Person { name: String @key  age: I32?  @index(age) }
node City { name: String @key }
edge Knows: Person -> Person
edge LivesIn: Person -> City @card(0..1)
"""
SEED = """query seed() {
  insert Person { name: "ana", age: 31 } insert Person { name: "bo", age: 7 } insert Person { name: "cy" }
  insert City { name: "oslo" }
  insert Knows { from: "ana", to: "bo" } insert Knows { from: "bo", to: "ana" }
  insert LivesIn { from: "ana", to: "oslo" }
}"""
ROWS: tuple[dict[str, Any], ...] = (
    {"type": "Person", "data": {"name": "di", "age": 44}},
    {"type": "City", "data": {"name": "rome"}},
    {"edge": "Knows", "from": "di", "to": "di", "data": {"id": "k1"}},
    {"edge": "LivesIn", "from": "di", "to": "rome", "data": {"id": "l1"}},
)
AGAIN: tuple[dict[str, Any], ...] = (*ROWS, {"type": "Person", "data": {"name": "ana", "age": 32}})
# What overwrites must keep whole: every edge still has its ends.
INSTEAD: tuple[dict[str, Any], ...] = (
    {"type": "Person", "data": {"name": "ana"}},
    {"type": "City", "data": {"name": "oslo"}},
    {"edge": "Knows", "from": "ana", "to": "ana", "data": {"id": "k2"}},
)
BAD: tuple[dict[str, Any], ...] = (*ROWS, {"type": "Person", "data": {"name": "x", "age": "old"}})


def _nothing(_graph: Graph) -> None:
    return


def _load(rows: tuple[dict[str, Any], ...], mode: str, **more: Any) -> Callable[[Graph], object]:
    def act(graph: Graph) -> object:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "rows.jsonl")
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(json.dumps(row) + "\n" for row in rows)
            return graph.load(path, mode=mode, **more)  # type: ignore[arg-type]

    return act


def _mutate(body: str, branch: str | None = None) -> Callable[[Graph], object]:
    return lambda graph: graph.mutate(f"query q() {{ {body} }}", branch=branch)


@dataclass(frozen=True)
class Verb:
    """`points` are where a process may die in it."""

    name: str
    act: Callable[[Graph], object]
    points: tuple[str, ...]
    prepare: Callable[[Graph], object] = _nothing
    branch: str = "main"


def _windows(writer: str) -> tuple[str, ...]:
    return tuple(f"{writer}.{window}" for window in WINDOWS)


_INSERT = 'insert Person { name: "di" } insert Knows { from: "di", to: "ana" }'
_FORKS = ("fork.post_create", "stage.files_written")
_CREATE: Callable[[Graph], object] = lambda graph: graph.branch_create("draft")  # noqa: E731
VERBS = {
    v.name: v
    for v in (
        Verb("insert", _mutate(_INSERT), _windows("mutation")),
        Verb("update", _mutate("update Person set { age: 8 } where age < 10"), _windows("mutation")),
        Verb("delete", _mutate('delete Person where name = "ana"'), _windows("mutation")),
        Verb("append", _load(ROWS, "append"), (*_windows("load"), *_windows("ensure_indices"), "stage.files_written")),
        Verb("merge", _load(AGAIN, "merge", index=False), _windows("load")),
        Verb("overwrite", _load(INSTEAD, "overwrite", index=False), _windows("load")),
        Verb("quarantine", _load(BAD, "append", on_error="quarantine", index=False), _windows("load")),
        Verb("ensure_indices", lambda graph: graph.ensure_indices(), _windows("ensure_indices"), _mutate(_INSERT)),
        Verb(
            "first_write",
            _mutate(_INSERT, "draft"),
            (*_windows("mutation"), *_FORKS),
            _CREATE,
            "draft",
        ),
        Verb(
            "load_on_new_branch",
            _load(ROWS, "append", branch="draft", from_branch="main", index=False),
            (*_windows("load"), *_FORKS, "branch_create.post_manifest"),
            branch="draft",
        ),
        Verb("branch_create", _CREATE, ("branch_create.post_manifest",), branch="draft"),
        Verb(
            "branch_delete",
            lambda graph: graph.branch_delete("draft"),
            ("branch_delete.pre_manifest", "branch_delete.post_manifest"),
            lambda graph: (_CREATE(graph), _mutate('insert Person { name: "di" }', "draft")(graph)),
            "draft",
        ),
    )
}


def build(uri: str) -> None:
    with Graph.init(uri, SCHEMA) as graph:
        graph.mutate(SEED)
        graph.ensure_indices()


def content(graph: Graph) -> dict[str, list[str]]:
    """Every branch as its export tells it; the ids of edges are made up anew each time, so they do not count."""
    return {name: sorted(map(_plain, b"".join(graph.export(branch=name)).splitlines())) for name in graph.branch_list()}


def _plain(line: bytes) -> str:
    told = json.loads(line)
    if "edge" in told:
        told["data"].pop("id")
    return json.dumps(told, sort_keys=True)
