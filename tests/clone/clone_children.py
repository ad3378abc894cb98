"""What the processes of these tests do."""

from __future__ import annotations

from typing import Any

from clone_scene import WAIT_S, clone, people

import omnigraph as og
from graph_places import Home
from omnigraph.base import failpoints
from omnigraph.base.errors import OmniError
from omnigraph.engine.upkeep.cleanup import cleanup


def clone_and_die(source: Home, target: Home, point: str, skip: int = 0) -> None:
    failpoints.arm(point, failpoints.kill_now, skip)
    clone(source, target)


def clone_and_wait(source: Home, target: Home, point: str, ready: Any, go: Any, told: Any) -> None:
    """Stop at a point until somebody says go; then tell how it ended."""

    def wait() -> None:
        ready.set()
        go.wait(WAIT_S)

    failpoints.arm(point, wait)
    try:
        done = clone(source, target)
        told.put(("cloned", [branch.name for branch in done.branches]))
    except OmniError as error:
        told.put((type(error).__name__, str(error)))


def count_up(home: Home, branch: str | None, stop: Any, told: Any) -> None:
    """Give two tables the number of the write, again and again; the last number that was acknowledged is told."""
    graph, number = home.open(), 0
    while not stop.is_set():
        number += 1
        row = people("counter", age=number)
        graph.load_frames({"Person": row, "Twin": row}, mode="merge", branch=branch, index=number % 5 == 0)
        told[branch or "main"] = number


def come_and_go(home: Home, stop: Any) -> None:
    """Make a branch, write on it, delete it."""
    graph = home.open()
    while not stop.is_set():
        graph.branch_create("fleeting")
        graph.load_frames({"Person": people("guest")}, mode="merge", branch="fleeting", index=False)
        graph.branch_delete("fleeting")


def clean_up(home: Home, stop: Any) -> None:
    """Keep as little as a cleanup may."""
    graph = home.open()
    while not stop.is_set():
        try:
            cleanup(graph.context, 1, None, True)
        except og.Conflict:
            continue
