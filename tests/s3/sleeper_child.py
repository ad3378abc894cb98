"""A writer in a process of its own that falls asleep where it is told. One JSON command per line, one answer each."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parent))

from s3_scene import both

from omnigraph.base import failpoints
from omnigraph.base.errors import OmniError, RecoveryRequired
from omnigraph.commit import protocol
from omnigraph.commit.lease import LeasedLock
from omnigraph.commit.plan import LOAD
from omnigraph.engine.write.changes import Annotations, plan_changes
from omnigraph.graph import Graph, OpenMode
from omnigraph.manifest.publisher import ManifestBatchPublisher
from omnigraph.settings import Settings

_true_time_ns = time.time_ns
# Right after the lease was checked, so that what follows is done late.
_CALLS = {"commit_staged": (protocol, "commit_staged"), "publish": (ManifestBatchPublisher, "publish")}


def fall_asleep() -> None:
    os.kill(os.getpid(), signal.SIGSTOP)


def sleep_before_call(name: str, nth: int) -> Callable[[], None]:
    """Sleep before the nth call of a step; returns what puts the step back."""
    place, attribute = _CALLS[name]
    step, calls = getattr(place, attribute), 0

    def late(*given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == nth:
            fall_asleep()
        return step(*given, **named)

    setattr(place, attribute, late)
    return lambda: setattr(place, attribute, step)


def blinded() -> Callable[[], None]:
    """Every look at the lease finds it in order, as if each sleep came right after a look; returns the way back."""
    look = LeasedLock.check
    LeasedLock.check = lambda _lock: None  # type: ignore[method-assign]
    return lambda: setattr(LeasedLock, "check", look)


def write(
    settings: dict[str, Any], uri: str, operation_id: str, name: str, stop: str, skew_s: int, blind: bool
) -> dict[str, str]:
    """`stop`: a failpoint, or `commit_staged:2` for the moment before a call; empty for none."""
    time.time_ns = lambda: _true_time_ns() + skew_s * 1_000_000_000
    put_back: list[Callable[[], None]] = [failpoints.disarm_all]
    if blind:
        put_back.append(blinded())
    try:
        # Opened as a reader, so that the write itself is the first to take the lease.
        reader = Graph.open(uri, OpenMode.READ_ONLY, settings=Settings(**settings))
        graph = Graph(reader.context, OpenMode.READ_WRITE)
        if ":" in stop:
            put_back.append(sleep_before_call(stop.split(":")[0], int(stop.split(":")[1])))
        elif stop:
            failpoints.arm(stop, fall_asleep)
        plan = plan_changes(graph.view(), both(name), LOAD, Annotations(), operation_id)
        receipt = protocol.commit_plan(graph.context, plan)
        return {"outcome": "committed", "commit": receipt.graph_commit_id}
    except RecoveryRequired as error:
        return {"outcome": "in doubt", "operation": error.operation_id, "error": str(error)}
    except OmniError as error:
        return {"outcome": "refused", "error": f"{type(error).__name__}: {error}", "hint": error.hint}
    finally:
        for step in put_back:
            step()


if __name__ == "__main__":
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(write(**json.loads(line))), flush=True)
