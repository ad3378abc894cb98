"""The graph of the query examples."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutate_scene import SCHEMA, SEED

import omnigraph as og


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    made.mutate(SEED)
    return made
