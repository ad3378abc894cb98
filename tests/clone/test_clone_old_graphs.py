"""Graphs of older internal shapes are brought forward on the way; those that cannot be are refused by name."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.engine.verify.run import verify

sys.path.insert(0, str(Path(__file__).parents[1] / "manifest"))
from forge import A, B, C, forge

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("shape", [1, 2, 3])
def test_an_old_graph_has_a_copy_of_todays_shape(shape: int, tmp_path: Path):
    source, target = forge(tmp_path / "old", shape), str(tmp_path / "copy")
    done = og.clone(source, target)
    assert [branch.name for branch in done.branches] == ["main", "draft"]
    shutil.rmtree(source)
    graph = og.Graph.open(target)
    assert [c.graph_commit_id for c in graph.list_commits()] == [B, A]
    assert [c.graph_commit_id for c in graph.list_commits("draft")][1:] == [C, B, A]
    counts = {branch: graph.view(branch).table("node:Person").count_rows() for branch in graph.branch_list()}
    assert counts == {"main": 2, "draft": 3}
    assert verify(graph.context).findings == ()


def test_a_graph_without_stable_row_ids_is_refused(tmp_path: Path):
    with pytest.raises(og.Conflict, match="no stable row ids"):
        og.clone(forge(tmp_path / "old", 3, stable_row_ids=False), str(tmp_path / "copy"))
    assert not (tmp_path / "copy").exists()


def test_an_old_branch_of_a_moved_graph_is_refused(tmp_path: Path):
    shutil.move(forge(tmp_path / "old", 3), tmp_path / "moved")
    with pytest.raises(og.Conflict, match="branch 'draft' has the internal schema version 3"):
        og.clone(str(tmp_path / "moved"), str(tmp_path / "copy"))
    assert [b.name for b in og.clone(str(tmp_path / "moved"), str(tmp_path / "main"), branch="main").branches] == [
        "main"
    ]
