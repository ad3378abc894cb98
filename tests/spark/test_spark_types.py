"""Every type of ours survives the way from a DataFrame to a stored fragment."""

from __future__ import annotations

import datetime as dt
import math
from decimal import Decimal

import lance
import pyarrow as pa
import pytest

from omnigraph.base.errors import BadRequest
from omnigraph.pipeline.bulk_load import stage_frames
from omnigraph.pipeline.worker.conform import fit
from omnigraph.storage.fragments import read_fragment_messages

pytestmark = [pytest.mark.spark, pytest.mark.slow]

UTC = dt.UTC
VECTOR = pa.list_(pa.float32(), 3)
SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        ("text", pa.string()),
        ("flag", pa.bool_()),
        ("i32", pa.int32()),
        ("i64", pa.int64()),
        ("u32", pa.uint32()),
        ("u64", pa.uint64()),
        ("f32", pa.float32()),
        ("f64", pa.float64()),
        ("day", pa.date32()),
        ("at", pa.timestamp("ms", "UTC")),
        ("tags", pa.list_(pa.string())),
        ("vector", VECTOR),
        ("never", VECTOR),
        ("blob", pa.binary()),
        ("large", pa.large_binary()),
    ]
)
SPARK_COLUMNS = (
    "id string, text string, flag boolean, i32 int, i64 bigint, u32 bigint, u64 decimal(20,0), f32 float, f64 double,"
    " day date, at timestamp, tags array<string>, vector array<double>, never array<float>, blob binary, large binary"
)
LOW = {
    "id": "low",
    "text": "",
    "flag": False,
    "i32": -(2**31),
    "i64": -(2**63),
    "u32": 0,
    "u64": 0,
    "f32": -math.inf,
    "f64": 5e-324,
    "day": dt.date(1, 1, 1),
    "at": dt.datetime(1900, 1, 1, tzinfo=UTC),
    "tags": [],
    "vector": [0.0, -1.5, 2.0**-100],
    "never": None,
    "blob": b"",
    "large": b"\x00",
}
HIGH = {
    "id": "high",
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
    "vector": [1.0, 2.0, 3.0],
    "never": None,
    "blob": bytes(range(256)),
    "large": b"x" * 100_000,
}
ABSENT = {"id": "nulls", **dict.fromkeys(SCHEMA.names[1:])}


def as_spark_row(row: dict[str, object]) -> tuple[object, ...]:
    return tuple(Decimal(v) if k == "u64" and v is not None else v for k, v in row.items())


def store(spark, target, frame) -> pa.Table:
    staged = stage_frames(spark, {target.table_key: target}, {target.table_key: frame})[target.table_key]
    operation = lance.LanceOperation.Append(read_fragment_messages(list(staged.messages)))
    dataset = lance.LanceDataset.commit(target.dataset_uri, operation, read_version=target.version, max_retries=0)
    return dataset.to_table()


@pytest.mark.parametrize("partitions", [1, 3])
def test_every_type_survives_with_its_extremes_and_nulls(spark, new_table, partitions):
    rows = [LOW, HIGH, ABSENT]
    frame = spark.createDataFrame([as_spark_row(r) for r in rows], SPARK_COLUMNS).repartition(partitions, "id")
    stored = store(spark, new_table("node:All", SCHEMA), frame)
    assert stored.schema == SCHEMA
    assert sorted(stored.to_pylist(), key=lambda r: r["id"]) == sorted(rows, key=lambda r: r["id"])


def test_columns_may_come_in_any_order_and_nullable_ones_not_at_all(spark, new_table):
    stored = store(spark, new_table("node:All", SCHEMA), spark.sql("select 7Y u64, null vector, 'a' id"))
    assert stored.to_pylist() == [{**ABSENT, "id": "a", "u64": 7}]


def test_narrow_and_wide_numbers_of_sql_fit_when_their_values_do(spark, new_table):
    query = "select 'a' id, 1Y i32, 2S i64, 4294967295 u32, 3 u64, 0.5 f32, 7 f64, array(1.5, 2, 3) vector"
    stored = store(spark, new_table("node:All", SCHEMA), spark.sql(query))
    expected = {"id": "a", "i32": 1, "i64": 2, "u32": 2**32 - 1, "u64": 3, "f32": 0.5, "f64": 7.0}
    assert stored.to_pylist() == [{**ABSENT, **expected, "vector": [1.5, 2.0, 3.0]}]


def test_a_time_without_zone_is_utc_and_another_zone_is_the_same_instant(spark, new_table):
    query = """select 'a' id, timestamp_ntz'2024-05-01 12:00:00.25' at
               union all select 'b', timestamp'2024-05-01 12:00:00.25+02:00'"""
    frame_a, frame_b = (spark.sql(part) for part in query.split("union all"))
    noon = dt.datetime(2024, 5, 1, 12, 0, 0, 250_000, tzinfo=UTC)
    target = new_table("node:All", SCHEMA)
    assert store(spark, target, frame_a)["at"].to_pylist() == [noon]
    frame_b = frame_b.toDF("id", "at")
    other = new_table("node:Other", SCHEMA)
    assert store(spark, other, frame_b)["at"].to_pylist() == [noon - dt.timedelta(hours=2)]


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


def test_a_wrong_vector_names_its_table_and_property(spark, new_table):
    target = new_table("node:All", SCHEMA)
    with pytest.raises(BadRequest) as refused:
        store(spark, target, spark.sql("select 'a' id, array(1.0, 2.0) vector"))
    assert str(refused.value) == "node:All.vector: expects 3 dimensions, got 2"
