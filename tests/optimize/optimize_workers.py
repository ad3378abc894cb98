"""Processes that write, optimize and read one graph at once; imported by name."""

from __future__ import annotations

import time
from pathlib import Path

import omnigraph as og
from index_answers import table_disagreements

P = "node:Person"
COMMITS_BETWEEN = 4
TRIES_MAX = 500


def write(uri: str, writer: int, turns: int, branch: str) -> set[str]:
    """Insert people with edges, change some and delete some; the names that must be there at the end."""
    graph, left = og.Graph.open(uri), set()
    for turn in range(turns):
        name = f"w{writer}-{turn}"
        body = f'insert Person {{ name: "{name}", age: {turn} }} insert Knows {{ from: "{name}", to: "{name}" }}'
        graph.mutate(f"query q() {{ {body} }}", branch=branch)
        left.add(name)
        if turn % 3 == 2:
            _delete(graph, f"w{writer}-{turn - 1}", branch)
            left.discard(f"w{writer}-{turn - 1}")
    return left


def _delete(graph: og.Graph, name: str, branch: str) -> None:
    """What depends on what it read loses to whoever was first, an optimize included, and says so."""
    for _ in range(TRIES_MAX):
        try:
            graph.mutate(f'query q() {{ delete Person where name = "{name}" }}', branch=branch)
            return
        except og.ExpectedVersionMismatch:
            continue
    raise AssertionError(f"{name} could not be deleted")


def optimize(uri: str, branch: str, stop: str) -> list[str]:
    """Optimize whenever some commits came, until told to stop; the commits that came of it."""
    graph, commits, seen = og.Graph.open(uri), [], 0
    while not Path(stop).exists():
        now = graph.snapshot(branch).version
        if now < seen + COMMITS_BETWEEN:
            time.sleep(0.02)
            continue
        done = graph.optimize(branch)
        seen = now
        assert not [t for t in done.tables if t.skipped is not None], done
        if done.commit is not None:
            commits.append(done.commit)
    return commits


def read(uri: str, branches: list[str], stop: str) -> tuple[int, list[str]]:
    """Look at every head: how often, and where an index and a scan did not agree."""
    graph, looks, wrong = og.Graph.open(uri, "r"), 0, []
    seen: set[tuple[str, int]] = set()
    while not Path(stop).exists():
        for branch in branches:
            table = graph.view(branch).table(P)
            if (branch, table.version) in seen:
                time.sleep(0.02)
                continue
            seen.add((branch, table.version))
            wrong += [f"{branch} v{table.version}: {each}" for each in table_disagreements(table)]
            looks += 1
    return looks, wrong
