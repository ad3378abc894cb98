"""The bytes of a batch that Spark hands to a worker at once.

With any limit Spark weighs the batch before each row, which takes longer than all else it does to hand rows over. So
sessions of ours have none, and batches of few rows; a frame is read with a limit once a row of it was found large.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import reduce
from operator import add
from typing import TypeVar
from weakref import WeakKeyDictionary

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.types import ArrayType, BinaryType, DataType, StringType

from omnigraph.base.errors import OmniError
from omnigraph.pipeline.failures import raised_by_query, spark_failures

Read = TypeVar("Read")
BATCH_BYTES = "spark.sql.execution.arrow.maxBytesPerBatch"
BATCH_ROWS = "spark.sql.execution.arrow.maxRecordsPerBatch"
UNLIMITED_BYTES = str((1 << 31) - 1)
# Spark holds a batch whole, whatever its rows weigh, so it has few; workers join them.
FEW_ROWS = str(1_000)
_FEW_BYTES = str(16 << 20)
# With it a batch of few rows has no more bytes than Spark would allow of itself.
_ROW_BYTES_MAX = 64 << 10
_ELEMENT_BYTES = 8
_LARGE_ROW = "omnigraph: a large row"
_guard = threading.Lock()
_bounding: WeakKeyDictionary[SparkSession, int] = WeakKeyDictionary()


def read_by_size(frame: DataFrame, read: Callable[[DataFrame], Read]) -> Read:
    """What `read` makes of the frame, which it may be given twice: up to a large row, then anew in small batches."""
    # Settings are those of the session that made the frame, which need not be the one of the load.
    spark = frame.sparkSession
    with spark_failures("asking for the size of batches"):
        is_ours = spark.conf.get(BATCH_BYTES) in (UNLIMITED_BYTES, _FEW_BYTES)
        guarded = _ended_by_large_row(frame) if is_ours else None
    if guarded is None:
        return read(frame)
    try:
        return read(guarded)
    except OmniError as error:
        if raised_by_query(error) != _LARGE_ROW:
            raise
    with few_bytes_at_once(spark):
        return read(frame)


@contextmanager
def few_bytes_at_once(spark: SparkSession) -> Iterator[None]:
    """Meanwhile there is a limit, for who reads beside us too; a session that has one keeps it."""
    if not _bound(spark):
        yield
        return
    try:
        yield
    finally:
        _unbound(spark)


def _bound(spark: SparkSession) -> bool:
    with _guard:
        others = _bounding.get(spark, 0)
        if not others and not _set(spark, UNLIMITED_BYTES, _FEW_BYTES):
            return False
        _bounding[spark] = others + 1
        return True


def _unbound(spark: SparkSession) -> None:
    with _guard:
        others = _bounding.pop(spark) - 1
        if others:
            _bounding[spark] = others
            return
        # Where Spark is gone, there is nothing to take back, and why it went is told already.
        with suppress(OmniError):
            _set(spark, _FEW_BYTES, UNLIMITED_BYTES)


def _set(spark: SparkSession, old: str, new: str) -> bool:
    with spark_failures("setting the size of batches"):
        if spark.conf.get(BATCH_BYTES) != old:
            return False
        spark.conf.set(BATCH_BYTES, new)
        return True


def _ended_by_large_row(frame: DataFrame) -> DataFrame | None:
    """The same rows, and a failure at one that is large; None where no row can be."""
    weights = {field.name: _weight(_named(field.name), field.dataType) for field in frame.schema}
    weighed = {name: weight for name, weight in weights.items() if weight is not None}
    if not weighed:
        return None
    # The failure is part of a column that is read, so that nothing can leave it out.
    bearer = next(iter(weighed))
    is_small = reduce(add, weighed.values()) <= sf.lit(_ROW_BYTES_MAX)
    checked = sf.when(is_small, _named(bearer)).otherwise(sf.raise_error(sf.lit(_LARGE_ROW))).alias(bearer)
    return frame.select([checked if name == bearer else _named(name) for name in frame.columns])


def _weight(column: Column, type_: DataType) -> Column | None:
    match type_:
        case StringType() | BinaryType():
            size = sf.octet_length(column)
        case ArrayType(elementType=StringType()):
            size = sf.octet_length(sf.array_join(column, ""))
        case ArrayType():
            size = sf.size(column) * _ELEMENT_BYTES
        case _:
            return None
    return sf.coalesce(size.cast("bigint"), sf.lit(0))


def _named(name: str) -> Column:
    return sf.col("`" + name.replace("`", "``") + "`")
