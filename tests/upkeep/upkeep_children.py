"""What the processes of these tests do."""

from __future__ import annotations

import random
from typing import Any

from upkeep_scene import WAIT_S, both

from graph_places import Home
from omnigraph.base import failpoints
from omnigraph.base.errors import ExpectedVersionMismatch, OmniError
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import LOAD
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.staging import staging_heartbeat
from omnigraph.engine.write.changes import Annotations, plan_changes
from omnigraph.engine.write.retry import writable


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
