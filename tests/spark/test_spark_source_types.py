"""Every type of the schema language reaches Spark as an equal value, at its extremes too, and comes back the same."""

from __future__ import annotations

import datetime as dt
import math
import pickle
from decimal import Decimal
from pathlib import Path

import lance
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.types import StructField, StructType

import omnigraph as og
from omnigraph.catalog.types import PropertyType, ScalarType, arrow_type
from omnigraph.pipeline.frames_api import SparkGraph
from omnigraph.pipeline.read_plan import parts_of, spark_type
from omnigraph.pipeline.source import OmniGraphSource
from omnigraph.pipeline.worker.read import ReadTarget, as_spark, read_part
from omnigraph.records.blobs import EXTERNAL_MARKER, blob_of
from omnigraph.records.fit import fit
from omnigraph.storage.scans import Part

pytestmark = pytest.mark.slow


def spark_test(test):
    return pytest.mark.spark(pytest.mark.slow(test))


UTC = dt.UTC
SCHEMA = """
node All {
  key: String @key
  text: String?  flag: Bool?  i32: I32?  i64: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?
  day: Date?  at: DateTime?  kind: enum(a, b)?  blob: Blob?  vec: Vector(3)?  never: Vector(2)?
  texts: [String]?  days: [Date]?  moments: [DateTime]?  u64s: [U64]?  u32s: [U32]?  f32s: [F32]?  flags: [Bool]?
}
"""
LOW = {
    "key": "low", "text": "", "flag": False, "i32": -(2**31), "i64": -(2**63), "u32": 0, "u64": 0, "f32": -math.inf,
    "f64": 5e-324, "day": dt.date(1, 1, 1), "at": dt.datetime(1, 1, 1, tzinfo=UTC), "kind": "a", "blob": b"",
    "vec": [0.0, -1.5, 2.0**-100], "never": None, "texts": [], "days": [dt.date(1, 1, 1)], "moments": [],
    "u64s": [0], "u32s": [], "f32s": [-0.0], "flags": [False],
}  # fmt: skip
HIGH = {
    "key": "high", "text": "ünï \U0001f600 'quoted'\n", "flag": True, "i32": 2**31 - 1, "i64": 2**63 - 1,
    "u32": 2**32 - 1, "u64": 2**64 - 1, "f32": 1.5, "f64": 1.7976931348623157e308, "day": dt.date(9999, 12, 31),
    "at": dt.datetime(9999, 12, 31, 23, 59, 59, 999_000, tzinfo=UTC), "kind": "b", "blob": bytes(range(256)),
    "vec": [1.0, 2.0, 3.0], "never": None, "texts": ["a", "", "ß"], "days": [dt.date(9999, 12, 31), dt.date(1, 1, 1)],
    "moments": [dt.datetime(2024, 2, 29, 23, 59, 59, 1_000, tzinfo=UTC)], "u64s": [2**64 - 1, 0], "u32s": [2**32 - 1],
    "f32s": [0.5, 1.5], "flags": [True, False],
}  # fmt: skip
ABSENT = {"key": "none", **dict.fromkeys(list(LOW)[1:])}


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.Graph.init(str(tmp_path / "g"), SCHEMA)


def load(graph: og.Graph, *rows: dict[str, object]) -> None:
    stored = graph.catalog.arrow_schema("node:All")
    full = [{"id": row["key"], **row} for row in rows]
    graph.write({"node:All": og.Append(pa.Table.from_pylist(full, schema=stored))})


def as_spark_row(row: dict[str, object]) -> dict[str, object]:
    u64, u64s = row["u64"], row["u64s"]
    changed = {"u64": None if u64 is None else Decimal(u64), "u64s": None if u64s is None else [*map(Decimal, u64s)]}
    return {"id": row["key"], **row, **changed}


