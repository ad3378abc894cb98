"""Graphs to be harmed: copies of one that was filled once, on a disk or on the S3 server."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from damage_scene import SCHEMA, fill

import omnigraph as og
from graph_places import DISK, S3, DiskPlace, Home, Place, S3Place, home_in
from omnigraph.base import failpoints


@pytest.fixture(scope="session")
def template(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = DiskPlace(tmp_path_factory.mktemp("template"))
    home = home_in(place)
    with home.init(SCHEMA) as graph:
        fill(graph)
    return home.uri


@pytest.fixture(params=[DISK, pytest.param(S3, marks=pytest.mark.slow)])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return S3Place(request.getfixturevalue("s3_server")) if request.param == S3 else DiskPlace(tmp_path)


@pytest.fixture
def anywhere(place: Place, template: str) -> Iterator[og.Graph]:
    """A graph on a disk, and again on the object store."""
    home = Home(place.copy(template), place.settings)
    yield og.Graph.open(home.uri, settings=home.settings)
    place.remove(home.uri)


@pytest.fixture
def graph(tmp_path: Path, template: str) -> og.Graph:
    """A graph on a disk."""
    return og.Graph.open(DiskPlace(tmp_path).copy(template))


@pytest.fixture(autouse=True)
def no_failpoint_stays() -> Iterator[None]:
    yield
    failpoints.disarm_all()
