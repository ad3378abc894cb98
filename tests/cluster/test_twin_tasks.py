"""Spark runs second copies of slow tasks, and every row is stored exactly once all the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from bulk_drivers import Driver
from bulk_scene import Origin, check_rows, staging, sweep
from standalone import Cluster

import omnigraph as og

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SPECULATION = {
    "spark.speculation": "true",
    "spark.speculation.interval": "20ms",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.minTaskRuntime": "1ms",
}


@pytest.fixture(scope="module")
def driver(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Driver]:
    found = Driver(tmp_path_factory.mktemp("speculating") / "driver.log", {})
    yield found
    found.kill()


@pytest.mark.parametrize(
    ("mode", "tasks"),
    [("append", ("read", "write")), pytest.param("merge", ("read", "match"), marks=pytest.mark.full)],
)
def test_a_second_copy_of_a_task_stores_no_row_twice(
    mode: str, tasks: tuple[str, ...], cluster: Cluster, driver: Driver, origin: Origin, graph_uri: str, gate: Path
) -> None:
    odd = {"folder": str(gate), **dict.fromkeys(tasks, "twin")}
    settings = {**cluster.settings, "spark_conf": {**cluster.settings["spark_conf"], **SPECULATION}}
    told = driver.load(graph=graph_uri, file=origin.file(mode), mode=mode, odd=odd, settings=settings)
    assert "done" in told, told
    assert all(list(gate.glob(f"{task}-*-0-again")) for task in tasks), "no task ran twice at once"
    check_rows(og.Graph.open(graph_uri), origin.after(mode))
    assert staging(graph_uri) == set()
    assert [gone for gone in sweep(graph_uri).orphans_removed if gone.what == "staged files"], "the twin wrote too"
    check_rows(og.Graph.open(graph_uri), origin.after(mode))
