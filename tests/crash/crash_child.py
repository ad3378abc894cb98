"""One life of a process: it carries out one order, writes to a graph or opens it, and usually dies at an armed point.

`crash_children` starts it. What it says survives its death.
"""

from __future__ import annotations

import os
import sys
from multiprocessing.connection import Connection
from typing import Any

from crash_schemas import REMODELS
from crash_verbs import VERBS
from crash_world import EFFECTS, TABLES, plan_of, rows_of

from omnigraph.base import failpoints
from omnigraph.commit.plan import MUTATION, OPTIMIZE
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.write.changes import Compact, Upsert
from omnigraph.graph import Graph
from omnigraph.settings import Settings


def say(*words: str) -> None:
    os.write(1, (" ".join(words) + "\n").encode())


def opened(order: dict[str, Any]) -> Graph:
    return Graph.open(order["path"], settings=Settings(**order["settings"]))


def write(order: dict[str, Any]) -> None:
    graph = opened(order)
    plan = plan_of(graph, EFFECTS[order["effect"]], order["tables"], order["operation_id"])
    say("planned", plan.graph_commit_id)
    receipt = commit_plan(graph.context, plan)
    say("acknowledged", receipt.graph_commit_id)


def write_for_ever(order: dict[str, Any]) -> None:
    """Give the row p0 of every table the number of the write, compact now and then, until somebody kills us."""
    graph = opened(order)
    for number in range(1, 1_000_000):
        say("begun", str(number))
        graph.write({t: Upsert(rows_of(t, ["p0"], "loop", number)) for t in TABLES}, writer=MUTATION)
        say("acknowledged", str(number))
        if number % 3 == 0:
            graph.write({t: Compact() for t in TABLES}, writer=OPTIMIZE)


def use_verb(order: dict[str, Any]) -> None:
    VERBS[order["verb"]].act(opened(order))
    say("acknowledged", order["verb"])


def apply_schema(order: dict[str, Any]) -> None:
    REMODELS[order["remodel"]].act(opened(order))
    say("acknowledged", order["remodel"])


def live(order: dict[str, Any], said: Connection, complaints: str) -> None:
    """The process: its words go to `said`, its complaints to a file."""
    os.dup2(said.fileno(), 1)
    said.close()
    with open(complaints, "wb", buffering=0) as file:
        os.dup2(file.fileno(), 2)
    sys.stderr = open(2, "w", buffering=1, closefd=False)  # noqa: SIM115
    die = failpoints.kill_now if order["how"] == "kill" else failpoints.exit_now
    if order.get("fail_at"):
        failpoints.arm(order["fail_at"], failpoints.fail)
    failpoints.arm(order["die_at"], die, order.get("skip", 0))
    acts = {"write": write, "loop": write_for_ever, "open": opened, "verb": use_verb, "apply": apply_schema}
    acts[order["does"]](order)
    failpoints.reach("the_end")
