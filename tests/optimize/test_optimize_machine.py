"""Any life of a graph, optimized at any time: every optimize leaves every row of every branch as it was."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optimize_scene import SCHEMA, load, people, stored, write

import omnigraph as og
from index_answers import disagreements

pytestmark = pytest.mark.slow
BRANCHES = ("main", "a", "b")
QUICK = og.Settings(storage_durability="os")
steps = st.lists(
    st.tuples(
        st.sampled_from(["load", "load", "load", "update", "delete", "branch", "index", "optimize", "optimize"]),
        st.sampled_from(BRANCHES),
        st.integers(0, 30),
    ),
    min_size=4,
    max_size=14,
)


def act(graph: og.Graph, folder: Path, step: tuple[str, str, int]) -> None:
    verb, branch, number = step
    if branch not in graph.branch_list():
        if verb != "branch":
            return
        graph.branch_create_from("a" if branch == "b" and "a" in graph.branch_list() else "main", branch)
        return
    match verb:
        case "load":
            load(graph, folder, people(number, 1 + number % 6), branch=branch)
        case "update":
            write(graph, f"update Person set {{ age: {number} }} where age = {number % 7}", branch)
        case "delete":
            write(graph, f"delete Person where age = {number % 7}", branch)
        case "index":
            graph.ensure_indices(branch)
        case "optimize":
            check_optimized(graph, branch)


def check_optimized(graph: og.Graph, branch: str) -> None:
    before = everything(graph)
    graph.optimize(branch)
    assert everything(graph) == before
    assert disagreements(graph) == []
    assert graph.optimize(branch).commit is None


def everything(graph: og.Graph) -> dict[str, Any]:
    return {name: stored(graph, name) for name in graph.branch_list()}


@settings(max_examples=12, deadline=None)
@given(steps)
def test_every_optimize_leaves_every_row_of_every_branch_as_it_was(life: list[tuple[str, str, int]]) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        graph = og.Graph.init(str(folder / "g"), SCHEMA, settings=QUICK)
        for step in life:
            act(graph, folder, step)
        for branch in graph.branch_list():
            check_optimized(graph, branch)


@settings(max_examples=6, deadline=None)
@given(steps)
def test_text_and_vector_indexes_that_are_kept_answer_right_too(life: list[tuple[str, str, int]]) -> None:
    """As on a large table, where fragments are put together only within the parts of such an index."""
    with pytest.MonkeyPatch.context() as patched, tempfile.TemporaryDirectory() as place:
        patched.setattr("omnigraph.engine.upkeep.groups.REBUILT_ROWS_MAX", 0)
        folder = Path(place)
        graph = og.Graph.init(str(folder / "g"), SCHEMA, settings=QUICK)
        load(graph, folder, people(0, 30), index=True)
        for step in life:
            act(graph, folder, step)
        for branch in graph.branch_list():
            check_optimized(graph, branch)
