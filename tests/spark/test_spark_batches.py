"""How much Spark hands to a worker at once: few rows, and few bytes where a row is large."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession

import omnigraph as og
from omnigraph.pipeline.batch_bytes import BATCH_BYTES, UNLIMITED_BYTES, few_bytes_at_once
from omnigraph.pipeline.bulk.desk import Desk

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCHEMA = """
node Person { name: String @key  bio: String?  tags: [String]?  marks: [I64]? }
node Page { name: String @key  photo: Blob? }
"""
FEW_BYTES, OWN_BYTES = str(16 << 20), str(32 << 20)


def sizes(frame: DataFrame) -> list[tuple[int, int]]:
    def measured(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"rows": [batch.num_rows], "bytes": [batch.nbytes]})

    return [(row.rows, row.bytes) for row in frame.mapInArrow(measured, "rows bigint, bytes bigint").collect()]


@pytest.fixture
def limits(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The limit of bytes under which each frame was read."""
    found: list[str] = []
    real = Desk.collected

    def watched(desk: Desk, frame: DataFrame, *given: Any) -> object:
        found.append(frame.sparkSession.conf.get(BATCH_BYTES) or "")
        return real(desk, frame, *given)

    monkeypatch.setattr(Desk, "collected", watched)
    return found


def test_a_batch_has_few_rows_and_where_it_is_bounded_few_bytes(spark: SparkSession) -> None:
    texts = spark.range(0, 2_500, 1, 1).selectExpr("repeat('x', 50000) text")
    assert [rows for rows, _ in sizes(texts)] == [1_000, 1_000, 500]
    with few_bytes_at_once(spark):
        assert max(size for _, size in sizes(texts)) < 17 << 20
    assert [rows for rows, _ in sizes(texts)] == [1_000, 1_000, 500]


@pytest.mark.parametrize(
    ("type_", "column", "large"),
    [
        ("Person", "bio", "repeat('x', 300000)"),
        ("Person", "tags", "array(repeat('x', 40000), repeat('y', 40000))"),
        ("Person", "marks", "array_repeat(1L, 10000)"),
        ("Page", "photo", "cast(repeat('x', 300000) as binary)"),
    ],
)
def test_a_large_row_has_the_frame_read_by_bytes_and_nothing_is_lost_or_doubled(
    spark: SparkSession, tmp_path: Path, limits: list[str], type_: str, column: str, large: str
) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    rows = f"select concat('p', id) name, if(id = 2500, {large}, null) {column} from range(0, 4000, 1, 2)"
    graph.spark.load({type_: spark.sql(rows)}, mode="append", index=False)
    assert limits == [UNLIMITED_BYTES, FEW_BYTES]
    assert spark.conf.get(BATCH_BYTES) == UNLIMITED_BYTES
    stored = graph.spark.nodes(type_)
    assert (stored.count(), stored.where(f"{column} is not null").count()) == (4000, 1)
    assert stored.where(f"{column} = {large}").first().name == "p2500"


def test_small_rows_are_read_once_and_unweighed(spark: SparkSession, tmp_path: Path, limits: list[str]) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    people = spark.sql("select concat('p', id) name, repeat('x', 60000) bio from range(30)")
    pages = spark.sql("select concat('p', id) name, cast('x' as binary) photo from range(30)")
    graph.spark.load({"Person": people, "Page": pages}, mode="append", index=False)
    assert limits == [UNLIMITED_BYTES, UNLIMITED_BYTES]
    assert {key: entry.row_count for key, entry in graph.snapshot().tables.items()} == {
        "node:Person": 30,
        "node:Page": 30,
    }


def test_rows_of_a_megabyte_fit_the_memory_of_a_session(spark: SparkSession, tmp_path: Path) -> None:
    """A thousand of them would be all the memory of the JVM. As in a pipeline, the frame is of another session."""
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    other = spark.newSession()
    people = other.sql("select concat('p', id) name, repeat('x', 1048576) bio from range(0, 2000, 1, 2)")
    graph.spark.load({"Person": people}, mode="append", index=False)
    assert graph.snapshot().tables["node:Person"].row_count == 2000
    assert other.conf.get(BATCH_BYTES) == spark.conf.get(BATCH_BYTES) == UNLIMITED_BYTES


def test_a_failure_of_the_query_itself_is_told_and_the_limit_is_lifted_again(
    spark: SparkSession, tmp_path: Path, limits: list[str]
) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    for broken in ("concat('p', 1 / (id - id))", "raise_error('of theirs')"):
        late = f"select if(id = 2, {broken}, concat('p', id)) name, repeat('x', id * 100000) bio from range(0, 3, 1, 1)"
        with pytest.raises(og.BadRequest, match=r"DIVIDE_BY_ZERO|of theirs"):
            graph.spark.load({"Person": spark.sql(late)}, mode="append")
        assert spark.conf.get(BATCH_BYTES) == UNLIMITED_BYTES
    assert limits == [UNLIMITED_BYTES, FEW_BYTES] * 2
    assert graph.snapshot().tables["node:Person"].row_count == 0


def test_a_limit_of_the_session_is_never_changed(spark: SparkSession, tmp_path: Path, limits: list[str]) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    spark.conf.set(BATCH_BYTES, OWN_BYTES)
    try:
        people = spark.sql("select concat('p', id) name, repeat('x', 100000) bio from range(3)")
        graph.spark.load({"Person": people}, mode="append", index=False)
        with few_bytes_at_once(spark):
            assert spark.conf.get(BATCH_BYTES) == OWN_BYTES
        assert spark.conf.get(BATCH_BYTES) == OWN_BYTES
    finally:
        spark.conf.set(BATCH_BYTES, UNLIMITED_BYTES)
    assert limits == [OWN_BYTES]


def test_the_limit_lasts_as_long_as_anyone_needs_it(spark: SparkSession) -> None:
    with few_bytes_at_once(spark):
        with few_bytes_at_once(spark):
            assert spark.conf.get(BATCH_BYTES) == FEW_BYTES
        assert spark.conf.get(BATCH_BYTES) == FEW_BYTES
    assert spark.conf.get(BATCH_BYTES) == UNLIMITED_BYTES
