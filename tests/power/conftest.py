"""One traced child for all recordings, and the count of power cuts at the end of the run."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

# The graphs, the writes and what can be seen of them are those of the crash sweep.
sys.path.insert(0, str(Path(__file__).parents[1] / "crash"))

from crash_cases import seed_of_today
from power_recorder import Recorder, why_not
from power_world import World

_MEMORY = "/dev/shm"
_CUT, _MISSING = pytest.StashKey[int](), pytest.StashKey[str]()


@pytest.fixture(scope="session")
def power_folder() -> Iterator[Path]:
    """Where disks are laid out; in memory where the system offers that, for the model is the disk and not this one."""
    folder = tempfile.mkdtemp(prefix="power-", dir=_MEMORY if os.access(_MEMORY, os.W_OK) else None)
    yield Path(folder)
    shutil.rmtree(folder)


@pytest.fixture(scope="session")
def recorder(power_folder: Path, request: pytest.FixtureRequest) -> Iterator[Recorder]:
    reason = why_not()
    if reason is not None:
        request.config.stash[_MISSING] = reason
        pytest.skip(reason)
    found = Recorder(power_folder)
    yield found
    found.close()


@pytest.fixture(scope="session")
def world(power_folder: Path, recorder: Recorder) -> World:
    return World(power_folder, recorder)


@pytest.fixture
def count_cuts(request: pytest.FixtureRequest) -> Callable[[int], None]:
    stash = request.config.stash

    def count(number: int) -> None:
        stash[_CUT] = stash.get(_CUT, 0) + number

    return count


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    if config.stash.get(_MISSING, None):
        terminalreporter.write_line(config.stash[_MISSING], red=True, bold=True)
    if config.stash.get(_CUT, 0):
        terminalreporter.write_line(f"power cuts: {config.stash[_CUT]} disks, sampled with seed {seed_of_today()}")