@spark_test
def test_every_type_has_its_column_and_every_extreme_its_value(spark: SparkSession, graph: og.Graph) -> None:
    load(graph, LOW, HIGH, ABSENT)
    read = graph.spark.nodes("All")
    assert dict(read.dtypes) == {
        "id": "string", "key": "string", "text": "string", "flag": "boolean", "i32": "int", "i64": "bigint",
        "u32": "bigint", "u64": "decimal(20,0)", "f32": "float", "f64": "double", "day": "date", "at": "timestamp",
        "kind": "string", "blob": "binary", "vec": "array<float>", "never": "array<float>", "texts": "array<string>",
        "days": "array<date>", "moments": "array<timestamp>", "u64s": "array<decimal(20,0)>", "u32s": "array<bigint>",
        "f32s": "array<float>", "flags": "array<boolean>",
    }  # fmt: skip
    assert [f.name for f in read.schema if not f.nullable] == ["id", "key"]
    # Not collect(): Python's calendar ends before that of Spark.
    rows = {row["key"]: row for row in read.toArrow().to_pylist()}
    assert rows == {row["key"]: as_spark_row(row) for row in (LOW, HIGH, ABSENT)}


@spark_test
def test_days_beyond_the_calendar_of_python_can_be_computed_with(spark: SparkSession, graph: og.Graph) -> None:
    far = pa.array([2**31 - 1, -(2**31)], pa.date32())
    rows = pa.table({"id": ["a", "b"], "key": ["a", "b"], "day": far})
    graph.write({"node:All": og.Append(rows)})
    answered = graph.spark.nodes("All", columns=["day"]).selectExpr("unix_date(day) d", "string(day) s").collect()
    assert sorted((row["d"], row["s"]) for row in answered) == [
        (-(2**31), "-5877641-06-23"),
        (2**31 - 1, "+5881580-07-11"),
    ]


@spark_test
def test_a_moment_beyond_those_of_spark_is_refused_by_name(spark: SparkSession, graph: og.Graph) -> None:
    most = (2**63 - 1) // 1000
    at = pa.array([most, -most, most + 1], pa.timestamp("ms", "UTC"))
    graph.write({"node:All": og.Append(pa.table({"id": list("abc"), "key": list("abc"), "at": at}))})
    with pytest.raises(PySparkException) as refused:
        graph.spark.nodes("All").count()
    assert f"node:All.at holds a value that Spark cannot: {most + 1} ms since 1970 is beyond the years" in str(
        refused.value
    )
    within = graph.spark.nodes("All", columns=["at"], filter="key <> 'c'").selectExpr("unix_millis(at) ms").collect()
    assert sorted(row["ms"] for row in within) == [-most, most]
    assert graph.spark.nodes("All", columns=["key"]).count() == 3


@spark_test
def test_an_external_blob_is_told_from_content(spark: SparkSession, graph: og.Graph) -> None:
    stored = [blob_of("s3://pictures/ünï.png", ["s3://pictures/"]), b"s3://not/a/reference", None]
    rows = {"id": list("abc"), "key": list("abc"), "blob": pa.array(stored, pa.large_binary())}
    graph.write({"node:All": og.Append(pa.table(rows))})
    read = graph.spark.nodes("All").select("key", SparkGraph.external_uri("blob").alias("uri")).collect()
    assert {row["key"]: row["uri"] for row in read} == {"a": "s3://pictures/ünï.png", "b": None, "c": None}


def test_bytes_that_pretend_to_be_an_external_blob_are_refused(graph: og.Graph) -> None:
    forged = pa.table({"key": ["a", "b"], "blob": pa.array([b"fine", EXTERNAL_MARKER + b"file:///etc/hosts"])})
    with pytest.raises(og.InvalidData, match="begins with the marker of external blobs"):
        graph.load_frames({"All": forged}, mode="append")
    graph.load_frames({"All": forged.slice(0, 1)}, mode="append")
    assert graph.view().table("node:All").read(["blob"])["blob"].to_pylist() == [b"fine"]


@spark_test
def test_large_blobs_come_in_batches_that_fit(spark: SparkSession, graph: og.Graph) -> None:
    content = [bytes([n]) * (1 << 20) for n in range(80)]
    keys = [str(n) for n in range(80)]
    graph.write(
        {"node:All": og.Append(pa.table({"id": keys, "key": keys, "blob": pa.array(content, pa.large_binary())}))}
    )
    read = graph.spark.nodes("All", columns=["key", "blob"]).selectExpr(
        "key", "length(blob) n", "hex(substr(blob, 1, 1)) h"
    )
    assert {(row["key"], row["n"], row["h"]) for row in read.collect()} == {
        (str(n), 1 << 20, f"{n:02X}") for n in range(80)
    }


