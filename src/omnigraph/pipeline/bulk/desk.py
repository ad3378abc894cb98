"""How the driver hands work to executors: groups of items out, small answers back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.progress import is_connect
from omnigraph.pipeline.worker.tasks import ANSWER_COLUMNS, answer_groups, unpacked
from omnigraph.storage.row_files import RowFolder

Item = TypeVar("Item")
Answer = TypeVar("Answer")
# Enough groups that a slow one does not hold up the others.
_GROUPS_PER_CORE = 3
_CORES_MIN = 2
_COUNTED_ROWS = 100_000


class Desk:
    """One load's session, and a folder that all who work on the load can reach."""

    def __init__(self, spark: SparkSession, folder: RowFolder) -> None:
        self.spark = spark
        self.folder = folder
        self.cores = cores_of(spark)

    def grouped(self, items: Sequence[Item], groups_max: int | None = None) -> list[list[Item]]:
        """The items dealt to about as many groups as there is work for."""
        count = min(len(items), groups_max or self.cores * _GROUPS_PER_CORE)
        return [list(items[number::count]) for number in range(count)]

    def answers(self, groups: Sequence[Item], do: Callable[[Item], Answer], doing: str) -> list[Answer]:
        """What `do` answers for each group, in no order. It may run more than once for a group; one answer counts."""
        if not groups:
            return []
        with spark_failures(doing):
            numbers = self.spark.range(0, len(groups), 1, len(groups))
            found = numbers.mapInArrow(partial(answer_groups, groups=groups, do=do), ANSWER_COLUMNS).collect()
        return [unpacked(row[0]) for row in found]

    def collected(self, frame: DataFrame, answer: Callable[..., Iterator[pa.RecordBatch]], doing: str) -> list[Any]:
        """What `answer` says about each partition of the frame."""
        with spark_failures(doing):
            return [unpacked(row[0]) for row in frame.mapInArrow(answer, ANSWER_COLUMNS).collect()]


def cores_of(spark: SparkSession) -> int:
    """How many tasks the session runs at once, as far as it is known now."""
    with spark_failures("asking Spark for its cores"):
        if not is_connect(spark):
            return max(int(spark.sparkContext.defaultParallelism), _CORES_MIN)
        # A Connect server does not say; it cuts a range into as many parts as it has cores.
        parts = spark.range(_COUNTED_ROWS).select(sf.spark_partition_id()).distinct().count()
        return max(parts, _CORES_MIN)
