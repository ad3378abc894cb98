"""Machines of a Spark cluster die in the middle of a bulk load, and every row is stored exactly once all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bulk_drivers import Driver
from bulk_scene import Origin, check_rows, files_of, staging, sweep, table_files, until
from standalone import Cluster

import omnigraph as og

pytestmark = [pytest.mark.spark, pytest.mark.slow]


@pytest.fixture(scope="module")
def driver(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    found = Driver(tmp_path_factory.mktemp("driver") / "driver.log", {})
    yield found
    found.kill()


def test_a_load_on_a_cluster_stores_every_row_and_leaves_nothing_beside(
    cluster: Cluster, driver: Driver, origin: Origin, graph_uri: str
) -> None:
    told = driver.load(graph=graph_uri, file=origin.file("append"), mode="append", settings=cluster.settings)
    assert told["done"]["engine"] == "spark"
    assert told["staged"] == ["edge:Knows", "node:Person"]
    check_rows(og.Graph.open(graph_uri), origin.after("append"))
    assert staging(graph_uri) == set()
    assert not [name for name in files_of(graph_uri) if name.endswith(".arrow") and "_deletions" not in name]


@pytest.mark.parametrize(
    ("mode", "task"),
    [
        ("append", "write"),
        ("merge", "match"),
        ("overwrite", "ask"),
        pytest.param("append", "read", marks=pytest.mark.full),
        pytest.param("merge", "thin", marks=pytest.mark.full),
        pytest.param("overwrite", "write", marks=pytest.mark.full),
        pytest.param("append", "deal", marks=pytest.mark.full),
        pytest.param("merge", "read", marks=pytest.mark.full),
        pytest.param("merge", "ask", marks=pytest.mark.full),
        pytest.param("overwrite", "read", marks=pytest.mark.full),
    ],
)
def test_a_worker_that_dies_with_its_executors_loses_no_row(
    mode: str, task: str, cluster: Cluster, driver: Driver, origin: Origin, graph_uri: str, gate: Path
) -> None:
    """It dies when a task has written its files and has not answered yet."""
    odd = {task: "held", "folder": str(gate)}
    files = table_files(graph_uri)
    driver.order(graph=graph_uri, file=origin.file(mode), mode=mode, odd=odd, settings=cluster.settings)
    begun = until(lambda: list(gate.glob(f"{task}-*")), "no task began")
    assert [name for name in staging(graph_uri) if name.count("/") > 1], "rows on their way lie beside the graph"
    stages = task in ("write", "match", "thin")
    assert bool(table_files(graph_uri) - files) == stages, "the task wrote before it died"
    worker = cluster.worker_of(int(begun[0].name.rpartition("-")[2]))
    assert worker.kill() >= 3, "the worker, its executor and the Python process of the task"
    (gate / "open").touch()
    told = driver.answer()
    cluster.replace(worker)

    assert "done" in told, told
    check_rows(og.Graph.open(graph_uri), origin.after(mode))
    assert staging(graph_uri) == set()
    swept = sweep(graph_uri)
    assert bool([gone for gone in swept.orphans_removed if gone.what == "staged files"]) == stages
    check_rows(og.Graph.open(graph_uri), origin.after(mode))


@pytest.mark.full
def test_a_load_that_lost_every_worker_goes_on_with_the_next_one(
    cluster: Cluster, driver: Driver, origin: Origin, graph_uri: str, gate: Path
) -> None:
    odd = {"match": "held", "folder": str(gate)}
    driver.order(graph=graph_uri, file=origin.file("merge"), mode="merge", odd=odd, settings=cluster.settings)
    until(lambda: list(gate.glob("match-*")), "no task began")
    dead = list(cluster.workers)
    for worker in dead:
        worker.kill()
    (gate / "open").touch()
    for worker in dead:
        cluster.replace(worker)
    assert "done" in driver.answer()
    check_rows(og.Graph.open(graph_uri), origin.after("merge"))
    assert staging(graph_uri) == set()


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    return Origin(tmp_path_factory.mktemp("large"), 60_000)


@pytest.mark.full
@pytest.mark.parametrize("phase", ["read", "stage"])
@pytest.mark.parametrize("mode", ["append", "merge", "overwrite"])
def test_a_worker_that_dies_at_any_moment_of_a_larger_load_loses_no_row(
    mode: str, phase: str, cluster: Cluster, driver: Driver, large: Origin, tmp_path: Path
) -> None:
    uri = large.copy(tmp_path / "graph")
    files = table_files(uri)
    order: dict[str, Any] = {"rows_per_task": 5_000, "split_bytes": 200_000, "settings": cluster.settings}
    driver.order(graph=uri, file=large.file(mode), mode=mode, **order)

    def begun() -> bool:
        if phase == "read":
            return any(name.endswith(".arrow") for name in staging(uri))
        return bool(table_files(uri) - files)

    until(begun, f"the load never came to {phase}")
    worker = cluster.workers[0]
    worker.kill()
    told = driver.answer()
    cluster.replace(worker)
    assert "done" in told, told
    check_rows(og.Graph.open(uri), large.after(mode))
    assert staging(uri) == set()
    sweep(uri)
    check_rows(og.Graph.open(uri), large.after(mode))
