"""The places a clone is made between."""

from pathlib import Path

import pytest
from clone_scene import furnish, homes

from graph_places import DISK, S3, DiskPlace, Home, Place, S3Place, home_in

_SLOW = pytest.mark.slow


@pytest.fixture
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return DiskPlace(tmp_path)


@pytest.fixture(
    params=[
        (DISK, DISK),
        pytest.param((DISK, S3), marks=_SLOW),
        pytest.param((S3, DISK), marks=_SLOW),
    ],
    ids=lambda pair: "-to-".join(pair),
)
def both(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Place, Place]:
    def of(name: str) -> Place:
        return S3Place(request.getfixturevalue("s3_server")) if name == S3 else DiskPlace(tmp_path)

    return of(request.param[0]), of(request.param[1])


@pytest.fixture
def pair(both: tuple[Place, Place]) -> tuple[Home, Home]:
    """A furnished graph and an empty place for its copy."""
    source, target = homes(*both)
    furnish(source)
    return source, target


@pytest.fixture(scope="session")
def furnished(tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A furnished graph that no test changes."""
    found = home_in(DiskPlace(tmp_path_factory.mktemp("furnished")))
    furnish(found)
    return found


@pytest.fixture
def copy(place: Place) -> Home:
    return Home(place.fresh(), place.settings)
