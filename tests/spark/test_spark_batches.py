"""How much Spark hands to a worker at once: few rows, and few bytes where a row may be as large as a file."""

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
SCHEMA = "node Person { name: String @key  age: I32? }\nnode Page { name: String @key  photo: Blob? }"
OWN_BYTES = str(32 << 20)


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

    def watched(desk: Desk, *given: Any) -> object:
        found.append(desk.spark.conf.get(BATCH_BYTES) or "")
        return real(desk, *given)

    monkeypatch.setattr(Desk, "collected", watched)
    return found


def test_a_batch_has_few_rows_and_where_it_is_bounded_few_bytes(spark: SparkSession) -> None:
    texts = spark.range(0, 2_500, 1, 1).selectExpr("repeat('x', 50000) text")
    assert [rows for rows, _ in sizes(texts)] == [1_000, 1_000, 500]
    with few_bytes_at_once(spark):
        assert max(size for _, size in sizes(texts)) < 17 << 20
    assert [rows for rows, _ in sizes(texts)] == [1_000, 1_000, 500]


def test_types_with_blobs_are_read_by_bytes_and_others_are_not(
    spark: SparkSession, tmp_path: Path, limits: list[str]
) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    people = spark.sql("select concat('p', id) name, cast(id as int) age from range(30)")
    pages = spark.sql("select concat('p', id) name, cast(repeat('x', 2000000) as binary) photo from range(30)")
    graph.spark.load({"Person": people, "Page": pages}, mode="append", index=False)
    assert sorted(limits) == sorted([UNLIMITED_BYTES, str(16 << 20)])
    assert spark.conf.get(BATCH_BYTES) == UNLIMITED_BYTES
    assert {key: entry.row_count for key, entry in graph.snapshot().tables.items()} == {
        "node:Person": 30,
        "node:Page": 30,
    }


def test_the_limit_is_lifted_again_after_a_failure_and_one_of_the_session_stays(
    spark: SparkSession, tmp_path: Path, limits: list[str]
) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    broken = spark.sql("select concat('p', 1 / (id - id)) name from range(3)")
    with pytest.raises(og.BadRequest, match="DIVIDE_BY_ZERO"):
        graph.spark.load({"Page": broken}, mode="append")
    assert spark.conf.get(BATCH_BYTES) == UNLIMITED_BYTES
    spark.conf.set(BATCH_BYTES, OWN_BYTES)
    try:
        graph.spark.load({"Page": spark.sql("select concat('p', id) name from range(3)")}, mode="append", index=False)
        assert spark.conf.get(BATCH_BYTES) == OWN_BYTES
    finally:
        spark.conf.set(BATCH_BYTES, UNLIMITED_BYTES)
    assert limits == [str(16 << 20), OWN_BYTES]
