"""The same source and sink through Spark Connect, in a child: a process has one kind of session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.pipeline.java import bundled_java, find_java

pytestmark = [pytest.mark.spark, pytest.mark.slow, pytest.mark.full]

CHILD = """
import json, sys
import pyarrow as pa
import omnigraph as og
from pyspark.sql import SparkSession
from omnigraph.pipeline.frames_api import SparkGraph

def add(name):
    graph.load_frames({"Person": pa.table({"name": [name], "age": pa.array([99], pa.int32())})}, mode="append")

graph = og.Graph.open(sys.argv[1])
spark = SparkSession.builder.remote("local[2]").getOrCreate()
told = {"kind": type(spark).__module__}
read = spark.read.format("omnigraph").option("type", "Person").load(graph.uri)
told["reused"] = [read.count(), read.where("age < 10").count(), read.count(), read.union(read.where("age = 1")).count()]
near = SparkGraph(graph, spark)
nodes = near.nodes("Person", filter="age >= 50")
query = near.sql("select count(*) n from Person where age >= :least", args={"least": 50})
near.register_views("v_")
before = [nodes.count(), query.collect()[0]["n"]]
add("later")
spark.conf.set("spark.connect.session.planCache.enabled", "false")
told["pinned"] = [before, [nodes.count(), query.collect()[0]["n"]], spark.table("v_Person").count()]
try:
    spark.read.format("omnigraph").option("type", "Persn").load(graph.uri).count()
except Exception as error:
    told["refused"] = str(error)
frame = spark.createDataFrame([("written", 7)], "name string, age int")
frame.write.format("omnigraph").option("type", "Person").mode("append").save(graph.uri)
told["after"] = near.nodes("Person").count()
print("\\n" + json.dumps(told))
spark.stop()
"""


def test_a_connect_session_reads_pins_refuses_and_writes_alike(tmp_path: Path) -> None:
    pytest.importorskip("grpc", reason="Spark Connect needs grpcio")
    graph = og.Graph.init(str(tmp_path / "g"), "node Person { name: String @key age: I32? }")
    rows = pa.table({"name": [f"p{n}" for n in range(80)], "age": pa.array(range(80), pa.int32())})
    graph.load_frames({"Person": rows}, mode="append")
    java = find_java(None, os.environ["PATH"], bundled=bundled_java())
    environment = {**os.environ, "JAVA_HOME": java.home, "PYSPARK_PYTHON": sys.executable}
    done = subprocess.run(
        [sys.executable, "-c", CHILD, graph.uri],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["kind"].startswith("pyspark.sql.connect")
    assert told["reused"] == [80, 10, 80, 81]
    assert told["pinned"] == [[30, 30], [30, 30], 80]
    assert "[not_found] unknown type 'Persn'. Did you mean 'Person'?" in told["refused"]
    assert told["after"] == 82
