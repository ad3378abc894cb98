"""How the driver hands work to executors: groups of items out, small answers or frames back."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.worker.carry import carrier, columns_ddl
from omnigraph.pipeline.worker.look import spill_rows
from omnigraph.pipeline.worker.tasks import ANSWER_COLUMNS, answer_groups, read_groups, unpacked
from omnigraph.storage.row_files import RowFile, RowFolder

Item = TypeVar("Item")
Answer = TypeVar("Answer")
# Enough groups that a slow one does not hold up the others.
_GROUPS_PER_CORE = 3
_CORES_MIN = 2


class Desk:
    """One load's session, and a folder that all who work on the load can reach."""

    def __init__(self, spark: SparkSession, folder: RowFolder) -> None:
        self.spark = spark
        self.folder = folder
        self.cores = _cores(spark)

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

    def frame(self, groups: Sequence[Item], read: Callable[[Item], Iterator[pa.RecordBatch]], ddl: str) -> DataFrame:
        """The rows that `read` gives for each group; it must give the same whenever it is asked."""
        if not groups:
            return self.spark.createDataFrame([], ddl)
        numbers = self.spark.range(0, len(groups), 1, len(groups))
        return numbers.mapInArrow(partial(read_groups, groups=groups, read=read), ddl)

    def collected(self, frame: DataFrame, answer: Callable[..., Iterator[pa.RecordBatch]], doing: str) -> list[Any]:
        """What `answer` says about each partition of the frame."""
        with spark_failures(doing):
            return [unpacked(row[0]) for row in frame.mapInArrow(answer, ANSWER_COLUMNS).collect()]

    def spilled(self, frame: DataFrame, schema: pa.Schema, doing: str) -> tuple[RowFile, ...]:
        """The rows of a frame as files; `schema` names the types, whose carriers the frame has."""
        packed = pa.schema([pa.field(field.name, carrier(field.type)) for field in schema])
        write = partial(spill_rows, folder=self.folder, schema=packed.serialize().to_pybytes())
        return tuple(file for file in self.collected(frame, write, doing) if file is not None)

    def local(self, table: pa.Table) -> DataFrame:
        """Few rows of this process as a frame; their types are carriers already."""
        if not table.num_rows:
            return self.spark.createDataFrame([], columns_ddl(table.schema))
        return self.spark.createDataFrame(table)


def _cores(spark: SparkSession) -> int:
    with suppress(PySparkException, AttributeError):
        return max(int(spark.sparkContext.defaultParallelism), _CORES_MIN)
    return _CORES_MIN
