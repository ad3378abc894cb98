"""Several processes create, delete and write the same branches at once."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest
from branch_children import NAMES, live

import omnigraph as og
from processes import FORKED

pytestmark = pytest.mark.slow
WRITERS, ROUNDS = 5, 30
KNOWN = {"Conflict", "NotFound", "ExpectedVersionMismatch", "BranchReplaced", "RowLevelCasContention"}


def test_racing_branch_verbs_lose_nothing_acknowledged_and_tear_nothing(tmp_path: Path) -> None:
    schema = "node Left { name: String @key }\nnode Right { name: String @key }"
    graph = og.Graph.init(str(tmp_path / "graph"), schema)
    with ProcessPoolExecutor(WRITERS, FORKED) as pool:
        running = [pool.submit(live, graph.uri, number, ROUNDS) for number in range(WRITERS)]
        done = [future.result(timeout=250) for future in running]

    again = og.Graph.open(graph.uri)
    live_names = again.branch_list()[1:]
    assert not [n for n in live_names for m in live_names if n != m and n.startswith(f"{m}/")]
    for name in live_names:
        view = again.view(name)
        left, right = (sorted(view.table(t).read(["id"]).column("id").to_pylist()) for t in ("node:Left", "node:Right"))
        told = sorted(row for d in done for row in d.rows.get(f"{name}@{view.incarnation}", []))
        assert left == right == told
    unknown = {e for d in done for e in d.errors if e.split(": ")[1] not in KNOWN}
    assert not unknown
    assert sum(len(rows) for d in done for rows in d.rows.values()) > 0
    assert again.recoveries().pending == ()
    for name in NAMES:
        if name not in live_names:
            assert name not in again.branch_list()
