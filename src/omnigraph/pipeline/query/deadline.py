"""Ends what Spark does for one read once its time has passed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from pyspark.sql import SparkSession

from omnigraph.base.ids import new_ulid
from omnigraph.engine.read.limits import ReadLimits

# A job that begins after an interruption is not met by it, so it is repeated until the read has ended.
_AGAIN_S = 0.2


@contextmanager
def deadline(session: SparkSession, limits: ReadLimits) -> Iterator[None]:
    """Refuse what takes longer than the limits allow; whatever Spark says when it is stopped is not told."""
    if not limits.timeout_ms:
        yield
        return
    tag = f"omnigraph-{new_ulid()}"
    done, passed = threading.Event(), threading.Event()

    def watch() -> None:
        if not done.wait(limits.timeout_ms / 1000):
            passed.set()
            while not done.is_set():
                session.interruptTag(tag)
                done.wait(_AGAIN_S)

    watcher = threading.Thread(target=watch, daemon=True)
    session.addTag(tag)
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
        session.removeTag(tag)
    if passed.is_set():
        raise limits.too_slow()
