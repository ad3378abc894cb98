"""Every type of ours survives the way from a DataFrame to a stored row, and back."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import omnigraph as og
from omnigraph.records.fit import fit

pytestmark = [pytest.mark.spark, pytest.mark.slow]

UTC = dt.UTC
VECTOR = pa.list_(pa.float32(), 3)
SCHEMA = """
node All {
  key: String @key
  text: String?  flag: Bool?  i32: I32?  i64: I64?  u32: U32?  u64: U64?  f32: F32?  f64: F64?  day: Date?
  at: DateTime?
  tags: [String]?  counts: [U32]?  vector: Vector(3)?  never: Vector(3)?  blob: Blob?  kind: enum(a, b)?
}
"""
SPARK_COLUMNS = (
    "key string, text string, flag boolean, i32 int, i64 bigint, u32 bigint, u64 decimal(20,0), f32 float, f64 double,"
    " day date, at timestamp, tags array<string>,"
    " counts array<bigint>, vector array<double>, never array<float>, blob binary, kind string"
)
LOW = {
    "key": "low",
    "text": "",
    "flag": False,
    "i32": -(2**31),
    "i64": -(2**63),
    "u32": 0,
    "u64": 0,
    "f32": -(2.0**-126),
    "f64": 5e-324,
    "day": dt.date(1, 1, 1),
    "at": dt.datetime(1900, 1, 1, tzinfo=UTC),
    "tags": [],
    "counts": [0],
    "vector": [0.0, -1.5, 2.0**-100],
    "never": None,
    "blob": b"",
    "kind": "a",
}
HIGH = {
    "key": "high",
    "text": "ünï \U0001f600 'quoted'\n",
    "flag": True,
    "i32": 2**31 - 1,
    "i64": 2**63 - 1,
    "u32": 2**32 - 1,
    "u64": 2**64 - 1,
    "f32": 1.5,
    "f64": 1.7976931348623157e308,
    "day": dt.date(9999, 12, 31),
    "at": dt.datetime(2024, 2, 29, 23, 59, 59, 999_000, tzinfo=UTC),
    "tags": ["a", "", "ß"],
    "counts": [2**32 - 1, 7],
    "vector": [1.0, 2.0, 3.0],
    "never": None,
    "blob": bytes(range(256)) * 400,
    "kind": "b",
}
ABSENT = {**dict.fromkeys(LOW), "key": "nulls"}


@pytest.fixture
def graph(spark: SparkSession, tmp_path: Path) -> og.Graph:
    return og.Graph.init(str(tmp_path / "g"), SCHEMA)


def as_spark_row(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(Decimal(v) if k == "u64" and v is not None else v for k, v in row.items())


def stored(graph: og.Graph, frame: DataFrame) -> list[dict[str, object]]:
    graph.spark.load({"All": frame}, mode="append", index=False)
    rows = graph.view().table("node:All").read(list(LOW)).to_pylist()
    return sorted(rows, key=lambda row: row["key"])


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_type_survives_with_its_extremes_and_nulls(spark, graph, partitions):
    rows = sorted([LOW, HIGH, ABSENT], key=lambda row: row["key"])
    frame = spark.createDataFrame([as_spark_row(r) for r in rows], SPARK_COLUMNS).repartition(partitions, "key")
    assert stored(graph, frame) == rows
    again = og.Graph.init(f"{graph.uri}-again", SCHEMA)
    back = graph.spark.nodes("All").drop("id")
    assert stored(again, back) == rows, "what Spark reads from a graph is what it gave it"


def test_columns_may_come_in_any_order_and_nullable_ones_not_at_all(spark, graph):
    assert stored(graph, spark.sql("select 7Y u64, null vector, 'a' key")) == [{**ABSENT, "key": "a", "u64": 7}]


def test_narrow_and_wide_numbers_of_sql_fit_when_their_values_do(spark, graph):
    query = "select 'a' key, 1Y i32, 2S i64, 4294967295 u32, 3 u64, 0.5 f32, 7 f64, array(1.5, 2, 3) vector"
    expected = {"key": "a", "i32": 1, "i64": 2, "u32": 2**32 - 1, "u64": 3, "f32": 0.5, "f64": 7.0}
    assert stored(graph, spark.sql(query)) == [{**ABSENT, **expected, "vector": [1.5, 2.0, 3.0]}]


def test_a_time_without_zone_is_utc_and_another_zone_is_the_same_instant(spark, graph):
    first = spark.sql("select 'a' key, timestamp_ntz'2024-05-01 12:00:00.25' at")
    second = spark.sql("select 'b' key, timestamp'2024-05-01 12:00:00.25+02:00' at")
    noon = dt.datetime(2024, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    stored(graph, first)
    assert [row["at"] for row in stored(graph, second)] == [noon, noon - dt.timedelta(hours=2)]


@pytest.mark.parametrize(
    ("column", "reason"),
    [
        ("array(1.0, 2.0) vector", "expects 3 dimensions, got 2"),
        ("array(1.0, null, 3.0) vector", "elements must be numeric"),
        ("cast(1e39 as double) f32", "exceeds F32 range"),
        ("18446744073709551616 u64", "exceeds U64 range"),
        ("-1 u32", "exceeds U32 range"),
        ("1.5 u64", "expects an integer"),
        ("'7' i32", "expects an integer"),
        ("1 text", "expects a string"),
        ("'c' kind", "invalid enum value 'c' for All.kind"),
        ("timestamp'2024-05-01 12:00:00.0005' at", "at"),
    ],
)
def test_a_value_that_would_change_is_refused_by_name(spark, graph, column, reason):
    with pytest.raises(og.InvalidData) as refused:
        stored(graph, spark.sql(f"select 'a' key, {column}"))
    told = refused.value.violations[0]
    assert (told["file"], told["type"], told["property"]) == ("All", "All", column.rsplit(" ", 1)[1])
    assert reason in told["message"]


@pytest.mark.parametrize(
    ("given", "to", "text"),
    [
        (pa.array([[1.0, 2.0]]), VECTOR, "expects 3 dimensions, got 2"),
        (pa.array([None, [1.0, 2.0, 3.0, 4.0]]), VECTOR, "expects 3 dimensions, got 4"),
        (pa.array([[1.0, None, 3.0]]), VECTOR, "a list has a null element"),
        (pa.array([[1.0, 1e39, 3.0]]), VECTOR, "a value exceeds F32 range"),
        (pa.array(["[1,2,3]"]), VECTOR, "cannot be stored as fixed_size_list"),
        (pa.array([["a", None]]), pa.list_(pa.string()), "a list has a null element"),
        (pa.array([1e39]), pa.float32(), "a value exceeds F32 range"),
        (pa.array([2**53 + 1]), pa.float64(), "not in range"),
        (pa.array([2**64], pa.decimal128(20, 0)), pa.uint64(), "out of bounds"),
        (pa.array([1], pa.timestamp("us", "UTC")), pa.timestamp("ms", "UTC"), "would lose data"),
        (pa.array([0], pa.timestamp("us", "UTC")), pa.date32(), "cannot be stored as date32"),
        (pa.array([-1]), pa.uint64(), "not in range"),
        (pa.array([Decimal("1.5")]), pa.uint64(), "would cause data loss"),
        (pa.array(["7"]), pa.int32(), "a column of type string cannot be stored as int32"),
        (pa.array([1]), pa.string(), "a column of type int64 cannot be stored as string"),
        (pa.array([1]), pa.bool_(), "cannot be stored as bool"),
    ],
)
def test_a_misfit_says_why(given, to, text):
    with pytest.raises((ValueError, pa.ArrowInvalid), match=text):
        fit(given, to)


@pytest.mark.parametrize("values", [[[1, 2], None, [], [3]], [None, None], [], [[2**32 - 1]]])
def test_lists_keep_nulls_empties_and_slices(values):
    given = pa.array([[9], *values, [9]], pa.list_(pa.int64())).slice(1, len(values))
    fitted = fit(given, pa.list_(pa.uint32()))
    fitted.validate(full=True)
    assert fitted.to_pylist() == values
