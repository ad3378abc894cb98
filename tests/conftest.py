"""Servers that several suites share, started when a test first asks for them and ended with the run."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from typing import Any

import pytest

from s3_server import S3Server

# Every JVM of a test is young: compiling its code well would take longer than running it, and checking its classes
# takes a quarter of its start. Servers, clusters and the programs under test inherit this.
_YOUNG_JVM = (
    "-XX:TieredStopAtLevel=1",
    "-XX:+UseSerialGC",
    "-XX:+UnlockDiagnosticVMOptions",
    "-XX:-BytecodeVerificationRemote",
)
os.environ.setdefault("JAVA_TOOL_OPTIONS", " ".join(_YOUNG_JVM))
_DEAR = ("slow", "spark")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The dearest files come first: of two processes side by side, none is left alone with a long one at the end."""
    dear: dict[str, int] = {}
    for item in items:
        found = max((n for n, name in enumerate(_DEAR, 1) if item.get_closest_marker(name)), default=0)
        dear[_file_of(item)] = max(dear.get(_file_of(item), 0), found)
    items.sort(key=lambda item: -dear[_file_of(item)])


def _file_of(item: pytest.Item) -> str:
    return item.nodeid.split("::")[0]


@pytest.fixture(scope="session", autouse=True)
def ctrl_c_is_heard() -> None:
    """A run started in the background inherits an ignored SIGINT, and so would every program under test."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """A real S3-compatible server on loopback."""
    server = S3Server(tmp_path_factory.mktemp("s3"))
    server.start()
    yield server
    server.stop()


@pytest.fixture(scope="session")
def spark() -> Any:
    """One Spark session for the whole run; loaded only where a test asks for it."""
    from omnigraph.pipeline.session import SparkSettings, session

    # Two attempts for a task, so that a retry can be seen. No stop at the end: tests of other directories share
    # the session, and it ends with the process.
    found = session(SparkSettings(master="local[2,2]", search_path=os.environ["PATH"], shuffle_partitions=2))
    assert found.sparkContext.master == "local[2,2]", "an earlier test started Spark without asking for this fixture"
    return found


_SPENT: dict[str, float] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    folder = report.nodeid.split("::")[0].removeprefix("tests/").rpartition("/")[0]
    _SPENT[folder] = _SPENT.get(folder, 0.0) + report.duration


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Where the time of a long run went, so that `make test` stays within its half hour."""
    if sum(_SPENT.values()) > 60:
        dearest = sorted(_SPENT.items(), key=lambda entry: -entry[1])
        terminalreporter.write_line("seconds: " + ", ".join(f"{name} {spent:.0f}" for name, spent in dearest))
