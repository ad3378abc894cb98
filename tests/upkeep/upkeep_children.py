"""What the processes of these tests do."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import orjson
from upkeep_scene import WAIT_S, both

from graph_places import Home
from omnigraph.base import failpoints
from omnigraph.base.errors import ExpectedVersionMismatch, OmniError, Reclaimed
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import LOAD
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.staging import staging_heartbeat
from omnigraph.engine.write.changes import Annotations, plan_changes
from omnigraph.engine.write.retry import writable
from omnigraph.graph import Graph


def write_and_die(home: Home, point: str, branch: str | None, name: str) -> None:
    graph = home.open()
    failpoints.arm(point, failpoints.kill_now)
    graph.write(both(name), branch=branch)


def create_and_die(home: Home, point: str, branch: str) -> None:
    graph = home.open()
    failpoints.arm(point, failpoints.kill_now)
    graph.branch_create(branch)


def delete_and_die(home: Home, point: str, branch: str) -> None:
    graph = home.open()
    failpoints.arm(point, failpoints.kill_now)
    graph.branch_delete(branch)


def clean_and_die(home: Home, point: str) -> None:
    graph = home.open()
    failpoints.arm(point, failpoints.kill_now)
    graph.cleanup(1, confirm=True)


def load(home: Home, branch: str | None, name: str, times: dict[str, int], ready: Any, go: Any) -> None:
    """A bulk load as the loaders do it: a sign of life, staged files, and at last the commit."""
    graph = home.open(**times)
    ctx, operation, changes = graph.context, new_ulid(), both(name)
    with staging_heartbeat(ctx, operation, branch, "act-load") as beat:
        view = writable(ctx, graph.view(branch), changes)
        beat.pin(view)
        ctx.objects.put(f"{beat.folder}note.txt", b"mine")
        plan = plan_changes(view, changes, LOAD, Annotations("act-load"), operation)
        ready.set()
        go.wait(WAIT_S)
        commit_plan(ctx, plan)


def write_many(home: Home, number: int, rounds: int, done: Any) -> None:
    """Write to main and to one branch, and make and delete another one, until the rounds are over."""
    graph, chance, acknowledged = home.open(), random.Random(number), []
    own, fleeting = f"own{number}", f"fleeting{number}"
    graph.branch_create(own)
    for turn in range(rounds):
        branch = chance.choice([None, own, fleeting])
        name = f"w{number}-{turn}"
        try:
            if branch == fleeting:
                graph.branch_create(fleeting)
                graph.write(both(name), branch=fleeting)
                graph.branch_delete(fleeting)
            else:
                graph.write(both(name), branch=branch)
                acknowledged.append((branch, name))
        except ExpectedVersionMismatch:
            assert branch is None, "nobody else writes there"
        except OmniError as error:
            acknowledged.append(("error", f"{type(error).__name__}: {error}"))
    done.put(acknowledged)


def write_numbered(home: Home, commits: int, done: Any) -> None:
    """Commit number k, which its message tells, leaves rows 0 to k - 1 in both tables."""
    graph = home.open()
    try:
        for number in range(1, commits + 1):
            while not _landed(graph, number):
                pass
    finally:
        done.set()


def _landed(graph: Graph, number: int) -> bool:
    try:
        graph.write(both(f"n{number - 1:04d}"), message=str(number))
    except ExpectedVersionMismatch:
        return False  # another process compacted the table meanwhile
    return True


def keep_small(home: Home, done: Any, told: Any) -> None:
    """Optimize and clean up as often as there is time to."""
    graph, removed = home.open(), 0
    while not done.is_set():
        graph.optimize()
        removed += sum(t.old_versions_removed for t in graph.cleanup(2, confirm=True).tables)
    told.put(("removed", removed))


def read_commits(home: Home, seed: int, done: Any, told: Any) -> None:
    """Read commits of the near past in every way, and tell what was neither their rows nor that they are gone."""
    graph, chance = home.open("r"), random.Random(seed)
    counts = {"whole": 0, "gone": 0}
    while not done.is_set() or not counts["whole"]:
        near = [c for c in graph.list_commits()[:12] if c.message is not None]
        if not near:
            continue
        commit, way = chance.choice(near), chance.choice(sorted(WAYS))
        expected = [f"n{n:04d}" for n in range(int(commit.message or 0))]
        try:
            found = WAYS[way](graph, commit.graph_commit_id)
        except Reclaimed:
            counts["gone"] += 1
            continue
        except OmniError as error:
            told.put(("wrong", f"{way}: {type(error).__name__}: {error}"))
            return
        if found != expected:
            told.put(("wrong", f"{way} of commit {commit.message}: {found}"))
            return
        counts["whole"] += 1
    told.put(("read", counts))


def _exported(graph: Graph, commit: str) -> list[str]:
    lines = [orjson.loads(line) for part in graph.export(snapshot=commit) for line in part.splitlines()]
    assert len(lines) % 2 == 0, "as many of one type as of the other"
    return [line["data"]["name"] for line in lines if line["type"] == "Left"]


def _streamed(graph: Graph, commit: str) -> list[str]:
    found: list[str] = []
    for batch in graph.query(NAMES, snapshot=commit).to_batches():
        time.sleep(0.02)
        found += batch.column(0).to_pylist()
    return found


NAMES = "query q() { match { $x: Left } return { $x.name } order { $x.name } }"
WAYS: dict[str, Callable[[Graph, str], list[str]]] = {
    "query": lambda graph, commit: [row["x.name"] for row in graph.query(NAMES, snapshot=commit).rows],
    "stream": _streamed,
    "sql": lambda graph, commit: [
        row["name"] for row in graph.sql("select name from node_Left order by name", snapshot=commit).rows
    ],
    "export": _exported,
}
