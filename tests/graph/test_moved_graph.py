"""A graph that was moved or copied keeps its main; its branches, which point to the old place, are refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.manifest.branches import create_manifest_branch


@pytest.fixture
def original(tmp_path: Path) -> og.Graph:
    graph = og.Graph.init(str(tmp_path / "here"), "node Person { name: String? }")
    graph.write({"node:Person": og.Append(pa.table({"id": ["ana"]}))})
    create_manifest_branch(graph.context.manifest, None, "draft")
    return graph


@pytest.mark.parametrize("gone", [False, True], ids=["copied", "moved"])
def test_a_branch_of_a_graph_that_lies_elsewhere_is_never_followed(
    original: og.Graph, tmp_path: Path, gone: bool
) -> None:
    there = tmp_path / "there"
    shutil.copytree(original.uri, there)
    if gone:
        shutil.rmtree(original.uri)
    copy = og.Graph.open(str(there))
    for ask in (lambda: copy.snapshot("draft"), lambda: copy.snapshot_of("draft"), lambda: copy.list_commits("draft")):
        with pytest.raises(og.GraphMoved, match="graph was moved or copied; run omnigraph clone") as refused:
            ask()
        assert (refused.value.branch, refused.value.root) == ("draft", str(there))
        assert refused.value.recorded_base.startswith(original.uri)


def test_main_of_a_moved_graph_is_read_written_and_listed(original: og.Graph, tmp_path: Path) -> None:
    there = tmp_path / "there"
    shutil.move(original.uri, there)
    moved = og.Graph.open(str(there))
    moved.write({"node:Person": og.Append(pa.table({"id": ["bo"]}))})
    assert moved.snapshot().tables["node:Person"].row_count == 2
    assert moved.branch_list() == ["main", "draft"]


def test_a_branch_of_a_graph_at_its_own_place_opens(original: og.Graph) -> None:
    assert og.Graph.open(original.uri).snapshot("draft").tables["node:Person"].row_count == 1


def test_branches_made_after_a_move_are_merged_though_one_merged_before_lies_elsewhere(tmp_path: Path) -> None:
    insert = "query q($n: String) { insert Person { name: $n } }"
    graph = og.Graph.init(str(tmp_path / "here"), "node Person { name: String @key }")
    graph.branch_create("old")
    graph.mutate(insert, {"n": "ana"}, branch="old")
    graph.mutate(insert, {"n": "bo"})
    graph.branch_merge("old")
    graph.close()
    (tmp_path / "here").rename(tmp_path / "there")

    moved = og.Graph.open(str(tmp_path / "there"))
    moved.branch_create("new")
    moved.mutate(insert, {"n": "cy"}, branch="new")
    moved.mutate(insert, {"n": "di"})
    assert moved.branch_merge("new").outcome == "merged"
    assert moved.snapshot().tables["node:Person"].row_count == 4
