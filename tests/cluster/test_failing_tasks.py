"""Tasks that fail after their work are done again, and nothing of the first attempt is stored."""

from __future__ import annotations

from pathlib import Path

import pytest
from bulk_drivers import Drivers
from bulk_scene import Origin, check_rows, staging, sweep, table_files

import omnigraph as og

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.mark.parametrize(
    ("mode", "tasks"),
    [
        ("merge", ("match", "thin")),
        pytest.param("append", ("read", "write"), marks=pytest.mark.full),
        pytest.param("overwrite", ("read", "write"), marks=pytest.mark.full),
    ],
)
def test_a_task_that_failed_once_is_done_again_and_its_rows_are_stored_once(
    mode: str, tasks: tuple[str, ...], origin: Origin, drivers: Drivers, graph_uri: str, gate: Path
) -> None:
    odd = {"folder": str(gate), **dict.fromkeys(tasks, "fails")}
    told = drivers.take().load(graph=graph_uri, file=origin.file(mode), mode=mode, odd=odd)
    assert "done" in told, told
    tried = {path.name for path in gate.iterdir()}
    assert all(any(name.startswith(task) and name.endswith("-again") for name in tried) for task in tasks)
    check_rows(og.Graph.open(graph_uri), origin.after(mode))
    assert [gone for gone in sweep(graph_uri).orphans_removed if gone.what == "staged files"]
    check_rows(og.Graph.open(graph_uri), origin.after(mode))


@pytest.mark.parametrize(("mode", "task"), [("append", "write"), pytest.param("merge", "thin", marks=pytest.mark.full)])
def test_a_task_that_always_fails_ends_the_load_with_our_words_and_no_change(
    mode: str, task: str, origin: Origin, drivers: Drivers, graph_uri: str, gate: Path
) -> None:
    files = table_files(graph_uri)
    odd = {"folder": str(gate), task: "never"}
    told = drivers.take().load(graph=graph_uri, file=origin.file(mode), mode=mode, odd=odd)
    assert (told["error"], told["hint"][:22]) == ("InternalError", "Nothing was committed.")
    assert "a Spark worker failed: RuntimeError: lost after its work" in told["text"]
    assert staging(graph_uri) == set()
    check_rows(og.Graph.open(graph_uri), origin.before)
    sweep(graph_uri)
    assert table_files(graph_uri) == files
