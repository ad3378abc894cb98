"""Bulk loads of several drivers and small writes meet on one branch: nothing is lost, doubled or starved."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from bulk_drivers import Driver, Drivers
from bulk_scene import Origin, check_rows, content, knows, person, staging, sweep, table_files, until, write_lines

import omnigraph as og

pytestmark = [pytest.mark.spark, pytest.mark.slow]

_SMALL_WRITES_MAX = 400
TABLES = ["edge:Knows", "node:Person"]


class SmallWrites:
    """One-row writes that go on, each the next after the one before; `landed` are those that were acknowledged."""

    def __init__(self, uri: str) -> None:
        self._graph = og.Graph.open(uri)
        self._stopped = threading.Event()
        self.landed: list[str] = []
        self.errors: list[Exception] = []

    def run(self) -> None:
        try:
            for number in range(_SMALL_WRITES_MAX):
                if self._stopped.is_set():
                    return
                name = f"small{number}"
                edge = f'insert Knows {{ from: "{name}", to: "p0" }}' if number % 2 else ""
                self._graph.mutate(f'query q() {{ insert Person {{ name: "{name}", age: 7 }} {edge} }}')
                self.landed.append(name)
        except Exception as error:  # told by the test, whose thread this is not
            self.errors.append(error)

    @contextmanager
    def going_on(self) -> Iterator[SmallWrites]:
        thread = threading.Thread(target=self.run)
        thread.start()
        try:
            yield self
        finally:
            self._stopped.set()
            thread.join()
        assert self.errors == []


def small_rows(names: list[str]) -> list[tuple[str, ...]]:
    edges = [("Knows", name, "p0") for name in names if int(name.removeprefix("small")) % 2]
    return sorted([("Person", name, "7") for name in names] + edges)


def seen(graph: og.Graph) -> list[tuple[str, ...]]:
    """Every row as what it is and who it is about; ids of edges are made up."""
    found = []
    for line in content(graph):
        row = json.loads(line)
        if "edge" in row:
            found.append(("Knows", row["from"], row["to"]))
        else:
            found.append(("Person", row["data"]["name"], str(row["data"]["age"])))
    return sorted(found)


def as_seen(rows: list[dict[str, Any]]) -> list[tuple[str, ...]]:
    return sorted(
        ("Knows", r["from"], r["to"]) if "edge" in r else ("Person", r["data"]["name"], str(r["data"]["age"]))
        for r in rows
    )


def begin(driver: Driver, uri: str, file: Path | str, mode: str, gate: Path) -> None:
    """A load that stops when its first table is staged, until the gate opens."""
    folder = gate / f"{driver.process.pid}"
    folder.mkdir()
    driver.order(graph=uri, file=str(file), mode=mode, wait_at="stage.files_written", wait_in=str(folder))


def let_go(*drivers: Driver, gate: Path) -> None:
    for driver in drivers:
        until((gate / f"{driver.process.pid}" / "reached").exists, "the load did not come to stage")
    for driver in drivers:
        (gate / f"{driver.process.pid}" / "open").touch()


def some_people(letter: str, count: int) -> list[dict[str, Any]]:
    people = [person(f"{letter}{n}", n) for n in range(count)]
    return people + [{**knows(n, f"{letter}{n}", "p1", n), "data": {"id": f"{letter}-{n}"}} for n in range(count // 2)]


def test_two_drivers_and_a_small_writer_append_what_each_has_and_all_of_it_lands_once(
    origin: Origin, drivers: Drivers, graph_uri: str, gate: Path
) -> None:
    one, other, before = drivers.take(), drivers.take(), seen(og.Graph.open(graph_uri))
    rows = {driver: some_people(letter, 120) for driver, letter in ((one, "a"), (other, "b"))}
    for driver, mine in rows.items():
        begin(driver, graph_uri, write_lines(gate / f"{driver.process.pid}.jsonl", mine), "append", gate)
    with SmallWrites(graph_uri).going_on() as small:
        let_go(one, other, gate=gate)
        answers = [one.answer(), other.answer()]
    assert [told.get("staged") for told in answers] == [TABLES, TABLES], "each row was staged once"
    assert all("done" in told for told in answers)
    whole = [*before, *as_seen(rows[one]), *as_seen(rows[other]), *small_rows(small.landed)]
    assert seen(og.Graph.open(graph_uri)) == sorted(whole)


def test_the_same_keys_appended_by_three_have_one_winner(
    origin: Origin, drivers: Drivers, graph_uri: str, gate: Path
) -> None:
    one, other = drivers.take(), drivers.take()
    for driver in (one, other):
        begin(driver, graph_uri, origin.file("append"), "append", gate)
    outcomes: list[str] = []

    def embedded() -> None:
        try:
            og.Graph.open(graph_uri).load(origin.file("append"), mode="append", engine="embedded", index=False)
            outcomes.append("done")
        except og.OmniError as error:
            outcomes.append(type(error).__name__)

    third = threading.Thread(target=embedded)
    let_go(one, other, gate=gate)
    third.start()
    answers = [one.answer(), other.answer()]
    third.join()
    outcomes += ["done" if "done" in told else told["error"] for told in answers]
    assert sorted(outcomes) == ["KeyConflict", "KeyConflict", "done"], answers
    check_rows(og.Graph.open(graph_uri), origin.after("append"))
    assert staging(graph_uri) == set()
    sweep(graph_uri)
    check_rows(og.Graph.open(graph_uri), origin.after("append"))


def test_merges_that_overlap_leave_each_row_as_the_last_commit_wrote_it(
    origin: Origin, drivers: Drivers, graph_uri: str, gate: Path
) -> None:
    one, other = drivers.take(), drivers.take()
    ages = {name: int(age) for kind, name, age in seen(og.Graph.open(graph_uri)) if kind == "Person"}
    bring = {
        one: {f"p{n}": 101 for n in range(100, 220)},
        other: {f"p{n}": 102 for n in range(180, 320)},
    }
    for driver, people in bring.items():
        rows = [{"type": "Person", "data": {"name": name, "age": age}} for name, age in people.items()]
        begin(driver, graph_uri, write_lines(gate / f"{driver.process.pid}.jsonl", rows), "merge", gate)
    for driver in bring:
        until((gate / f"{driver.process.pid}" / "reached").exists, "the load did not come to stage")
    # Rows that both, one and none of the merges replace are changed while these hold what they staged.
    graph = og.Graph.open(graph_uri)
    for name in ("p200", "p110", "p310", "p5"):
        verb = "update Person set { age: 55 } where name = " if name in ages else "insert Person "
        body = f'{verb}"{name}"' if name in ages else f'{verb}{{ name: "{name}", age: 55 }}'
        graph.mutate(f"query q() {{ {body} }}")
        ages[name] = 55
    let_go(one, other, gate=gate)
    told = {driver: driver.answer() for driver in bring}
    assert all("done" in answer for answer in told.values()), told

    order = [commit.graph_commit_id for commit in og.Graph.open(graph_uri).list_commits()][::-1]
    for driver in sorted(bring, key=lambda d: order.index(told[d]["done"]["commit"])):
        ages |= bring[driver]
    now = og.Graph.open(graph_uri)
    found = [(name, int(age)) for kind, name, age in seen(now) if kind == "Person"]
    assert found == sorted(ages.items())
    assert now.snapshot().tables["node:Person"].row_count == len(ages)


@pytest.mark.parametrize("mode", ["append", pytest.param("merge", marks=pytest.mark.full)])
def test_a_bulk_load_is_not_starved_by_small_writes_and_stages_once(
    mode: str, origin: Origin, drivers: Drivers, graph_uri: str, gate: Path
) -> None:
    before, driver = table_files(graph_uri), drivers.take()
    stored = as_seen([json.loads(line) for line in origin.after(mode)])
    with SmallWrites(graph_uri).going_on() as small:
        until(lambda: small.landed, "no small write landed")
        begin(driver, graph_uri, origin.file(mode), mode, gate)
        until((gate / f"{driver.process.pid}" / "reached").exists, "the load did not come to stage")
        behind = len(small.landed)
        until(lambda: len(small.landed) > behind + 3, "small writes wait for a load that only stages")
        let_go(driver, gate=gate)
        told = driver.answer()
    assert "done" in told, told
    assert told["staged"] == TABLES, "what was staged once was used again"
    assert seen(og.Graph.open(graph_uri)) == sorted([*stored, *small_rows(small.landed)])
    sweep(graph_uri)
    kept = {name.rpartition("/")[2] for name in table_files(graph_uri)}
    assert len(told["fragments"]) > len(TABLES)
    assert set(told["fragments"]) <= kept, "a fragment was staged and not used"
    assert before <= table_files(graph_uri)
