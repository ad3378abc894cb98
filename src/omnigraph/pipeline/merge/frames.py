"""The rows of one table on both sides of a merge, as Spark SQL compares them.

The two texts are those of the embedded engine: what changed between two states, and what becomes of rows that two
sides may have changed. Executors read the rows by the fragments in which the states may differ.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import from_arrow_schema

from omnigraph.catalog.catalog import TableType
from omnigraph.engine.changes.rows import COMPARED
from omnigraph.engine.merge.table import Granularity
from omnigraph.engine.merge.threeway import three_way_sql
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.worker.merge import Candidates, candidate_rows, candidate_schema
from omnigraph.pipeline.worker.shipped import shipped_struct
from omnigraph.storage.delta_parts import DeltaPart, delta_parts
from omnigraph.storage.tables import Table


class MergeFrames:
    """The states of one table; None is a state without rows."""

    def __init__(self, desk: Desk, type_: TableType) -> None:
        self._desk = desk
        self._type = type_

    @property
    def _fields(self) -> pa.Schema:
        return self._type.arrow_schema

    def net_changes(self, before: Table | None, after: Table | None) -> DataFrame:
        """`id`, `before` and `after` of the rows that differ."""
        parts = delta_parts(before, after, self._fields.names)
        rows = {"before_rows": self._rows(parts.before, before), "after_rows": self._rows(parts.after, after)}
        return self._asked(COMPARED, rows)

    def no_changes(self) -> DataFrame:
        image = shipped_struct(self._fields)
        return self._empty(pa.schema([("id", pa.string()), ("before", image), ("after", image)]))

    def met(self, source: DataFrame, target: DataFrame, granularity: Granularity) -> DataFrame:
        """What is to be decided of the changes of both sides, in the order of ids."""
        return self._asked(three_way_sql(self._type, granularity), {"source": source, "target": target})

    def _rows(self, parts: Sequence[DeltaPart], table: Table | None) -> DataFrame:
        schema = candidate_schema(self._fields)
        if not parts or table is None:
            return self._empty(schema)
        stored = set(table.schema.names)
        task = Candidates(self._fields, tuple(name for name in self._fields.names if name in stored))
        groups = self._desk.grouped(parts)
        numbers = self._desk.spark.range(0, len(groups), 1, len(groups))
        return numbers.mapInArrow(partial(candidate_rows, groups=groups, task=task), from_arrow_schema(schema))

    def _empty(self, schema: pa.Schema) -> DataFrame:
        return self._desk.spark.createDataFrame([], from_arrow_schema(schema))

    def _asked(self, sql: str, frames: dict[str, Any]) -> DataFrame:
        """The text asked of the frames, without giving any of them a name in the user's session."""
        named = ", ".join(f"{name} AS (SELECT * FROM {{{name}}})" for name in frames)
        text = sql.strip()
        more = f", {text.removeprefix('WITH ')}" if text.startswith("WITH ") else f" {text}"
        with spark_failures(f"comparing {self._type.table_key}"):
            return self._desk.spark.sql(f"WITH {named}{more}", **frames)
