"""An apply in a process of its own that falls asleep where it is told, and is told afterwards what became of it."""

from __future__ import annotations

import os
import re
import signal
import time
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection
from typing import Any

import omnigraph as og
from graph_places import unusual
from omnigraph.base import failpoints
from omnigraph.settings import Settings
from processes import FORKED

LEASE_TIMES = {"write_lease_lifetime_ms": 1500, "write_lease_heartbeat_ms": 400}
_WRITES = ("put", "put_if_absent", "put_if_match", "delete")
_ANSWER_S_MAX = 60


@dataclass(frozen=True)
class Bed:
    """Where an apply falls asleep: at a failpoint, or before the first write of an object whose key matches.

    `fails_at`: the failpoint at which it goes wrong, so that it takes itself back.
    """

    point: str = ""
    key: str = ""
    verbs: tuple[str, ...] = _WRITES
    fails_at: str = ""


def _fall_asleep() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def _sleep_before_write(store: Any, bed: Bed) -> None:
    """Right before the request goes out, so that no look at a lease comes between."""
    slept: list[str] = []

    def late(real: Any) -> Any:
        def call(self: Any, key: str, *given: Any) -> Any:
            if not slept and re.search(bed.key, key):
                slept.append(key)
                _fall_asleep()
            return real(self, key, *given)

        return call

    for verb in bed.verbs:
        setattr(store, verb, late(getattr(store, verb)))


def _apply(to: Connection, uri: str, settings: dict[str, Any], source: str, bed: Bed) -> None:
    # Whoever wakes it waits for its end, perhaps with the lock of main in hand.
    graph = og.Graph.open(uri, settings=replace(Settings(**settings), write_lock_timeout_ms=700))
    if bed.key:
        _sleep_before_write(type(graph.context.objects), bed)
    if bed.point:
        failpoints.arm(bed.point, _fall_asleep)
    if bed.fails_at:
        failpoints.arm(bed.fails_at, failpoints.fail)
    try:
        to.send("applied" if graph.schema_apply(source).applied else "nothing")
    except og.OmniError as error:
        to.send(f"{type(error).__name__}: {error}")


class SleepingApply:
    """Asleep when it is made; its lease has run out by then."""

    def __init__(self, graph: og.Graph, source: str, bed: Bed) -> None:
        self._answer, to = FORKED.Pipe(duplex=False)
        given = (to, graph.uri, unusual(graph.settings), source, bed)
        self._process = FORKED.Process(target=_apply, args=given, daemon=True)
        self._process.start()
        to.close()
        self._wait_until_asleep()
        time.sleep(LEASE_TIMES["write_lease_lifetime_ms"] / 1000 + 0.2)

    def _wait_until_asleep(self) -> None:
        """It is no child of this process, so the system tells its state by a file."""
        deadline = time.monotonic() + _ANSWER_S_MAX
        while time.monotonic() < deadline:
            with open(f"/proc/{self._process.pid}/stat", encoding="utf-8") as file:
                if file.read().rsplit(")", 1)[1].split()[0] == "T":
                    return
            assert not self._answer.poll(0.05), f"it ended instead of falling asleep: {self._answer.recv()}"
        raise AssertionError("it did not fall asleep")

    def wake(self) -> str:
        """Let it go on to its end; what it was told."""
        assert self._process.pid is not None
        os.kill(self._process.pid, signal.SIGCONT)
        assert self._answer.poll(_ANSWER_S_MAX), "no answer came"
        told = str(self._answer.recv())
        self._process.join()
        return told

    def end(self) -> None:
        self._process.kill()
        self._process.join()
