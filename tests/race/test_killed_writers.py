"""One of several writers is killed at random moments, again and again; what it had been told stays true."""

import random
from multiprocessing.connection import wait
from pathlib import Path
from typing import Any

import pytest
from race_checks import assert_at_rest, assert_keys_once, assert_linear
from race_helpers import TABLES, AckLog, Ground, Told, read_at, write_until_done

from graph_places import DISK, S3, Home, Place
from processes import FORKED

pytestmark = pytest.mark.slow
FULL = [pytest.mark.full, pytest.mark.timeout(900)]
# How often the victim is killed, and after how many fragments the manifest is compacted meanwhile.
TRIALS = [
    (DISK, 6, 50),
    (DISK, 6, 8),
    (S3, 3, 8),
    *(pytest.param(where, kills, n, marks=FULL) for where, kills in ((DISK, 30), (S3, 8)) for n in (50, 8)),
]
LIFE_S_MAX = {DISK: 0.2, S3: 0.8}
BEGIN_S_MAX = 120


class Mortal:
    """A writer process that can be killed and started again; it goes on where its log ends."""

    def __init__(self, home: Home, keys: list[str], log: Path, compact_fragments: int) -> None:
        self.arguments = (home, keys, str(log), compact_fragments)
        self.keys, self.log = keys, AckLog(log)
        self.process: Any = None
        self.begun: Any = None

    def start(self) -> None:
        # A pipe, for whoever is killed while it sets an event keeps the event's lock for ever.
        self.begun, told = FORKED.Pipe(duplex=False)
        self.process = FORKED.Process(target=write_until_done, args=(*self.arguments, told))
        self.process.start()
        told.close()

    def kill_after(self, seconds: float) -> bool:
        """Whether it was killed that long after it began to write; it may have ended on its own before."""
        assert self.begun.poll(BEGIN_S_MAX), "it does not begin to write"
        wait([self.process.sentinel], seconds)
        killed = self.process.exitcode is None
        self.process.kill()
        self.process.join()
        return killed

    def finish(self) -> list[Told]:
        self.process.join(300)
        assert self.process.exitcode == 0
        return self.log.answers()


@pytest.mark.parametrize(("where", "kills", "compact_fragments"), TRIALS)
def test_writes_acknowledged_before_a_kill_are_present_whole_and_once(
    tmp_path: Path, ground: Ground, place: Place, where: str, kills: int, compact_fragments: int
):
    dice = random.Random(kills * compact_fragments)
    writers = [
        Mortal(ground, [f"w{w}-{i}" for i in range(6 * kills)], tmp_path / f"{w}.log", compact_fragments)
        for w in range(3)
    ]
    for writer in writers:
        writer.start()
    victim = writers[0]
    killed = 0
    for _ in range(kills):
        killed += victim.kill_after(dice.uniform(0.0, LIFE_S_MAX[where]))
        victim.start()
    told = [answer for writer in writers for answer in writer.finish()]
    assert killed > kills // 2
    ground.open().close()
    assert_nothing_acknowledged_is_lost(ground, told)
    assert_linear(ground)
    assert_keys_once(ground)
    assert_at_rest(ground, place)


def assert_nothing_acknowledged_is_lost(home: Home, told: list[Told]) -> None:
    """A write killed before its answer may have landed too, then whole: in both tables or in none."""
    graph = home.open("r")
    snapshot = graph.snapshot()
    left, right = (read_at(graph, snapshot, table) for table in TABLES)
    assert left == right
    assert len(left) == len(set(left))
    assert {t.key for t in told if t.commit_id} <= set(left)
    commits = {c.graph_commit_id for c in graph.list_commits()}
    assert {t.commit_id for t in told if t.commit_id} <= commits
