"""Processes that make and delete tags and branches of the same few names, write, and clean up, all at once."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from travel_scene import add

import omnigraph as og

NAMES = ("a", "b", "c")


@dataclass
class Done:
    """What one process was told: names it saw as tag and branch at once, tags it made of its own, errors by class."""

    twins: list[str] = field(default_factory=list)
    own: dict[str, int] = field(default_factory=dict)
    made: dict[str, int] = field(default_factory=lambda: {"tag": 0, "branch": 0, "deleted": 0})
    errors: list[str] = field(default_factory=list)


def live(uri: str, number: int, rounds: int) -> Done:
    graph, chance, done = og.Graph.open(uri), random.Random(number), Done()
    for turn in range(rounds):
        name = chance.choice(NAMES)
        verb = chance.choice(("tag", "tag", "branch", "branch", "untag", "delete", "write", "own", "clean"))
        try:
            _act(graph, verb, name, f"w{number}-{turn}", done)
        except og.OmniError as error:
            done.errors.append(f"{verb}: {type(error).__name__}: {error}")
    return done


def _act(graph: og.Graph, verb: str, name: str, unique: str, done: Done) -> None:
    match verb:
        case "tag":
            graph.tag_create(name)
            done.made["tag"] += 1
        case "branch":
            graph.branch_create(name)
            done.made["branch"] += 1
        case "untag":
            graph.tag_delete(name)
            done.made["deleted"] += 1
        case "delete":
            graph.branch_delete(name)
            done.made["deleted"] += 1
        case "write":
            add(graph, unique)
        case "own":
            made = graph.tag_create(f"kept/{unique}")
            done.own[made.name] = graph.snapshot_of(made.graph_commit_id).tables["node:Person"].row_count
        case _:
            graph.cleanup(keep=1, confirm=True)
