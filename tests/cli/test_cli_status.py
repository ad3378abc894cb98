"""`omnigraph status`."""

from __future__ import annotations

import shutil
from pathlib import Path

import lance

from omnigraph.manifest.branches import create_manifest_branch


def test_status_shows_head_lock_tables_and_that_nothing_is_pending(cli, graph, tmp_path):
    lines = cli("status", "library").lines
    assert lines[0] == f"graph: {tmp_path / 'library'}"
    assert f"  head: {graph.head_commit_id_for_branch()}" in lines
    assert "  internal_schema: 4" in lines
    assert "  lock: free" in lines
    assert "  node:Person v3 rows=3 fragments=2 unindexed=3" in lines
    assert lines[-2:] == ["pending: none", "last_recovery: none"]


def test_status_shows_every_branch(cli, graph):
    create_manifest_branch(graph.context.manifest, None, "draft")
    branches = [line for line in cli("status", "library").lines if line.startswith("branch: ")]
    assert branches == ["branch: main", "branch: draft"]


def test_status_names_who_holds_the_lock(cli, graph):
    with graph.context.locks.hold(None) as lock:
        text = cli("status", "library").out
        body = cli("status", "library", "--json").json["branches"][0]["lock"]
    assert f", token {lock.token}, for 0s" in text
    assert (body["held"], body["token"]) == (True, lock.token)


def test_status_shows_drift_and_still_exits_zero(cli, graph):
    location = Path("library") / graph.snapshot().tables["node:Person"].location
    lance.dataset(str(location)).delete("id = 'ann'")
    done = cli("status", "library")
    assert done.code == 0
    assert "  node:Person v3 rows=3 fragments=2 unindexed=3 DRIFT head=v4; omnigraph repair" in done.lines


def test_a_branch_that_cannot_be_read_is_told_beside_the_others(cli, graph):
    create_manifest_branch(graph.context.manifest, None, "draft")
    shutil.copytree("library", "moved")
    done = cli("status", "moved")
    assert done.code == 0
    assert "  node:Person v3 rows=3 fragments=2 unindexed=3" in done.lines
    told = done.lines[done.lines.index("branch: draft") :]
    assert "graph was moved or copied; run omnigraph clone" in told[2]
    main, draft = cli("status", "moved", "--json").json["branches"]
    assert (main["branch"], "error" in main, len(main["tables"])) == ("main", False, 3)
    assert (draft["branch"], list(draft)) == ("draft", ["branch", "error", "lock"])


def test_status_json_says_the_same_as_one_object(cli, graph):
    body = cli("status", "library", "--json").json
    assert list(body) == ["uri", "branches", "loads", "pending", "unreadable", "last_recovery"]
    assert body["branches"][0]["tables"][2] == {
        "table_key": "node:Person",
        "table_version": 3,
        "lance_head_version": 3,
        "drift": False,
        "row_count": 3,
        "fragments": 2,
        "unindexed_rows": 3,
    }
