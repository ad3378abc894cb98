"""The graph with a past, on the local disk."""

from __future__ import annotations

from pathlib import Path

import pytest
from travel_scene import SCHEMA, Past, past_in

import omnigraph as og


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return past_in(og.Graph.init(str(tmp_path / "graph"), SCHEMA))
