"""A graph of this suite in the place a test names."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from upkeep_scene import SCHEMA, both

from graph_places import DISK, S3, DiskPlace, Home, Place, S3Place, home_in


@pytest.fixture(params=[DISK, pytest.param(S3, marks=pytest.mark.slow)])
def where(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture
def place(where: str, tmp_path: Path, request: pytest.FixtureRequest) -> Place:
    return S3Place(request.getfixturevalue("s3_server")) if where == S3 else DiskPlace(tmp_path)


@pytest.fixture
def home(place: Place) -> Iterator[Home]:
    """A graph whose main holds one row in each table."""
    found = home_in(place)
    with found.init(SCHEMA) as graph:
        graph.write(both("first"))
    yield found
    place.remove(found.uri)
