"""The store itself is killed under load and started again: nothing acknowledged is lost, nobody is told a lie."""

import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from race_checks import assert_at_rest, assert_keys_once, assert_linear
from race_helpers import SCHEMA, TABLES, Told, read_at
from restart_writers import NOBODY, WINDOWS, Failed, Logs, Signals, write_numbers

from graph_places import Home, S3Place
from omnigraph import Graph
from omnigraph.manifest.projections import projected_ids
from processes import FORKED
from s3_server import BUCKET, S3Server

pytestmark = pytest.mark.slow
WRITERS = len(WINDOWS)
# How long the store is away, by turns: shorter, about as long, and longer than an impatient client tries again.
AWAY_S = [0.0, 1.0, 3.0]
IMPATIENT = {"storage_retry_timeout_ms": 400}
PROGRESS_S_MAX = 90


@pytest.fixture
def server(tmp_path: Path) -> Iterator[S3Server]:
    """A server of this test alone, because it dies."""
    folder = tmp_path / "store"
    folder.mkdir()
    found = S3Server(folder)
    found.start()
    yield found
    found.kill()


def test_a_killed_server_keeps_every_object_it_acknowledged(server: S3Server) -> None:
    """The ground the next test stands on: what SeaweedFS answered lies in files of the system, not in its memory."""
    store, stop = replace(server.access(), retries=0).open(BUCKET, "raw"), threading.Event()
    acknowledged: dict[str, bytes] = {}

    def put_numbers(writer: int) -> None:
        for number in range(5_000):
            if stop.wait(0.01):
                return
            key = f"{writer}-{number}"
            data = f"{key} ".encode() * random.Random(key).choice([1, 100, 5_000])
            try:
                store.put(key, data, mode="create", use_multipart=False)
            except Exception:
                stop.wait(0.05)
                continue
            acknowledged[key] = data

    threads = [threading.Thread(target=put_numbers, args=(w,)) for w in range(4)]
    for thread in threads:
        thread.start()
    dice = random.Random(1)
    try:
        for _ in range(3):
            stop.wait(dice.uniform(0.2, 0.7))
            server.kill()
            server.start()
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    patient = server.access().open(BUCKET, "raw")
    lost = [key for key, data in acknowledged.items() if bytes(patient.get(key).bytes()) != data]
    assert acknowledged
    assert lost == []


class Crew:
    """Writer processes on one graph, and what they were told so far."""

    def __init__(self, home: Home, folder: Path) -> None:
        self.logs = [Logs.of(folder, w) for w in range(WRITERS)]
        self._signals = Signals(FORKED.Value("i", NOBODY), *(FORKED.Event() for _ in range(3)))
        # One writer waits for the store to come back, the others soon give up and go on with the next number.
        homes = [home, *[replace(home, settings=replace(home.settings, **IMPATIENT))] * (WRITERS - 1)]
        self._processes = [
            FORKED.Process(target=write_numbers, args=(h, w, str(folder), self._signals)) for w, h in enumerate(homes)
        ]

    def __enter__(self) -> "Crew":
        for process in self._processes:
            process.start()
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.join()

    def wait_until_each_wrote(self) -> None:
        before = [len(logs.acks.answers()) for logs in self.logs]
        deadline = time.monotonic() + PROGRESS_S_MAX
        while any(len(logs.acks.answers()) <= was for logs, was in zip(self.logs, before, strict=True)):
            assert time.monotonic() < deadline, f"a writer does not write any more: {self.failures()[-3:]}"
            assert all(p.is_alive() for p in self._processes), "a writer died of an error it did not expect"
            time.sleep(0.05)

    def kill_within_a_commit(self, server: S3Server, writer: int) -> None:
        """Where a dying store leaves most in doubt: this writer stands between its sidecar and its publish."""
        signals = self._signals
        signals.gone.clear()
        signals.within.clear()
        signals.wanted.value = writer
        assert signals.within.wait(PROGRESS_S_MAX), "the writer does not write any more"
        server.kill()
        signals.gone.set()

    def finish(self) -> None:
        self._signals.stop.set()
        for process in self._processes:
            process.join(120)
            assert process.exitcode == 0

    def acknowledged(self) -> list[Told]:
        return [told for logs in self.logs for told in logs.acks.answers()]

    def failures(self) -> list[Failed]:
        return [failed for logs in self.logs for failed in logs.failures.answers()]


