"""A small graph to leave things behind in, and the processes that do."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pyarrow as pa

import omnigraph as og
from graph_places import Home, Place
from omnigraph.engine.upkeep.cleanup import cleanup
from omnigraph.engine.upkeep.decide import CLOCK_SLACK_US
from omnigraph.engine.upkeep.result import CleanupResult
from processes import FORKED

SCHEMA = """
node Left { name: String @key }
node Right { name: String @key }
"""
NOW = timedelta(0)
WAIT_S = 200


def rows(*names: str) -> pa.Table:
    return pa.table({"id": list(names), "name": list(names)})


def both(*names: str) -> dict[str, og.Append]:
    return {"node:Left": og.Append(rows(*names)), "node:Right": og.Append(rows(*names))}


def ids(graph: og.Graph, branch: str | None = None, table_key: str = "node:Left") -> list[str]:
    return sorted(graph.view(branch).table(table_key).read(["id"]).column("id").to_pylist())


def sweep(home: Home, grace: timedelta = NOW, confirm: bool = True, **more: Any) -> CleanupResult:
    """A cleanup that keeps every commit; `grace` is how old staged files must be."""
    return cleanup(home.open(**more).context, 1_000_000, None, confirm, grace)


def removed(result: CleanupResult, what: str | None = None) -> list[str]:
    return sorted(r.path for r in result.orphans_removed if what in (None, r.what))


def kept(result: CleanupResult) -> dict[str, str]:
    return {k.path: k.reason for k in result.orphans_kept}


def grow_old(place: Place, uri: str) -> None:
    """Let every file there is be older than the slack that cleanup grants clocks."""
    if place.name == "disk":
        for name in place.listing(uri):
            path = os.path.join(uri, name)
            os.utime(path, (os.stat(path).st_mtime - 3_600,) * 2)
    else:
        outlast_slack()


def outlast_slack() -> None:
    """Wait until what is written by now is older than the slack; no event tells of that."""
    time.sleep(CLOCK_SLACK_US / 1_000_000 + 1.1)


def until(told: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + WAIT_S
    while not told():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def die(worker: Callable[..., None], *arguments: Any) -> None:
    """Run a process that kills itself at the failpoint it armed."""
    process = FORKED.Process(target=worker, args=arguments)
    process.start()
    process.join(WAIT_S)
    assert process.exitcode == -9, f"{worker.__name__} ended with {process.exitcode}"


@contextmanager
def running(worker: Callable[..., None], *arguments: Any) -> Iterator[tuple[Any, Any, Any]]:
    """A process with two events, `ready` that it sets and `go` that it waits for; it is ended with the block."""
    ready, go = FORKED.Event(), FORKED.Event()
    process = FORKED.Process(target=worker, args=(*arguments, ready, go))
    process.start()
    try:
        yield process, ready, go
    finally:
        if process.is_alive():
            process.kill()
        process.join(WAIT_S)


def event() -> Any:
    return FORKED.Event()