SCALARS = {
    ScalarType.STRING: st.text(), ScalarType.BLOB: st.binary(max_size=20), ScalarType.BOOL: st.booleans(),
    ScalarType.I32: st.integers(-(2**31), 2**31 - 1), ScalarType.I64: st.integers(-(2**63), 2**63 - 1),
    ScalarType.U32: st.integers(0, 2**32 - 1), ScalarType.U64: st.integers(0, 2**64 - 1),
    ScalarType.F32: st.floats(width=32, allow_nan=False), ScalarType.F64: st.floats(allow_nan=False),
    ScalarType.DATE: st.dates(), ScalarType.DATETIME: st.datetimes(timezones=st.just(UTC)).map(
        lambda at: at.replace(microsecond=at.microsecond // 1000 * 1000)),
}  # fmt: skip


@st.composite
def columns(draw: st.DrawFn) -> pa.Array:
    scalar = draw(st.sampled_from([*SCALARS, ScalarType.VECTOR]))
    if scalar is ScalarType.VECTOR:
        type_ = PropertyType(scalar, dimension=draw(st.integers(1, 4)))
        values = st.lists(SCALARS[ScalarType.F32], min_size=type_.dimension or 0, max_size=type_.dimension)
    else:
        type_ = PropertyType(scalar, is_list=scalar is not ScalarType.BLOB and draw(st.booleans()))
        values = st.lists(SCALARS[scalar], max_size=3) if type_.is_list else SCALARS[scalar]
    rows = draw(st.lists(st.none() | values, max_size=8))
    whole = pa.array([None, *rows, None], arrow_type(type_))
    return whole.slice(1, len(rows))


@settings(max_examples=300, deadline=None)
@given(columns())
def test_any_column_becomes_what_spark_expects_and_comes_back_the_same(column: pa.Array) -> None:
    schema = to_arrow_schema(StructType([StructField("c", spark_type(column.type))]), timezone="UTC")
    given_to_spark = as_spark(column, schema.field("c").type)
    given_to_spark.validate(full=True)
    assert given_to_spark.type == schema.field("c").type
    back = fit(given_to_spark, column.type)
    assert back.to_pylist() == column.to_pylist()


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.integers(0, 50), st.integers(0, 40), max_size=12), st.integers(1, 15), st.booleans())
def test_the_parts_hold_every_row_once_in_order(rows: dict[int, int], part_rows: int, ranges: bool) -> None:
    parts = parts_of(rows, part_rows, ranges)
    seen = [
        (number, row)
        for part in parts
        for number in part.fragment_ids
        for row in range(rows[number])[part.offset : None if part.limit is None else part.offset + part.limit]
    ]
    assert sorted(seen) == sorted((number, row) for number, count in rows.items() for row in range(count))
    assert all(part.limit is None for part in parts) or ranges
    assert all(part.fragment_ids and (part.limit is None or len(part.fragment_ids) == 1) for part in parts)


def test_parts_of_fragments_with_deleted_rows_are_read_exactly(tmp_path: Path) -> None:
    uri = str(tmp_path / "t")
    lance.write_dataset(pa.table({"n": range(1000)}), uri, max_rows_per_file=400, enable_stable_row_ids=True)
    lance.dataset(uri).delete("n % 3 = 0 or (n > 450 and n < 640)")
    dataset = lance.dataset(uri)
    counts = {f.fragment_id: f.count_rows() for f in dataset.get_fragments()}
    target = ReadTarget("node:T", uri, dataset.version, pa.schema([("n", pa.int64())]))
    parts = parts_of(counts, 60, ranges=True)
    assert len(parts) > 5
    read = np.concatenate([b.column(0).to_numpy() for part in parts for b in read_part(target, part)])
    assert read.tolist() == [n for n in range(1000) if n % 3 and not 450 < n < 640]


def test_a_range_of_rows_is_never_filtered(tmp_path: Path) -> None:
    target = ReadTarget("node:T", str(tmp_path), 1, pa.schema([("n", pa.int64())]), "n > 1")
    with pytest.raises(ValueError, match="cannot be filtered"):
        next(read_part(target, Part((0,), 0, 5)))


def test_what_travels_to_executors_shows_no_secret() -> None:
    secret = {"aws_secret_access_key": "hush"}
    target = ReadTarget("node:T", "s3://b/t", 1, pa.schema([("n", pa.int64())]), None, secret)
    assert pickle.loads(pickle.dumps(target)) == target
    assert "hush" not in repr(target)
    assert "hush" not in repr(OmniGraphSource(secret))