@pytest.mark.parametrize("kills", [3, pytest.param(15, marks=[pytest.mark.full, pytest.mark.timeout(900)])])
def test_writers_lose_nothing_acknowledged_when_their_store_is_killed_again_and_again(
    server: S3Server, tmp_path: Path, tell: Any, kills: int
) -> None:
    place = S3Place(server)
    home = Home(server.uri(), replace(place.settings, write_lease_lifetime_ms=3_000, write_lease_heartbeat_ms=500))
    home.init(SCHEMA).close()
    with Crew(home, tmp_path) as crew:
        for number in range(kills):
            crew.wait_until_each_wrote()
            if number % WRITERS:
                crew.kill_within_a_commit(server, writer=number % WRITERS)
            else:
                time.sleep(random.uniform(0.0, 1.0))
                server.kill()
            time.sleep(AWAY_S[number % len(AWAY_S)])
            server.start()
        crew.wait_until_each_wrote()
        crew.finish()

    graph = home.open()
    acknowledged, failures = crew.acknowledged(), crew.failures()
    assert_linear(home)
    assert_keys_once(home)
    assert_at_rest(home, place)
    commits = {c.graph_commit_id for c in graph.list_commits()}
    assert projected_ids(graph.context.root, None) == commits, "the log of commits is not whole"
    assert_both_tables_grow_by_one_key_with_each_commit(graph)
    assert_acknowledged_once(graph, acknowledged)
    committed = assert_failures_told_the_truth(graph, failures)
    assert keys_of(graph) == {t.key for t in acknowledged} | committed
    assert any(f.operation_id for f in failures), "no write was in doubt when the store was away"
    kinds = ", ".join(f"{count} {name}" for name, count in sorted(Counter(f.error for f in failures).items()))
    tell(f"store killed {kills} times: {len(acknowledged)} writes acknowledged; {kinds}; {len(commits)} commits")


def keys_of(graph: Graph) -> set[str]:
    return set(read_at(graph, graph.snapshot(), TABLES[0]))


def assert_both_tables_grow_by_one_key_with_each_commit(graph: Graph) -> None:
    """At every commit both tables hold the same, and just the key of the write more than at the one before."""
    before: set[str] = set()
    for commit in graph.list_commits()[::-1]:
        snapshot = graph.snapshot_of(commit.graph_commit_id)
        left, right = (read_at(graph, snapshot, table) for table in TABLES)
        assert left == right
        assert len(left) == len(set(left))
        assert [snapshot.tables[t].row_count for t in TABLES] == [len(left)] * 2
        assert set(left) == before | ({commit.message} if commit.message else set())
        before = set(left)


def assert_acknowledged_once(graph: Graph, acknowledged: list[Told]) -> None:
    commits = {c.graph_commit_id: c for c in graph.list_commits()}
    messages = Counter(c.message for c in commits.values() if c.message)
    assert max(messages.values()) == 1, "a write was committed twice"
    for told in acknowledged:
        commit = commits[told.commit_id or ""]
        assert (commit.message, commit.manifest_version) == (told.key, told.version)
    assert {t.key for t in acknowledged} <= keys_of(graph)


def assert_failures_told_the_truth(graph: Graph, failures: list[Failed]) -> set[str]:
    """Every error was ours; one in doubt is resolved by its operation id, any other left nothing.

    Returns the keys that are in the graph although their writers met an error.
    """
    assert [f for f in failures if not f.is_typed] == []
    stored, committed = keys_of(graph), set()
    for failed in failures:
        if failed.operation_id is None:
            assert failed.key not in stored, f"{failed.error} said that nothing happened: {failed.text}"
            continue
        outcome = graph.operation(failed.operation_id)
        assert outcome.status in ("committed", "rolled_back", "refused")
        assert (failed.key in stored) == (outcome.status == "committed")
        assert failed.found_soon in (None, "pending", outcome.status), "an operation's outcome changed"
        if outcome.status == "committed":
            assert outcome.commit is not None
            assert outcome.commit.message == failed.key
            committed.add(failed.key)
    return committed
