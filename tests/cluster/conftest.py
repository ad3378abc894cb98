"""Graphs, drivers and clusters of this suite; whatever is started here is ended here, by its process id."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bulk_drivers import Drivers
from bulk_scene import Origin
from standalone import Cluster


@pytest.fixture(scope="session")
def origin(tmp_path_factory: pytest.TempPathFactory) -> Origin:
    return Origin(tmp_path_factory.mktemp("bulk"), 300)


@pytest.fixture(scope="session")
def drivers(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drivers]:
    """Drivers on the Spark of this run, which goes on when one of them is killed."""
    gateway = spark.sparkContext._gateway.gateway_parameters
    environment = {"PYSPARK_GATEWAY_PORT": str(gateway.port), "PYSPARK_GATEWAY_SECRET": str(gateway.auth_token)}
    found = Drivers(tmp_path_factory.mktemp("drivers"), environment)
    yield found
    found.dismiss()


@pytest.fixture
def graph_uri(origin: Origin, tmp_path: Path) -> str:
    return origin.copy(tmp_path / "graph")


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    """A folder in which processes tell each other how far they are."""
    folder = tmp_path / "gate"
    folder.mkdir()
    return folder


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A master and two workers; two hosts, for Spark runs no second copy of a task on the same one."""
    found = Cluster(tmp_path_factory.mktemp("cluster"))
    try:
        found.start("127.0.0.1", "127.0.0.2")
        yield found
    finally:
        found.stop()
