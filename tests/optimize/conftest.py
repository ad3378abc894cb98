from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from optimize_scene import SCHEMA, in_pieces

import omnigraph as og


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    """A graph whose tables lie in several fragments."""
    with og.Graph.init(str(tmp_path / "g"), SCHEMA) as made:
        in_pieces(made, tmp_path)
        yield made
