"""One of several writers is killed at random moments, again and again; what it had been told stays true."""

import multiprocessing
import random
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest
from race_checks import assert_at_rest, assert_keys_once, assert_linear
from race_helpers import TABLES, AckLog, Told, read_at, write_until_done

from omnigraph import Graph

pytestmark = pytest.mark.slow
SPAWN = multiprocessing.get_context("spawn")
KILLS = [6, pytest.param(30, marks=[pytest.mark.full, pytest.mark.timeout(900)])]


class Mortal:
    """A writer process that can be killed and started again; it goes on where its log ends."""

    def __init__(self, uri: str, keys: list[str], log: Path, compact_fragments: int) -> None:
        self.writing = SPAWN.Event()
        self.arguments = (uri, keys, str(log), compact_fragments, self.writing)
        self.keys, self.log = keys, AckLog(log)
        self.process: Any = None

    def start(self) -> None:
        self.writing.clear()
        self.process = SPAWN.Process(target=write_until_done, args=self.arguments)
        self.process.start()

    def kill_after(self, seconds: float) -> bool:
        """Whether it was killed that long after it began to write; it may have ended on its own before."""
        assert self.writing.wait(60)
        wait([self.process.sentinel], seconds)
        killed = self.process.exitcode is None
        self.process.kill()
        self.process.join()
        return killed

    def finish(self) -> list[Told]:
        self.process.join(300)
        assert self.process.exitcode == 0
        return self.log.answers()


@pytest.mark.parametrize("kills", KILLS)
@pytest.mark.parametrize("compact_fragments", [50, 8])
def test_writes_acknowledged_before_a_kill_are_present_whole_and_once(tmp_path, graph_uri, kills, compact_fragments):
    dice = random.Random(kills * compact_fragments)
    writers = [
        Mortal(graph_uri, [f"w{w}-{i}" for i in range(6 * kills)], tmp_path / f"{w}.log", compact_fragments)
        for w in range(3)
    ]
    for writer in writers:
        writer.start()
    victim = writers[0]
    killed = 0
    for _ in range(kills):
        killed += victim.kill_after(dice.uniform(0.0, 0.2))
        victim.start()
    told = [answer for writer in writers for answer in writer.finish()]
    assert killed > kills // 2
    Graph.open(graph_uri).close()
    assert_nothing_acknowledged_is_lost(graph_uri, told)
    assert_linear(graph_uri)
    assert_keys_once(graph_uri)
    assert_at_rest(graph_uri)


def assert_nothing_acknowledged_is_lost(uri: str, told: list[Told]) -> None:
    """A write killed before its answer may have landed too, then whole: in both tables or in none."""
    graph = Graph.open(uri, "r")
    snapshot = graph.snapshot()
    left, right = (read_at(uri, snapshot, table) for table in TABLES)
    assert left == right
    assert len(left) == len(set(left))
    assert {t.key for t in told if t.commit_id} <= set(left)
    commits = {c.graph_commit_id for c in graph.list_commits()}
    assert {t.commit_id for t in told if t.commit_id} <= commits
