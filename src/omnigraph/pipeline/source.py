"""The graph as a Spark source: `spark.read.format("omnigraph").option("type", "Person").load(uri)`.

Holds for every frame:
  1. It shows one snapshot, fixed when it was loaded; later commits, and reuse of the frame, change nothing.
  2. Spark is told nothing about filters: a source that takes them gives wrong rows when a frame is used twice
     (Spark 4.3). Rows are chosen by the option `filter`, once, when the frame is loaded.
  3. Executors load neither the manifest nor the commit room: what they need travels with the reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import pyarrow as pa
from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceWriter, InputPartition
from pyspark.sql.types import StructType

from omnigraph.base.errors import BadRequest
from omnigraph.pipeline.planned import PlannedRead
from omnigraph.pipeline.told import told_to_spark
from omnigraph.pipeline.worker.read import ReadTarget, read_part
from omnigraph.storage.scans import Part


class PartPartition(InputPartition):
    """What one task reads."""

    def __init__(self, part: Part) -> None:
        super().__init__(part)
        self.part = part


class GraphReader(DataSourceReader):
    """The partitions of one frame."""

    def __init__(self, target: ReadTarget, parts: tuple[Part, ...]) -> None:
        self.target = target
        self.parts = parts

    def partitions(self) -> list[InputPartition]:
        return [PartPartition(part) for part in self.parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        with told_to_spark():
            # Spark makes up a partition of its own where there is none.
            if isinstance(partition, PartPartition):
                yield from read_part(self.target, partition.part)


class OmniGraphSource(DataSource):
    """Found by Spark under its name, without registration, through the module `pyspark_omnigraph`."""

    def __init__(self, options: Mapping[str, str]) -> None:
        super().__init__(dict(options))
        self._planned: PlannedRead | None = None

    def __repr__(self) -> str:
        return "OmniGraphSource()"  # options may hold credentials

    @classmethod
    def name(cls) -> str:
        return "omnigraph"

    def schema(self) -> StructType:
        """Spark asks once, at load(), and keeps this object: the snapshot is fixed here."""
        # Imported here: an executor gets this class too and must not load the rooms that can publish.
        from omnigraph.pipeline.read_plan import plan_read

        with told_to_spark():
            self._planned = plan_read(self.options)
        return self._planned.schema

    def reader(self, schema: StructType) -> DataSourceReader:
        if self._planned is None:
            self._refuse_schema()
        return GraphReader(self._planned.target, self._planned.parts)

    def _refuse_schema(self) -> NoReturn:
        with told_to_spark():
            raise BadRequest(
                "the columns of a graph type are those of its schema and cannot be given",
                "Leave schema(…) out; choose columns with the option 'columns'.",
            )
        raise AssertionError

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        from omnigraph.pipeline.sink import GraphWriter
        from omnigraph.pipeline.write_plan import plan_write

        with told_to_spark():
            return GraphWriter(plan_write(self.options, schema, overwrite))

    def __getstate__(self) -> dict[str, Any]:
        # Once planned, the reader's target holds what executors need; the options stay behind.
        return {"options": {} if self._planned is not None else self.options, "_planned": self._planned}
