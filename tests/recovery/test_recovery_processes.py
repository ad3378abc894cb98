"""Locks, signals, full and read-only disks, with real processes."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from crash_world import TABLES, heads, pending_files, pins, rows_of, seen
from recovery_child import interrupted

from omnigraph.base.errors import Conflict, Kind
from omnigraph.base.ids import new_ulid
from omnigraph.engine.write.changes import Append
from omnigraph.graph import Graph
from omnigraph.settings import Settings
from processes import FORKED

PROGRAM = [sys.executable, str(Path(__file__).with_name("recovery_child.py"))]
DEFERRED = (
    "post_phase_a_pre_phase_b",
    "mid_phase_b",
    "post_phase_b_pre_manifest_commit",
    "post_manifest_commit_pre_phase_d",
    "post_phase_d",
)
ENDS = {signal.SIGINT: 130, signal.SIGTERM: -signal.SIGTERM}
pytestmark = pytest.mark.slow


def run(*arguments: str, prefix: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*prefix, *PROGRAM, *arguments], capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def holder(path: str) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([*PROGRAM, "hold", path], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


def test_a_write_waits_for_the_lock_only_so_long_and_names_the_holder(path: str, holder: subprocess.Popen[str]) -> None:
    graph = Graph.open(path, settings=Settings(write_lock_timeout_ms=300))
    before, started = seen(graph), time.monotonic()
    with pytest.raises(Conflict, match=f"branch 'main' is locked by {socket.gethostname()}:{holder.pid}") as refused:
        graph.write({t: Append(rows_of(t, ["next"], "next")) for t in TABLES})
    assert time.monotonic() - started >= 0.3
    assert refused.value.kind is Kind.CONFLICT
    assert seen(graph) == before
    assert graph.status().branches[0].lock is not None


def test_a_lock_whose_holder_was_killed_is_free(path: str, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    graph = Graph.open(path, settings=Settings(write_lock_timeout_ms=300))
    graph.write({t: Append(rows_of(t, ["next"], "next")) for t in TABLES})


def ended(path: str, point: str, number: signal.Signals, times: int, operation_id: str) -> int | None:
    """How a process that wrote ended, by its exit code; its write did not return."""
    heard, said = FORKED.Pipe(duplex=False)
    process = FORKED.Process(target=interrupted, args=(path, point, int(number), times, operation_id, said))
    process.start()
    said.close()
    process.join(120)
    with pytest.raises(EOFError):
        heard.recv()
    return process.exitcode


@pytest.mark.parametrize("number", ENDS, ids=lambda n: n.name)
@pytest.mark.parametrize(("window", "times"), [*((w, 1) for w in DEFERRED), ("mid_phase_b", 3)], ids=lambda v: str(v))
def test_a_signal_between_phase_a_and_d_waits_until_the_write_is_complete(
    path: str, number: signal.Signals, window: str, times: int
) -> None:
    operation_id = new_ulid()
    assert ended(path, f"load.{window}", number, times, operation_id) == ENDS[number]
    assert pending_files(path) == [], "the signal took effect before phase D"
    graph = Graph.open(path)
    assert graph.operation(operation_id).status == "committed"
    assert graph.recoveries().records == ()
    assert heads(graph) == pins(graph)


@pytest.mark.parametrize("number", ENDS, ids=lambda n: n.name)
@pytest.mark.parametrize("point", ["stage.files_written", "load.pre_phase_a"])
def test_a_signal_before_phase_a_cancels_the_write(path: str, number: signal.Signals, point: str) -> None:
    operation_id, before = new_ulid(), seen(Graph.open(path))
    assert ended(path, point, number, 1, operation_id) == ENDS[number]
    graph = Graph.open(path)
    assert graph.operation(operation_id).status == "refused"
    assert (seen(graph), pending_files(path)) == (before, [])


@pytest.fixture(scope="module")
def own_mounts() -> tuple[str, ...]:
    """A prefix that runs a program with mounts nobody else sees."""
    prefix = ("unshare", "--mount", "--propagation", "private")
    allowed = shutil.which("unshare") and os.geteuid() == 0
    if not allowed or subprocess.run([*prefix, "mount", "-t", "tmpfs", "none", "/mnt"], check=False).returncode:
        pytest.skip("a private mount namespace is not permitted here (needs root and `unshare`)")
    return prefix


def test_a_full_disk_is_told_and_freeing_space_makes_the_graph_whole(
    tmp_path: Path, own_mounts: tuple[str, ...]
) -> None:
    """With every amount of room from nothing to enough, so that each phase meets the end of the disk once."""
    rooms = [*range(0, 40_960, 4096), *range(40_960, 131_072, 8192), 1 << 20]
    ended = run("full_disk", str(tmp_path), *map(str, rooms), prefix=own_mounts)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    found = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [f["room"] for f in found] == rooms
    for f in found:
        told = f["told"]
        assert told in ("Unavailable:unavailable", "RecoveryRequired:in_doubt", "committed"), f
        assert f["shows"] in ("before", "after"), f
        assert f["shows"] == ("after" if f["status"] == "committed" else "before"), f
        assert told != "committed" or f["shows"] == "after", f
        assert told != "Unavailable:unavailable" or f["status"] == "refused", f
        assert f["readable"] or told == "committed", f
        assert f["pending"] == [], f
    assert {f["told"] for f in found} == {"Unavailable:unavailable", "RecoveryRequired:in_doubt", "committed"}
    assert [f for f in found if not f["converged"]] == []


def test_a_read_only_disk_is_unavailable_for_writers_and_open_to_readers(
    tmp_path: Path, own_mounts: tuple[str, ...]
) -> None:
    ended = run("read_only", str(tmp_path), prefix=own_mounts)
    assert ended.returncode == 0, ended.stderr
    *refused, rows = ended.stdout.splitlines()
    assert [r.split(":")[:2] for r in refused] == [["Unavailable", "unavailable"]] * 3
    assert all(r.split(":", 2)[2] for r in refused), "each says what to do"
    assert rows == "15"
