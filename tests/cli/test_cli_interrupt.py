"""Ctrl-C while a read runs: the program says one line, ends with 130, and leaves nothing behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og

pytestmark = pytest.mark.slow
PEOPLE = 1_000
CPU_SECONDS = 2.5
WAIT_S = 60


@pytest.fixture
def crowd(tmp_path: Path) -> str:
    graph = og.Graph.init(
        str(tmp_path / "crowd"),
        "node Person { name: String @key  text: String? }",
        settings=og.Settings(storage_durability="os"),
    )
    names = [f"person {n}" for n in range(PEOPLE)]
    graph.load_frames({"Person": pa.table({"name": names, "text": names[::-1]})}, mode="append", index=False)
    return graph.uri


# A million pairs, and for each of them texts are compared one by one, many times over: minutes of work.
TESTS = " ".join(f"$p.{a} contains $q.{b}" for a in ("name", "text") for b in ("name", "text")) * 60
QUERY = f"query long() {{ match {{ $p: Person $q: Person {TESTS} }} return {{ count($p) as n }} }}"
SORTING = (
    "SELECT a.name AS x, b.name AS y, c.name AS z FROM node_Person a, node_Person b, node_Person c ORDER BY 3, 2, 1"
)


@pytest.mark.parametrize(
    "words", [("query", "-e", QUERY), ("sql", SORTING)], ids=["a query that compares", "SQL that spills"]
)
def test_ctrl_c_ends_a_long_read_with_one_line_and_leaves_nothing_in_temp(
    crowd: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    temp = tmp_path / "temp"
    temp.mkdir()
    before = sorted(path for path in Path(crowd).rglob("*"))
    environment = {**os.environ, "TMPDIR": str(temp), "OMNIGRAPH_QUERY_MEMORY_BYTES": "64 MiB"}
    command = [sys.executable, "-m", "omnigraph.cli.main", *words, "-s", crowd]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=environment) as process:
        until = time.monotonic() + WAIT_S
        while time.monotonic() < until and process.poll() is None and not is_amid(process.pid, temp, words[0]):
            time.sleep(0.02)
        assert process.poll() is None, "it ended before it could be interrupted"
        assert is_amid(process.pid, temp, words[0])
        os.kill(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=WAIT_S)

    assert (process.returncode, out, err) == (130, b"", b"interrupted\n")
    assert list(temp.iterdir()) == []
    assert sorted(path for path in Path(crowd).rglob("*")) == before


def is_amid(pid: int, temp: Path, command: str) -> bool:
    """Whether it computes; a statement that sorts has also put something aside by then."""
    return cpu_seconds(pid) >= CPU_SECONDS and (command == "query" or any(temp.rglob("*.*")))


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
