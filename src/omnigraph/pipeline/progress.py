"""How far Spark is with the work of this thread: tasks done and tasks known so far.

The total grows while Spark plans: a query becomes several jobs, a job several stages. Neither number ever falls.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeAlias

from py4j.protocol import Py4JError
from pyspark.sql import SparkSession

from omnigraph.base.ids import new_ulid

TellTasks: TypeAlias = Callable[[int, int], None]
"""Told how many tasks are done, and of how many."""
_POLL_SECONDS = 0.25


@contextmanager
def watched(spark: SparkSession, tell: TellTasks | None) -> Iterator[None]:
    """Tell about the Spark work of the block; an interrupt ends that work too."""
    if is_connect(spark):
        with _watched_connect(spark, tell):
            yield
        return
    context = spark.sparkContext
    group = f"omnigraph-{new_ulid()}"
    before = [(name, context.getLocalProperty(name)) for name in ("spark.jobGroup.id", "spark.job.description")]
    context.setJobGroup(group, "omnigraph pipeline")
    watcher = _Watcher(context, group, tell) if tell is not None else None
    try:
        yield
    except KeyboardInterrupt:
        context.cancelJobGroup(group)
        raise
    finally:
        if watcher is not None:
            watcher.stop()
        for name, value in before:
            context.setLocalProperty(name, value)  # type: ignore[arg-type]


def is_connect(spark: Any) -> bool:
    """Whether the session is a client of a Spark Connect server, which has no context in this process."""
    return type(spark).__module__.startswith("pyspark.sql.connect")


class _Watcher:
    """Polls the status of a job group in a thread of its own."""

    def __init__(self, context: Any, group: str, tell: TellTasks) -> None:
        self._context = context
        self._group = group
        self._tell = tell
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
            for job in tracker.getJobIdsForGroup(self._group):
                info = tracker.getJobInfo(job)
                for stage in info.stageIds if info is not None else ():
                    found = tracker.getStageInfo(stage)
                    if found is not None and found.numTasks:
                        done = max(found.numCompletedTasks, self._stages.get(stage, (0, 0))[0])
                        self._stages[stage] = (done, found.numTasks)
        except (Py4JError, ConnectionError, OSError):
            return  # Spark is gone; whoever waits for the work will hear of it.
        if self._stages:
            self._tell(sum(d for d, _ in self._stages.values()), sum(t for _, t in self._stages.values()))


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
