"""Bulk loads, reads and SQL through Spark Connect. Clients are children: a process has one kind of session."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from connect_server import ConnectServer, spark_environment

import omnigraph as og

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique  @range(age, 0..150) }
edge Knows: Person -> Person @card(0..3) { since: I32? }
"""

CLIENT = """
import json, sys
import omnigraph as og
from omnigraph.engine.write.load import LoadOptions
from omnigraph.pipeline.batch_bytes import BATCH_BYTES, UNLIMITED_BYTES
from omnigraph.pipeline.bulk import bench, rows, write
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.inputs import FrameInput
from omnigraph.pipeline.load import load_inputs
from omnigraph.records import splits
from omnigraph.settings import Settings

# Nothing is few: every relation is a frame, every table is staged by executors, every file is cut.
bench.STAGE_HERE_ROWS_MAX, rows.COMPARE_HERE_ROWS_MAX, write.ROWS_PER_TASK_MIN, splits.SPLIT_BYTES = 0, -1, 20, 4_000
folder, remote = sys.argv[1:]
if remote.startswith("local"):
    from pyspark.sql import SparkSession
    mine = SparkSession.builder.remote(remote).getOrCreate()
    graph = og.Graph.open(folder + "/graph")
else:
    graph = og.Graph.open(folder + "/graph", settings=Settings.resolve(spark_remote=remote))

def load(name, mode):
    done = graph.load(f"{folder}/{name}.jsonl", mode=mode, engine="spark", tell_tasks=lambda *seen: tasks.append(seen))
    return [done.engine, done.to_json()["total_entities"]]

tasks, told = [], {}
told["append"] = load("first", "append")
told["merge"] = load("merge", "merge")
try:
    load("bad", "append")
except og.InvalidData as error:
    told["bad"] = [error.total, str(error).split(": ", 1)[1]]
spark = graph.spark.session
told["kind"] = type(spark).__module__
told["cores"] = Desk(spark, None).cores
frame = spark.createDataFrame([(f"f{n}", n) for n in range(50)], "name string, age int")
done = load_inputs(graph, [FrameInput("node:Person", frame, "people")], LoadOptions("append"))
told["frames"] = done.to_json()["total_entities"]
spark.conf.set(BATCH_BYTES, UNLIMITED_BYTES)
large = spark.sql("select concat('f', id) name, cast(id as int) age, repeat(id, 100000) email from range(10, 13)")
done = graph.spark.load({"Person": large}, mode="merge")
told["large"] = [done.to_json()["total_entities"], spark.conf.get(BATCH_BYTES)]
told["nodes"] = [graph.spark.nodes("Person").count(), graph.spark.nodes("Person", filter="age < 10").count()]
told["sql"] = graph.spark.sql("select count(*) n from Person p join Knows k on k.src = p.id").collect()[0]["n"]
told["tasks"] = tasks[-1][0] > 0
told["again"] = graph.spark.session is spark
if remote.startswith("local"):
    told["mine"] = spark is mine
print("\\n" + json.dumps(told))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ConnectServer]:
    server = ConnectServer(tmp_path_factory.mktemp("connect"))
    server.start()
    yield server
    server.kill()


def person(name: str, **data: Any) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, **data}}


def put_lines(path: Path, lines: list[dict[str, Any]]) -> str:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return str(path)


def new_graph(folder: Path) -> og.Graph:
    put_lines(
        folder / "first.jsonl",
        [person(f"p{n}", age=n % 100, email=f"e{n}") for n in range(200)]
        + [{"edge": "Knows", "from": f"p{n}", "to": f"p{n + 1}"} for n in range(199)],
    )
    put_lines(folder / "merge.jsonl", [person(f"p{n}", age=1) for n in range(150, 250)])
    put_lines(folder / "bad.jsonl", [person(f"q{n}", age=n) for n in range(140, 160)])
    return og.Graph.init(str(folder / "graph"), SCHEMA)


def ran(command: list[str], folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        env={**spark_environment(), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=290,
        check=False,
    )


@pytest.mark.parametrize("remote", ["server", pytest.param("local[2]", marks=pytest.mark.full)])
def test_loads_frames_reads_and_sql_go_through_a_connect_session(
    remote: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    graph = new_graph(tmp_path)
    url = request.getfixturevalue("server").url if remote == "server" else remote
    done = ran(["-c", CLIENT, str(tmp_path), url], tmp_path)
    assert done.returncode == 0, done.stderr[-3000:]
    told = json.loads(done.stdout.strip().splitlines()[-1])
    assert told["kind"].startswith("pyspark.sql.connect")
    assert told["cores"] == 2
    assert told["append"] == ["spark", 399]
    assert told["merge"] == ["spark", 100]
    assert told["bad"] == [9, "@range violation on Person.age: value 151 > max 150 (and 8 more)"]
    assert told["frames"] == 50
    assert told["large"] == [3, str((1 << 31) - 1)]
    assert told["nodes"] == [300, 20 + 100 + 10]
    assert told["sql"] == 199
    assert told["tasks"] is True
    assert told["again"] is True
    assert told.get("mine", True) is True
    assert graph.snapshot().tables["node:Person"].row_count == 300


def test_the_program_loads_through_a_server_and_prints_only_its_own_lines(
    server: ConnectServer, tmp_path: Path
) -> None:
    new_graph(tmp_path)
    load = [
        "-m",
        "omnigraph.cli.main",
        "load",
        "graph",
        "--data",
        "first.jsonl",
        "--mode",
        "append",
        "--engine",
        "spark",
    ]
    done = ran([*load, "--master", server.url], tmp_path, SPARK_REMOTE="sc://127.0.0.1:1")
    assert done.stderr == "omnigraph load → graph\n"
    assert done.stdout.startswith("loaded graph on branch main with append: 200 nodes")
    assert done.returncode == 0


def test_a_server_that_dies_in_mid_job_is_unavailable_and_nothing_is_committed(tmp_path: Path) -> None:
    graph = new_graph(tmp_path)
    before = graph.snapshot().version
    lines = [person(f"p{n}", age=n % 100, email=f"e{n}") for n in range(60_000)]
    put_lines(tmp_path / "many.jsonl", lines)
    server = ConnectServer(tmp_path)
    server.start()
    load = ["load", "graph", "--data", "many.jsonl", "--mode", "append", "--engine", "spark"]
    client = subprocess.Popen(
        [sys.executable, "-m", "omnigraph.cli.main", *load],
        env={**spark_environment(), "SPARK_REMOTE": server.url},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        staging = tmp_path / "graph" / "__staging"
        until = time.monotonic() + 120
        while not (staging.exists() and os.listdir(staging)) and client.poll() is None:
            assert time.monotonic() < until
            time.sleep(0.05)
    finally:
        server.kill()
    out, err = client.communicate(timeout=200)
    first, error, hint = err.splitlines()
    assert (out, first) == ("", "omnigraph load → graph")
    assert error.startswith("error: ")
    assert error.endswith("the Spark server does not answer any more")
    assert hint.startswith("hint: Nothing was committed.")
    assert client.returncode == 6
    assert og.Graph.open(str(tmp_path / "graph")).snapshot().version == before
