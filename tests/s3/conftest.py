"""Figures that a test wants to tell stand at the end of the run. Logs and checks of writers are those of the races."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "race"))

_TOLD = pytest.StashKey[list[str]]()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    return request.config.stash.setdefault(_TOLD, []).append


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(_TOLD, []):
        terminalreporter.write_line(line)
