"""Writers and readers while the schema changes under them: nothing acknowledged is lost, nothing half is seen."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

import omnigraph as og

FIRST = "node A { k: String @key  x: I32 }\n"
# Each is applied in turn; together they touch every column and the name of the table.
CHAIN = (
    "node A { k: String @key  x: I32  y: I32? }\n",
    'node A { k: String @key  z: I32 @rename_from("x")  y: I32? }\n',
    "node A { k: String @key  z: I32  y: I32?  w: I32 @default(5) }\n",
    "node A { k: String @key  z: I32  y: I32? @index  w: I32 }\nnode B { k: String @key }\n",
    "node A { k: String @key  z: I32 }\nnode B { k: String @key }\n",
    'node A { k: String @key  x: I32 @rename_from("z") }\n',
)
ROUNDS = 2


class Crew:
    """Threads that work until the first is done; what went wrong in any of them is raised at the end."""

    def __init__(self) -> None:
        self.done = threading.Event()
        self.failures: list[BaseException] = []
        self.threads: list[threading.Thread] = []

    def send(self, work: Callable[[], None], *, leads: bool = False) -> None:
        def run() -> None:
            try:
                work()
            except BaseException as error:
                self.failures.append(error)
            finally:
                if leads or self.failures:
                    self.done.set()

        self.threads.append(threading.Thread(target=run))

    def join(self) -> None:
        for thread in self.threads:
            thread.start()
        for thread in self.threads:
            thread.join(150)
        assert not any(thread.is_alive() for thread in self.threads)
        if self.failures:
            raise self.failures[0]


def written(graph: og.Graph, id: str, number: int) -> bool:
    """Insert a row under the names of now; False when the schema moved on between looking and writing."""
    named = {prop.name for prop in graph.catalog.nodes[0].properties}
    value = "x" if "x" in named else "z"
    more = f", w: {number}" if "w" in named else ""
    try:
        graph.mutate(f'query q() {{ insert A {{ k: "{id}", {value}: {number}{more} }} }}')
    except (og.TypeCheckError, og.Conflict, og.InvalidData):
        return False
    return True


@pytest.mark.slow
def test_rows_written_while_the_schema_changes_are_all_there_in_the_end(tmp_path: Path) -> None:
    uri = str(tmp_path / "graph")
    og.Graph.init(uri, FIRST)
    crew, kept, refused, seen = Crew(), {}, [0], set()

    def apply() -> None:
        graph = og.Graph.open(uri)
        for _ in range(ROUNDS):
            for source in CHAIN:
                assert graph.schema_apply(source).applied

    def write(name: str) -> None:
        graph, number = og.Graph.open(uri), 0
        while not crew.done.is_set():
            number += 1
            if written(graph, f"{name}{number}", number):
                kept[f"{name}{number}"] = number
            else:
                refused[0] += 1

    def read() -> None:
        graph = og.Graph.open(uri, "r")
        while not crew.done.is_set():
            catalog, rows = graph.catalog, graph.sql("select * from node_A").rows
            seen.add(len(catalog.nodes))
            for row in rows:
                value = row.get("x", row.get("z"))
                assert int(row["k"][1:]) == value, f"the value of another row, or none: {row}"

    crew.send(apply, leads=True)
    crew.send(lambda: write("p"))
    crew.send(lambda: write("q"))
    crew.send(read)
    crew.join()
    graph = og.Graph.open(uri)
    rows = {row["k"]: row["x"] for row in graph.sql("select k, x from node_A").rows}
    assert rows == kept
    assert len(kept) > ROUNDS
    assert seen
    assert len(graph.list_commits(kind="schema_apply")) == ROUNDS * len(CHAIN)
