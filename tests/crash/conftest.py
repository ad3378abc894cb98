"""The graph that crashes start from, children to crash, and the count of crashes at the end of the run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

import pytest
from crash_cases import seed_of_today
from crash_children import Children
from crash_scene import Template, World

from graph_places import S3, DiskPlace, S3Place

_RUN = pytest.StashKey[Counter[str]]()


@pytest.fixture(scope="session")
def children() -> Iterator[Children]:
    found = Children()
    yield found
    found.dismiss()


@pytest.fixture(scope="session")
def disk(tmp_path_factory: pytest.TempPathFactory) -> DiskPlace:
    return DiskPlace(tmp_path_factory.mktemp("crash"))


@pytest.fixture(scope="session")
def template(disk: DiskPlace) -> Template:
    return Template(disk)


@pytest.fixture(scope="session")
def world_in(
    request: pytest.FixtureRequest, disk: DiskPlace, template: Template, children: Children
) -> Callable[[str], World]:
    """The world of a place by its name; the S3 server starts when the first case asks for it."""
    known: dict[str, World] = {}

    def found(name: str) -> World:
        if name not in known:
            place = S3Place(request.getfixturevalue("s3_server")) if name == S3 else disk
            known[name] = World(template, place, children)
        return known[name]

    return found


@pytest.fixture
def count_case(request: pytest.FixtureRequest) -> Callable[[str], None]:
    counts = request.config.stash.setdefault(_RUN, Counter())
    return lambda where: counts.update([where])


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    counts = config.stash.get(_RUN, Counter())
    if counts:
        told = ", ".join(f"{count} cases on {name}" for name, count in sorted(counts.items()))
        terminalreporter.write_line(f"crash sweep: {told}; sampled with seed {seed_of_today()}")
