"""The graph that crashes start from, children to crash, and the count of crashes at the end of the run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from crash_cases import seed_of_today
from crash_children import Children
from crash_scene import World

_RUN = pytest.StashKey[int]()


@pytest.fixture(scope="session")
def children() -> Iterator[Children]:
    found = Children()
    yield found
    found.dismiss()


@pytest.fixture(scope="session")
def world(tmp_path_factory: pytest.TempPathFactory, children: Children) -> World:
    return World(tmp_path_factory.mktemp("crash"), children)


@pytest.fixture
def count_case(request: pytest.FixtureRequest) -> None:
    stash = request.config.stash
    stash[_RUN] = stash.get(_RUN, 0) + 1


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash.get(_RUN, 0):
        terminalreporter.write_line(f"crash sweep: {config.stash[_RUN]} cases, sampled with seed {seed_of_today()}")
