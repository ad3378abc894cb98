"""Processes that use a graph while it is looked at and mended, and one that dies while it mends."""

from __future__ import annotations

from typing import Any

from damage_scene import PERSON, foreign

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.settings import Settings

WRITES_MIN, WRITES_MAX = 24, 400


def mend_and_die(uri: str, settings: Settings, point: str, skip: int) -> None:
    failpoints.arm(point, failpoints.kill_now, skip)
    og.repair(uri, confirm=True, force=True, settings=settings)


def write_on(uri: str, settings: Settings, enough: Any, done: Any) -> None:
    """Commit until it is enough: rows, indexes, a branch that comes and goes; the names that were acknowledged."""
    graph = og.Graph.open(uri, settings=settings)
    acknowledged = []
    for number in range(WRITES_MAX):
        if number >= WRITES_MIN and enough.is_set():
            break
        name = f"live{number:03d}"
        graph.mutate(f'query add() {{ insert Person {{ name: "{name}", bio: "lively {number}" }} }}')
        acknowledged.append(name)
        if number % 5 == 2:
            graph.mutate(f'query gone() {{ delete Person where name = "{acknowledged.pop(0)}" }}')
        if number % 8 == 3:
            graph.ensure_indices()
        if number % 10 == 4:
            graph.branch_create(f"draft{number}")
            graph.mutate('query add() { insert Person { name: "aside" } }', branch=f"draft{number}")
            graph.branch_delete(f"draft{number}")
        if number % 12 == 6:
            graph.optimize()
        if number % 12 == 9:
            graph.cleanup(2, None, confirm=True)
    graph.close()
    done.put(acknowledged)


def meddle_on(uri: str, settings: Settings, _enough: Any, done: Any) -> None:
    """A writer beside a foreign tool: what it could commit."""
    graph = og.Graph.open(uri, settings=settings)
    acknowledged = []
    for number in range(WRITES_MIN):
        if number % 4 == 1:
            foreign(graph, PERSON).optimize.compact_files()
        try:
            graph.mutate(f'query add() {{ insert Person {{ name: "kept{number:03d}" }} }}')
        except (og.Drift, og.Conflict):
            continue
        acknowledged.append(f"kept{number:03d}")
    done.put(acknowledged)
