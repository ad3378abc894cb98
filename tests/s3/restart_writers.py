"""Writers that go on while their store dies and comes back, and the log each keeps of what it was told.

They live here, not in the test module, because processes import them by name.
"""

import random
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from race_helpers import TABLES, AckLog, Told, rows

from graph_places import Home
from omnigraph import Graph, OmniError, RecoveryRequired, Upsert
from omnigraph.base import failpoints
from omnigraph.commit.plan import LOAD

WRITES_MAX = 2_000
# Between two writes, so that every writer gets its turn and the history stays short enough to read at every commit.
PAUSE_S = 0.1
WAIT_S_MAX = 30
NOBODY = -1
# Where each writer may find the store gone: anywhere, before all its tables have moved, before it publishes.
WINDOWS = (failpoints.WINDOWS, failpoints.WINDOWS[1:3], failpoints.WINDOWS[3:4])


@dataclass(frozen=True)
class Failed:
    """A write that was not acknowledged: what was raised, and what its operation was found to be soon after."""

    key: str
    error: str
    text: str
    is_typed: bool
    operation_id: str | None = None
    found_soon: str | None = None


@dataclass(frozen=True)
class Logs:
    """What one writer was told."""

    acks: AckLog
    failures: AckLog

    @staticmethod
    def of(folder: str | Path, writer: int) -> "Logs":
        return Logs(AckLog(f"{folder}/{writer}.acks"), AckLog(f"{folder}/{writer}.failures", Failed))


@dataclass(frozen=True)
class Signals:
    """Between the test and its writers: the `wanted` one stops at its window until the store is `gone`."""

    wanted: Any
    stop: Any
    within: Any
    gone: Any

    def meet(self, writer: int) -> None:
        if self.wanted.value == writer:
            self.wanted.value = NOBODY
            self.within.set()
            self.gone.wait(WAIT_S_MAX)


def write_numbers(home: Home, writer: int, folder: str, signals: Signals) -> None:
    """Each number once into both tables, on one handle; a number that failed is never tried again."""
    logs, graph = Logs.of(folder, writer), home.open()
    for number in range(WRITES_MAX):
        if signals.stop.wait(PAUSE_S):
            return
        key = f"w{writer}-{number}"
        failpoints.disarm_all()
        failpoints.arm(f"{LOAD.name}.{random.choice(WINDOWS[writer])}", lambda: signals.meet(writer))
        try:
            receipt = graph.write({t: Upsert(rows(key)) for t in TABLES}, writer=LOAD, message=key)
        except Exception as error:
            logs.failures.note(_failed(graph, key, error))
            continue
        logs.acks.note(Told(key, list(TABLES), receipt.graph_commit_id, receipt.graph_version))


def _failed(graph: Graph, key: str, error: Exception) -> Failed:
    told = (key, type(error).__name__, str(error), isinstance(error, OmniError))
    if not isinstance(error, RecoveryRequired):
        return Failed(*told)
    return Failed(*told, error.operation_id, _found_soon(graph, error.operation_id))


def _found_soon(graph: Graph, operation_id: str) -> str | None:
    """What the error's own advice leads to; None while the store does not answer."""
    try:
        graph.refresh()
        return graph.operation(operation_id).status
    except OmniError:
        return None
