"""The bytes of a batch that Spark hands to a worker at once.

With any limit Spark weighs the batch before each row, which takes longer than all else it does to hand rows over. So
sessions of ours have none; only their number bounds the rows, except where a row may be as large as a file.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from pyspark.sql import SparkSession

from omnigraph.base.errors import OmniError
from omnigraph.pipeline.failures import spark_failures

BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
UNLIMITED_BYTES = str((1 << 31) - 1)
_FEW_BYTES = str(16 << 20)
_bounding = threading.Lock()


@contextmanager
def few_bytes_at_once(spark: SparkSession) -> Iterator[None]:
    """Meanwhile there is a limit; a session that has one keeps it."""
    # Who reads beside us only reads more slowly; but two of us must not take each other's limit for the session's.
    with _bounding:
        if not _set(spark, UNLIMITED_BYTES, _FEW_BYTES):
            yield
            return
        try:
            yield
        finally:
            # Where Spark is gone, there is nothing to take back, and why it went is told already.
            with suppress(OmniError):
                _set(spark, _FEW_BYTES, UNLIMITED_BYTES)


def _set(spark: SparkSession, old: str, new: str) -> bool:
    with spark_failures("setting the size of batches"):
        if spark.conf.get(BATCH_BYTES) != old:
            return False
        spark.conf.set(BATCH_BYTES, new)
        return True
