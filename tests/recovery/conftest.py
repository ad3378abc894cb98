"""Graphs to interrupt. The graph itself and the writes are those of the crash tests."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "crash"))

from crash_world import build_graph

from omnigraph.base import failpoints
from omnigraph.graph import Graph


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recovery") / "template"
    build_graph(str(path))
    return path


@pytest.fixture
def path(template: Path, tmp_path: Path) -> str:
    """A graph of three tables with three fragments each."""
    return str(shutil.copytree(template, tmp_path / "graph"))


@pytest.fixture
def graph(path: str) -> Graph:
    return Graph.open(path)


@pytest.fixture(autouse=True)
def disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()
