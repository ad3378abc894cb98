"""Every row of the table of changes, applied to tables with rows in them: before, after, and seen from the past."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from migrations import BASE, MIGRATIONS, Migration
from populated import LINES, Rows, changed, exported, load_lines, rows_of

import omnigraph as og

SUPPORTED = [case for case in MIGRATIONS if case.supported]
REFUSED = [case for case in MIGRATIONS if not case.supported]


def label(case: Migration) -> str:
    return f"{case.row[:24]}… {case.name}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("made")
    with og.Graph.init(str(folder / "graph"), BASE) as graph:
        load_lines(graph, folder, LINES)
    return folder / "graph"


@pytest.fixture
def graph(made: Path, tmp_path: Path) -> og.Graph:
    shutil.copytree(made, tmp_path / "graph")
    return og.Graph.open(str(tmp_path / "graph"))


def all_populated(rows: Rows) -> bool:
    return all(rows.values())


@pytest.mark.slow
@pytest.mark.parametrize("case", SUPPORTED, ids=label)
def test_a_supported_change_is_applied_to_rows_that_are_there(case: Migration, graph: og.Graph, tmp_path: Path) -> None:
    before, past = rows_of(graph), graph.list_commits()[0].graph_commit_id
    assert all_populated(before)
    other = og.Graph.open(graph.uri, "r")
    assert rows_of(other) == before

    done = graph.schema_apply(case.after, actor="act-ana", message="why")

    assert done.to_json()["steps"] == list(case.steps)
    assert (done.applied, done.to_json()["step_count"]) == (bool(case.steps), len(case.steps))
    assert done.manifest_version == graph.snapshot().version
    after = changed(before, case.steps)
    assert rows_of(graph) == after
    assert rows_of(other) == after, "a handle that was open before does not see the new schema"
    assert rows_of(og.Graph.open(graph.uri, "r")) == after
    assert rows_of(graph, snapshot=past) == changed(before, case.steps, old_commit=True)
    if case.steps:
        newest = graph.list_commits()[0]
        assert (newest.kind, newest.actor_id, newest.message) == ("schema_apply", "act-ana", "why")
        assert graph.schema().source == case.after
    else:
        assert graph.list_commits()[0].graph_commit_id == past
    load_lines(other_writer := og.Graph.open(graph.uri), tmp_path, exported(graph), mode="merge")
    assert rows_of(other_writer) == after


@pytest.mark.slow
@pytest.mark.parametrize("case", REFUSED, ids=label)
def test_a_change_that_cannot_be_made_changes_nothing(case: Migration, graph: og.Graph, tmp_path: Path) -> None:
    files = {path: path.stat().st_mtime_ns for path in Path(graph.uri).rglob("*") if path.is_file()}
    with pytest.raises(og.UnsupportedSchemaChange) as caught:
        graph.schema_apply(case.after)
    first = next(step for step in case.steps if step["kind"] == "unsupported_change")
    assert caught.value.entity == first["entity"]
    assert first["reason"] in str(caught.value)
    assert first.get("code", "") in str(caught.value)
    assert {path: path.stat().st_mtime_ns for path in Path(graph.uri).rglob("*") if path.is_file()} == files
    assert og.Graph.open(graph.uri).schema().source == BASE
