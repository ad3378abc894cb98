"""How far Spark is with the work of this thread: tasks done and tasks known so far.

The total grows while Spark plans: a query becomes several jobs, a job several stages. Neither number ever falls.
Work whose executors are all gone is ended: a driver that has lost its cluster would wait for ever.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from omnigraph.base.errors import OmniError, Unavailable
from omnigraph.base.ids import new_ulid
from omnigraph.pipeline.failures import unless_gone
from omnigraph.pipeline.masters import is_local

TellTasks: TypeAlias = Callable[[int, int], None]
"""Told how many tasks are done, and of how many."""
_POLL_SECONDS = 0.25
# How long a job may wait for new executors after it has lost all it had.
LOST_SECONDS = 60.0


@contextmanager
def watched(spark: SparkSession, tell: TellTasks | None) -> Iterator[None]:
    """Tell about the Spark work of the block; an interrupt ends that work too."""
    if is_connect(spark):
        with _watched_connect(spark, tell):
            yield
        return
    context: Any = spark.sparkContext
    group = f"omnigraph-{new_ulid()}"
    before = [(name, context.getLocalProperty(name)) for name in ("spark.jobGroup.id", "spark.job.description")]
    context.setJobGroup(group, "omnigraph pipeline")
    watcher = _Watcher(context, group, tell) if tell is not None or not is_local(context.master) else None
    try:
        yield
    except KeyboardInterrupt:
        with unless_gone():
            context.cancelJobGroup(group)
        raise
    except OmniError as error:
        if watcher is not None and watcher.is_lost:
            raise _lost(context.master) from error
        raise
    finally:
        if watcher is not None:
            watcher.stop()
        with unless_gone():
            for name, value in before:
                context.setLocalProperty(name, value)


def is_connect(spark: Any) -> bool:
    """Whether the session is a client of a Spark Connect server, which has no context in this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


class _Watcher:
    """Polls the status of a job group in a thread of its own."""

    def __init__(self, context: Any, group: str, tell: TellTasks | None) -> None:
        self.is_lost = False
        self._context = context
        self._group = group
        self._tell = tell
        self._may_be_lost = not is_local(context.master)
        self._had_executors = False
        self._alone_since: float | None = None
        self._stages: dict[int, tuple[int, int]] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="omnigraph-progress", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._ended.wait(_POLL_SECONDS):
            self._look()
        self._look()

    def _look(self) -> None:
        try:
            tracker = self._context.statusTracker()
            waits = False
            for job in tracker.getJobIdsForGroup(self._group):
                info = tracker.getJobInfo(job)
                waits = waits or (info is not None and info.status == "RUNNING")
                for stage in info.stageIds if info is not None else ():
                    found = tracker.getStageInfo(stage)
                    if found is not None and found.numTasks:
                        done = max(found.numCompletedTasks, self._stages.get(stage, (0, 0))[0])
                        self._stages[stage] = (done, found.numTasks)
            if self._may_be_lost:
                self._mind_executors(waits)
        except (Py4JError, ConnectionError, OSError):
            return  # Spark is gone; whoever waits for the work will hear of it.
        if self._stages and self._tell is not None:
            self._tell(sum(d for d, _ in self._stages.values()), sum(t for _, t in self._stages.values()))

    def _mind_executors(self, waits: bool) -> None:
        # The driver is in the list too.
        if self._context._jsc.sc().getExecutorMemoryStatus().size() > 1:
            self._had_executors, self._alone_since = True, None
        elif self._had_executors and waits and not self.is_lost:
            now = time.monotonic()
            self._alone_since = self._alone_since or now
            if now - self._alone_since >= LOST_SECONDS:
                self.is_lost = True
                self._context.cancelJobGroup(self._group)


def _lost(master: str) -> Unavailable:
    return Unavailable(
        f"the Spark cluster at {master} was lost: no executor is left",
        "Nothing was committed. Run again when the cluster is back.",
        what="spark",
    )


@contextmanager
def _watched_connect(spark: Any, tell: TellTasks | None) -> Iterator[None]:
    if tell is None:
        yield
        return
    handler = connect_handler(tell)
    spark.registerProgressHandler(handler)
    try:
        yield
    except KeyboardInterrupt:
        spark.interruptAll()
        raise
    finally:
        spark.removeProgressHandler(handler)


def connect_handler(tell: TellTasks) -> Callable[..., None]:
    """A progress handler for Spark Connect, which calls it with exactly these keywords."""
    operations: dict[str, tuple[int, int]] = {}

    def handle(stages: Any, inflight_tasks: int, operation_id: str, done: bool) -> None:
        counted = list(stages or ())
        if counted:
            finished = sum(stage.num_completed_tasks for stage in counted)
            operations[operation_id] = (finished, sum(stage.num_tasks for stage in counted))
            tell(sum(d for d, _ in operations.values()), sum(t for _, t in operations.values()))

    return handle
