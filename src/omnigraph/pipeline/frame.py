"""A planned read as a frame of a session at hand.

The source that Spark finds by its name shows the same rows by the same plan, but Spark makes four processes before the
first of them is read, and knows nothing of their number. Here the plan is made already.
"""

from __future__ import annotations

from functools import partial

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.types import ArrayType, BinaryType, DataType, StructType

from omnigraph.pipeline.planned import PlannedRead
from omnigraph.pipeline.worker.read import read_parts

# So many rows, even of no columns, are beyond the size up to which Spark joins by sending a frame to every executor.
_ROWS_MIN = 1 << 21
# Spark counts through a billion numbers a second.
_NUMBERS_MAX = 1 << 28
_NUMBER_BYTES = 8
# What a row and a value of it weigh for Spark, at most.
_ROW_BYTES, _VALUE_BYTES, _BINARY_BYTES = 8, 20, 100


def planned_frame(spark: SparkSession, planned: PlannedRead) -> DataFrame:
    """One task for each part. Spark takes the frame for at least as large as it is."""
    count = max(len(planned.parts), 1)
    # Spark judges a frame by that from which it is made: a range of numbers, of which each task is given one. Taken for
    # less than it is, a large frame would be sent whole by a join, and a product of frames that are sent cannot be
    # stopped. How large it really is, Spark sees when it runs.
    numbers = max(planned.rows, _ROWS_MIN) * _weight(planned.schema) // _NUMBER_BYTES
    stride = -(-min(numbers, _NUMBERS_MAX) // count)
    asked = spark.range(0, len(planned.parts) * stride, 1, count).where(f"id % {stride} = 0")
    read = partial(read_parts, target=planned.target, parts=planned.parts, stride=stride)
    return asked.mapInArrow(read, planned.schema)


def _weight(schema: StructType) -> int:
    return _ROW_BYTES + sum(_BINARY_BYTES if _is_binary(field.dataType) else _VALUE_BYTES for field in schema)


def _is_binary(type_: DataType) -> bool:
    return isinstance(type_, BinaryType) or (isinstance(type_, ArrayType) and _is_binary(type_.elementType))
