"""Ends what Spark does for one read once its time has passed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from pyspark.sql import SparkSession

from omnigraph.base.ids import new_ulid
from omnigraph.engine.read.limits import ReadLimits
from omnigraph.pipeline.failures import unless_gone
from omnigraph.pipeline.progress import is_connect

# A job that begins after an interruption is not met by it, so it is repeated until the read has ended.
_AGAIN_S = 0.2


@dataclass(frozen=True)
class _Tags:
    """Marks what this thread has Spark do, and ends what bears a mark, from any thread."""

    add: Callable[[str], None]
    remove: Callable[[str], None]
    stop: Callable[[str], object]


def _tags(session: Any) -> _Tags:
    if is_connect(session):
        return _Tags(session.addTag, session.removeTag, session.interruptTag)
    # A session in this process ends only what bears a tag of the calling thread; its context ends what bears the tag.
    context = session.sparkContext
    return _Tags(context.addJobTag, context.removeJobTag, context.cancelJobsWithTag)


@contextmanager
def deadline(session: SparkSession, limits: ReadLimits) -> Iterator[None]:
    """Refuse what takes longer than the limits allow; whatever Spark says when it is stopped is not told."""
    if not limits.timeout_ms:
        yield
        return
    tag, tags = f"omnigraph-{new_ulid()}", _tags(session)
    done, passed = threading.Event(), threading.Event()

    def watch() -> None:
        if not done.wait(limits.timeout_ms / 1000):
            passed.set()
            while not done.is_set():
                tags.stop(tag)
                done.wait(_AGAIN_S)

    watcher = threading.Thread(target=watch, daemon=True)
    tags.add(tag)
    watcher.start()
    try:
        yield
    except Exception as error:
        if passed.is_set():
            raise limits.too_slow() from error
        raise
    finally:
        done.set()
        watcher.join()
        with unless_gone():
            tags.remove(tag)
    if passed.is_set():
        raise limits.too_slow()
