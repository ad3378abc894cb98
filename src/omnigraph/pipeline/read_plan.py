"""Decides, when a frame is loaded, what it will show: one snapshot, some columns, some rows, in which partitions."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise

import pyarrow as pa
from pyspark.sql import types as st
from pyspark.sql.pandas.types import to_arrow_schema

from omnigraph.base.errors import BadRequest, InternalError, NotFound
from omnigraph.base.moments import Moment
from omnigraph.graph import Graph
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.pipeline.options import GraphOptions, table_key_of
from omnigraph.pipeline.planned import PlannedRead
from omnigraph.pipeline.predicates import lance_filter
from omnigraph.pipeline.worker.read import ReadTarget
from omnigraph.storage.scans import Part

READ_OPTIONS = ("type", "branch", "snapshot", "version", "as_of", "columns", "filter")

_PART_BYTES = 64 << 20
_PART_ROWS_MAX = 1 << 19
_PART_ROWS_MIN = 1 << 10
_TEXT_BYTES = 24
_BLOB_BYTES = 64 << 10
_LIST_ELEMENTS = 8


def plan_read(given: Mapping[str, str]) -> PlannedRead:
    """The frame the options describe."""
    options = GraphOptions.of(given, READ_OPTIONS)
    options.required("type", "Name a node or edge type: option('type', 'Person').")
    return plan_frame(options.open("r"), options)


def plan_frame(graph: Graph, options: GraphOptions) -> PlannedRead:
    view = graph.view_at(_snapshot(graph, options))
    table_key = table_key_of(options.required("type", "Name a node or edge type."), view.entries)
    table = view.table(table_key)
    stored = _chosen(table.schema, options.get("columns"), table_key)
    schema = st.StructType([st.StructField(f.name, spark_type(f.type), f.nullable) for f in stored])
    given_filter = options.get("filter")
    where = None if given_filter is None else lance_filter(given_filter, table.schema, table_key)
    target = ReadTarget(
        table_key,
        table.ref.uri,
        table.version,
        to_arrow_schema(schema, timezone="UTC"),
        where,
        table.ref.options,
        table.shape,
    )
    fragment_rows = table.fragment_rows()
    parts = parts_of(fragment_rows, _part_rows(stored), ranges=where is None)
    return PlannedRead(target, schema, parts, sum(fragment_rows.values()))


def _snapshot(graph: Graph, options: GraphOptions) -> Snapshot:
    branch, snapshot, version, as_of = (options.get(name) for name in ("branch", "snapshot", "version", "as_of"))
    if version is not None and not (version.isascii() and version.isdigit()):
        raise BadRequest(f"the option 'version' expects a graph version, not '{version}'", "See omnigraph commit list.")
    return named_snapshot(graph, branch, snapshot, None if version is None else int(version), as_of)


def named_snapshot(
    graph: Graph, branch: str | None, snapshot: str | None, version: int | None, as_of: Moment | None
) -> Snapshot:
    """What a frame shows: a branch now, at a graph version or at a time, or a target that needs no branch."""
    if snapshot is not None and (branch, version, as_of) != (None, None, None):
        raise BadRequest("the option 'snapshot' stands alone", "Leave 'branch', 'version' and 'as_of' out.")
    if version is not None and as_of is not None:
        raise BadRequest("'version' and 'as_of' both name a moment", "Name one of them.")
    if snapshot is not None:
        return graph.snapshot_of(snapshot)
    if as_of is not None:
        return graph.snapshot_of(branch, as_of=as_of)
    return graph.snapshot(branch) if version is None else graph.snapshot_at_version(version, branch)


def _chosen(stored: pa.Schema, columns: str | None, table_key: str) -> list[pa.Field]:
    if columns is None:
        return list(stored)
    names = [name.strip() for name in columns.split(",")]
    for name in names:
        if name not in stored.names:
            hint = did_you_mean(name, stored.names) or f"Its columns are: {', '.join(stored.names)}."
            raise NotFound(f"{table_key} has no column '{name}'", hint)
        if names.count(name) > 1:
            raise BadRequest(f"column '{name}' of {table_key} is chosen twice", "Name it once.")
    return [stored.field(name) for name in names]


_SPARK: dict[pa.DataType, st.DataType] = {
    pa.string(): st.StringType(),
    pa.bool_(): st.BooleanType(),
    pa.int32(): st.IntegerType(),
    pa.int64(): st.LongType(),
    pa.uint32(): st.LongType(),
    pa.uint64(): st.DecimalType(20, 0),
    pa.float32(): st.FloatType(),
    pa.float64(): st.DoubleType(),
    pa.date32(): st.DateType(),
    pa.timestamp("ms", tz="UTC"): st.TimestampType(),
    pa.large_binary(): st.BinaryType(),
    pa.binary(): st.BinaryType(),
}


def spark_type(stored: pa.DataType) -> st.DataType:
    """The narrowest type of Spark that holds every value of a stored one, moments of very far years apart."""
    if pa.types.is_list(stored) or pa.types.is_fixed_size_list(stored):
        return st.ArrayType(spark_type(stored.value_type), containsNull=False)
    found = _SPARK.get(stored)
    if found is None:
        raise InternalError(f"a column of type {stored} cannot be read by Spark")
    return found


def _part_rows(columns: list[pa.Field]) -> int:
    """How many rows make a partition that is worth a task and small enough to share out."""
    wide = sum(_bytes_each(column.type) for column in columns)
    return max(_PART_ROWS_MIN, min(_PART_ROWS_MAX, _PART_BYTES // max(wide, 1)))


def _bytes_each(type_: pa.DataType) -> int:
    if pa.types.is_fixed_size_list(type_):
        return int(type_.list_size) * _bytes_each(type_.value_type)
    if pa.types.is_list(type_):
        return _LIST_ELEMENTS * _bytes_each(type_.value_type)
    if pa.types.is_large_binary(type_) or pa.types.is_binary(type_):
        return _BLOB_BYTES
    return _TEXT_BYTES if pa.types.is_string(type_) else 8


def parts_of(fragment_rows: Mapping[int, int], part_rows: int, ranges: bool) -> tuple[Part, ...]:
    """Fragments as parts of about `part_rows`: small ones together, large ones cut if `ranges` are possible."""
    parts: list[Part] = []
    small: list[int] = []
    gathered = 0
    for number, rows in fragment_rows.items():
        if rows == 0:
            continue
        if ranges and rows >= 2 * part_rows:
            parts += _cut(number, rows, round(rows / part_rows))
            continue
        if small and gathered + rows > part_rows:
            parts.append(Part(tuple(small)))
            small, gathered = [], 0
        small.append(number)
        gathered += rows
    return (*parts, Part(tuple(small))) if small else tuple(parts)


def _cut(fragment_id: int, rows: int, pieces: int) -> list[Part]:
    bounds = [rows * k // pieces for k in range(pieces + 1)]
    return [Part((fragment_id,), first, last - first) for first, last in pairwise(bounds)]
