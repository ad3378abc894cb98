"""Applies, writers and readers in processes of their own: nothing acknowledged is lost, nobody reads a mixture."""

from __future__ import annotations

from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import pytest
from apply_scene import SCHEMA, leftovers, made, rows
from apply_workers import answer, apply_each, apply_once, drifted, insert_until, read_until

import omnigraph as og
from processes import FORKED

pytestmark = pytest.mark.slow
_ANSWER_S_MAX = 170


class Side:
    """One process at work beside the others."""

    def __init__(self, work: Any, *given: Any) -> None:
        self._answer: Connection
        self._answer, to = FORKED.Pipe(duplex=False)
        self._process = FORKED.Process(target=answer, args=(work, to, *given), daemon=True)
        self._process.start()
        to.close()

    def told(self) -> Any:
        assert self._answer.poll(_ANSWER_S_MAX), "no answer came"
        found = self._answer.recv()
        self._process.join()
        if isinstance(found, BaseException):
            raise found
        return found


def _chain() -> list[str]:
    """Schemas that each change the table of people: additions, renames there and back, drops."""
    person = "node Person {{ name: String @key  {0} }}\nnode City {{ name: String @key }}\n"
    person += "edge Knows: Person -> Person {{ since: I32? }}\n"
    bodies = [
        "age: I32? @index  note: String?  one: I32?",
        'age: I32? @index  note: String?  uno: I32? @rename_from("one")',
        "age: I32? @index  uno: I32?  two: Date?",
        'years: I32? @index @rename_from("age")  uno: I32?',
        'age: I32? @index @rename_from("years")  note: String?',
    ]
    return [person.format(body) for body in bodies]


def test_writers_and_readers_go_on_while_the_schema_changes(tmp_path: Path) -> None:
    graph = made(tmp_path / "g")
    writers = [Side(insert_until, graph.uri, name, 12) for name in ("x", "y")]
    reader, applier = Side(read_until, graph.uri, 40), Side(apply_each, graph.uri, _chain())
    met = applier.told()
    assert met.count("applied") == 5
    assert reader.told() == []
    acknowledged = {name for writer in writers for name in writer.told()}
    graph.refresh()
    assert {row["name"] for row in rows(graph, "node:Person")} == acknowledged | {"ana", "bo"}
    assert leftovers(graph) == []
    assert drifted(graph) == []


def test_of_two_applies_at_once_each_is_in_force_as_a_whole_or_refused(tmp_path: Path) -> None:
    graph = made(tmp_path / "g")
    wanted = {name: f"{SCHEMA}node {name} {{ name: String @key }}\n" for name in ("One", "Two", "Three")}
    sides = {name: Side(apply_once, graph.uri, source) for name, source in wanted.items()}
    met = {name: side.told() for name, side in sides.items()}
    applied = [name for name, how in met.items() if how == "applied"]
    assert applied
    refused = [how for how in met.values() if how != "applied"]
    assert all("already in progress" in how or "the schema changed meanwhile" in how for how in refused), refused
    again = og.Graph.open(graph.uri)
    (kept,) = [name for name in wanted if again.catalog.find_node(name) is not None]
    assert kept in applied
    assert again.schema().source == wanted[kept]
    assert sorted(again.snapshot().tables) == sorted(["edge:Knows", f"node:{kept}", "node:City", "node:Person"])
    assert leftovers(again) == []
