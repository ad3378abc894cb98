"""Graphs in directories whose names Lance spells in another way."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from omnigraph import Graph, clone

SCHEMA = "node Person { name: String @key }"
ODD = "José 100% [x] #1"
TWIN = "Jos%C3%A9 100%25 %5Bx%5D %231"


def _lives_with_branches(place: Path) -> None:
    with Graph.init(str(place), SCHEMA) as graph:
        graph.branch_create("draft")
        graph.mutate('query q() { insert Person { name: "ana" } }', branch="draft")
        graph.branch_create_from("draft", "team/deep")
        graph.mutate('query q() { insert Person { name: "bo" } }', branch="team/deep")
        graph.branch_merge("team/deep", "draft")
        graph.branch_delete("team/deep")
        graph.branch_merge("draft")
        assert len(b"".join(graph.export()).splitlines()) == 2
        assert graph.verify().findings == ()


def test_a_branch_leaves_nothing_beside_a_graph_with_an_odd_name(tmp_path: Path):
    _lives_with_branches(tmp_path / ODD)
    clone(str(tmp_path / ODD), str(tmp_path / f"{ODD} too"))
    assert sorted(os.listdir(tmp_path)) == [ODD, f"{ODD} too"]


@pytest.mark.parametrize("odd", [ODD, "back~"])
def test_branches_are_made_where_nothing_may_be_written_beside_the_graph(tmp_path: Path, odd: str):
    twin = tmp_path / {ODD: TWIN, "back~": "back%7E"}[odd]
    twin.write_text("a file, so that no directory can be made there")
    (tmp_path / odd).mkdir()
    _lives_with_branches(tmp_path / odd / "graph")
    assert sorted(os.listdir(tmp_path)) == sorted([odd, twin.name])
