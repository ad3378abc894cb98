"""A graph on S3 is read and written by Spark without a jar; how to reach it travels with the frame and is not shown."""

from __future__ import annotations

from dataclasses import fields

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

import omnigraph as og
from omnigraph.settings import Settings
from s3_server import SECRET, S3Server

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def store_options(settings: Settings) -> dict[str, str]:
    """How the store is reached, as a user would say it for one frame."""
    values = {f.name: getattr(settings, f.name) for f in fields(Settings) if f.name.startswith("aws_")}
    return {name: str(value) for name, value in values.items() if value is not None}


@pytest.fixture
def graph(s3_server: S3Server) -> og.Graph:
    made = og.Graph.init(s3_server.uri(), "node Person { name: String @key age: I32? }", settings=s3_server.settings())
    rows = pa.table({"name": [f"p{n}" for n in range(50)], "age": pa.array(range(50), pa.int32())})
    made.load_frames({"Person": rows}, mode="append", index=False)
    return made


def test_a_graph_on_s3_is_read_by_executors_and_no_credential_is_shown(
    spark: SparkSession, graph: og.Graph, capsys: pytest.CaptureFixture[str]
) -> None:
    read = graph.spark.nodes("Person", filter="age < 7")
    assert {row["name"] for row in read.collect()} == {f"p{n}" for n in range(7)}
    given = store_options(graph.settings)
    plain = spark.read.format("omnigraph").options(type="Person", **given).load(graph.uri)
    assert plain.count() == 50
    for frame in (read, plain):
        frame.explain(True)
        assert SECRET not in capsys.readouterr().out
        assert SECRET not in repr(frame)
    with pytest.raises(PySparkException) as refused:
        spark.read.format("omnigraph").options(type="Persn", **given).load(graph.uri)
    assert "Did you mean 'Person'?" in str(refused.value)
    assert SECRET not in str(refused.value)


def test_a_frame_is_written_to_s3_and_leaves_no_staged_file(spark: SparkSession, graph: og.Graph) -> None:
    frame = spark.range(40, 60, 1, 2).selectExpr("concat('p', id) name", "cast(id * 2 as int) age")
    options = {"type": "Person", "mode": "merge", **store_options(graph.settings)}
    frame.write.format("omnigraph").options(**options).mode("append").save(graph.uri)
    ages = {row["name"]: row["age"] for row in graph.spark.nodes("Person").collect()}
    assert ages == {f"p{n}": n if n < 40 else 2 * n for n in range(60)}
    assert list(graph.context.objects.list("__staging")) == []
