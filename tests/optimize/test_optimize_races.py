"""optimize beside living writers and readers in other processes: nothing is lost, and no answer is ever wrong."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from optimize_scene import SCHEMA, P, load, people
from optimize_workers import optimize, read, write

import omnigraph as og
from index_answers import disagreements
from processes import FORKED

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("branch", ["main", "draft"])
def test_writers_and_readers_go_on_while_tables_are_compacted(tmp_path: Path, branch: str) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    load(graph, tmp_path, people(0, 20), index=True)
    if branch != "main":
        graph.branch_create(branch)
        load(graph, tmp_path, people(100, 3), branch=branch)
    stop = tmp_path / "stop"
    with ProcessPoolExecutor(4, mp_context=FORKED) as pool:
        keeper = pool.submit(optimize, graph.uri, branch, str(stop))
        reader = pool.submit(read, graph.uri, ["main", branch], str(stop))
        try:
            writers = [pool.submit(write, graph.uri, number, 15, branch) for number in range(2)]
            left = set().union(*(done.result(120) for done in writers))
        finally:
            stop.touch()
        commits, (looks, wrong) = keeper.result(120), reader.result(120)
    assert wrong == []
    assert looks > 0
    assert commits, "it never came to a commit"
    known = {c.graph_commit_id for c in graph.list_commits(branch)}
    assert set(commits) <= known
    stored = graph.view(branch).table(P).read(["id"]).column("id").to_pylist()
    assert {name for name in stored if name.startswith("w")} == left
    assert len(stored) == len(set(stored))
    assert disagreements(graph) == []
    status = graph.status()
    assert status.pending == ()
    assert not [t for b in status.branches for t in b.tables if t.drifted]
