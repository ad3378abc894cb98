"""Programs that the recovery tests run as processes of their own; the first argument names one."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from multiprocessing.connection import Connection
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "crash"))

from crash_world import EFFECTS, TABLES, build_graph, heads, pending_files, pins, plan_of, rows_of, seen

from omnigraph.base import failpoints
from omnigraph.base.errors import OmniError
from omnigraph.base.ids import new_ulid
from omnigraph.commit.locks import FileLocks
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.write.changes import Append, Upsert
from omnigraph.graph import Graph


def hold(path: str) -> None:
    """Hold the lock of main until killed."""
    with FileLocks(path, 1000).hold(None):
        print("held", flush=True)
        time.sleep(600)


def interrupted(path: str, point: str, number: int, times: int, operation_id: str, said: Connection) -> None:
    """Write, and get a signal at a point of the write, possibly more than once. Forked, so no program by itself."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    graph = Graph.open(path)

    def send() -> None:
        for _ in range(times):
            os.kill(os.getpid(), number)

    failpoints.arm(point, send)
    try:
        commit_plan(graph.context, plan_of(graph, EFFECTS["upsert"], TABLES, operation_id))
        said.send("returned")
    except KeyboardInterrupt:
        sys.exit(130)


def _mount(path: str, *options: str) -> None:
    subprocess.run(["mount", *options, path], check=True)


def _fill(path: str, leave: int) -> None:
    """Take all space of the file system but `leave` bytes."""
    with open(f"{path}/ballast", "wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError as error:
            if error.errno != errno.ENOSPC:
                raise
    os.truncate(f"{path}/ballast", max(0, os.path.getsize(f"{path}/ballast") - leave))


def full_disk(place: str, *leave: str) -> None:
    """On a small file system: write with so many bytes left, then free the space and look."""
    _mount(place, "-t", "tmpfs", "-o", "size=8m", "none")
    path = f"{place}/graph"
    build_graph(path)
    for room in map(int, leave):
        graph = Graph.open(path)
        before, operation_id = seen(graph), new_ulid()
        _fill(place, room)
        told = "committed"
        try:
            plan = plan_of(graph, EFFECTS["upsert"], TABLES, operation_id)
            commit_plan(graph.context, plan)
        except OmniError as error:
            told = f"{type(error).__name__}:{error.kind.value}"
        readable = seen(Graph.open(path, "r")) == before
        os.unlink(f"{place}/ballast")
        reopened = Graph.open(path)
        now = seen(reopened)
        names = {dict(row)["name"] for t in TABLES for row in now[t].rows if ("id", "p1") in row}
        found = {
            "room": room,
            "told": told,
            "readable": readable,
            "shows": "before" if now == before else "after" if names == {"new p1"} else f"between: {names}",
            "status": reopened.operation(operation_id).status,
            "pending": pending_files(path),
            "converged": heads(reopened) == pins(reopened),
        }
        reopened.write({t: Upsert(rows_of(t, ["p1"], "put back")) for t in TABLES})
        print(json.dumps(found), flush=True)


def read_only(place: str) -> None:
    """Make the file system of a graph read-only below an open handle."""
    _mount(place, "-t", "tmpfs", "-o", "size=8m", "none")
    path = f"{place}/graph"
    build_graph(path)
    graph = Graph.open(path)
    _mount(place, "-o", "remount,ro")
    for attempt in (
        lambda: graph.write({t: Append(rows_of(t, ["next"], "next")) for t in TABLES}),
        lambda: Graph.open(path),
        lambda: Graph.init(f"{place}/other", "node A { x: I64? }"),
    ):
        try:
            attempt()
            print("done", flush=True)
        except OmniError as error:
            print(f"{type(error).__name__}:{error.kind.value}:{error.hint}", flush=True)
    print(sum(len(t.rows) for t in seen(Graph.open(path, "r")).values()), flush=True)


if __name__ == "__main__":
    programs = {"hold": hold, "full_disk": full_disk, "read_only": read_only}
    signal.signal(signal.SIGINT, signal.default_int_handler)
    programs[sys.argv[1]](*sys.argv[2:])
