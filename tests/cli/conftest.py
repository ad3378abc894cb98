"""A command line in a fresh directory: commands run in this process, through the same edge as the program."""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.cli.main import main

SCHEMA = """node Person {
  name: String @key
  age: I32?
}
node Book { title: String }
edge Wrote: Person -> Book { year: I32? }
"""


@dataclass(frozen=True)
class Outcome:
    code: int
    payload: bytes
    err: str

    @property
    def out(self) -> str:
        return self.payload.decode()

    @property
    def json(self) -> Any:
        return orjson.loads(self.payload)

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()


class _Terminal(io.TextIOWrapper):
    def isatty(self) -> bool:
        return True


Cli = Callable[..., Outcome]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch) -> Cli:
    """Run `omnigraph …` and see what a user would see."""

    def run(*arguments: str, terminal: bool = False) -> Outcome:
        kind = _Terminal if terminal else io.TextIOWrapper
        out, err = io.BytesIO(), io.BytesIO()
        with monkeypatch.context() as patch:
            patch.setattr(sys, "stdout", kind(out, encoding="utf-8"))
            patch.setattr(sys, "stderr", kind(err, encoding="utf-8"))
            code = main([str(a) for a in arguments])
            sys.stdout.flush()
            sys.stderr.flush()
            return Outcome(code, out.getvalue(), err.getvalue().decode())

    return run


@pytest.fixture(autouse=True)
def _fresh_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("OMNIGRAPH_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "schema.pg").write_text(SCHEMA)


def people(graph: og.Graph, *names: str) -> pa.Table:
    schema = graph.catalog.arrow_schema("node:Person")
    columns = {"id": list(names), "name": list(names), "age": [None] * len(names)}
    return pa.table({field.name: columns[field.name] for field in schema}, schema=schema)


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    """`./library` with three commits: init, two people by act-ana, one by nobody with a message of two lines."""
    made = og.Graph.init(str(tmp_path / "library"), SCHEMA)
    made.write({"node:Person": og.Append(people(made, "ann", "bob"))}, actor="act-ana", message="first people")
    made.write({"node:Person": og.Append(people(made, "cyd"))}, message="one more\nand why", metadata={"source": "x"})
    return made


@pytest.fixture
def add_people() -> Callable[..., og.Graph]:
    def add(graph: og.Graph, *names: str) -> og.Graph:
        graph.write({"node:Person": og.Append(people(graph, *names))})
        return graph

    return add
