"""Several processes merge into one branch at once: each merge happens once, nothing is lost, nothing is torn."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from merge_scene import mutate, new_graph, people, person, rows_of

import omnigraph as og

ROUNDS, WRITERS = 4, 3

CHILD = """
import sys
import omnigraph as og
uri, name, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
graph = og.Graph.open(uri, settings=og.Settings(storage_durability="os"))
lost = 0
for k in range(rounds):
    graph.mutate(f'query q() {{ insert Person {{ name: "{name}-{k}", a: {k} }} }}', branch=name)
    while True:
        try:
            done = graph.branch_merge(name, message=f"{name}-{k}")
            break
        except (og.ExpectedVersionMismatch, og.RowLevelCasContention):
            lost += 1
            if lost > 200:
                raise
print(done.outcome, lost)
"""


@pytest.mark.slow
def test_processes_that_merge_at_once_lose_nothing(tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    people(graph, None, person("ana", a=1))
    names = [f"w{k}" for k in range(WRITERS)]
    for name in names:
        graph.branch_create(name)
    started = [
        subprocess.Popen([sys.executable, "-c", CHILD, graph.uri, name, str(ROUNDS)], stdout=subprocess.PIPE, text=True)
        for name in names
    ]
    for child in started:
        told, _ = child.communicate(timeout=150)
        assert child.returncode == 0, told
    again = og.Graph.open(graph.uri)
    expected = {f"{name}-{k}" for name in names for k in range(ROUNDS)}
    assert set(rows_of(again, "node:Person")) == {"ana", *expected}
    merges = [c for c in again.list_commits() if c.kind == "merge"]
    assert sorted(c.message or "" for c in merges) == sorted(expected)
    assert sum(c.counts["node:Person"].inserts for c in merges) == len(expected)
    assert again.recoveries().pending == ()
    assert [t for b in again.status().branches for t in b.tables if t.drifted] == []
    mutate(again, 'insert Person { name: "after" }')
