"""A graph of people and teams, and a way to run a pipeline that is written where the test stands."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest

import omnigraph as og

SCHEMA = """node Person {
  name: String @key
  age: I32?
  born: Date?
  score: F64?
}
node Team { code: String @key }
node Note { text: String }
node Desk { floor: I32 room: String @key(floor, room) }
edge MemberOf: Person -> Team { since: Date? }
edge SitsAt: Person -> Desk
"""

Stored = Callable[..., list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def _session_of_all_is_active_again(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test with a session of its own leaves that one active, and other suites look for the shared one."""
    yield
    if "spark" in request.fixturenames:
        request.getfixturevalue("spark").createDataFrame([], "nothing int")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def graph(folder: Path) -> og.Graph:
    return og.Graph.init("library", SCHEMA)


@pytest.fixture
def job(folder: Path) -> Callable[..., str]:
    """Writes `pipeline.yaml`; its head (version and target) need not be written."""

    def write(*parts: str, head: str = "version: 1\ntarget: {graph: library, mode: merge}\n") -> str:
        (folder / "pipeline.yaml").write_text(head + "".join(dedent(part) for part in parts))
        return "pipeline.yaml"

    return write


@pytest.fixture
def stored(graph: og.Graph) -> Stored:
    """The rows of a type as export writes them, without generated ids."""

    def read(type_: str, branch: str = "main") -> list[dict[str, Any]]:
        found = [json.loads(line) for line in b"".join(graph.export([type_], branch=branch)).splitlines()]
        rows = [{**{end: r[end] for end in ("from", "to") if end in r}, **r["data"]} for r in found]
        return sorted(({k: v for k, v in row.items() if k != "id"} for row in rows), key=str)

    return read
