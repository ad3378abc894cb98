"""What a user reads when Spark cannot be had or goes away: one error and one hint, and nothing of Spark's own."""

from __future__ import annotations

import socket
import stat
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace

import pytest
from connect_server import spark_environment
from pyspark import accumulators
from standalone_cluster import StandaloneCluster

import omnigraph as og
from omnigraph.base.errors import BadRequest, Unavailable
from omnigraph.pipeline.masters import addresses, refuse_nonsense, refuse_unreachable
from omnigraph.pipeline.session import quiet_strangers, spark_session
from omnigraph.settings import Settings

NO_MASTERS = """
nowhere local[0] local[x] local[2 spark://host spark://:7077 spark://h:99999 spark://h:7077/x sc:// sc://h:1/path http ://x
"""
MASTERS = """
local local[*] local[4] local[2,3] local[*,2] local-cluster[2,1,1024] yarn k8s://https://h:1
spark://h:7077 spark://a:1,b:2 spark://[::1]:7077 sc://h sc://h:1 sc://h:1/;token=a;use_ssl=true
"""


def program(folder: Path, *options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """`omnigraph load` on Spark, in a process of its own."""
    if not (folder / "graph").exists():
        og.Graph.init(str(folder / "graph"), "node Person { name: String @key }")
        (folder / "in.jsonl").write_text('{"type": "Person", "data": {"name": "Ada"}}\n')
    load = ["load", "graph", "--data", "in.jsonl", "--mode", "append", "--engine", "spark", *options]
    return run_program(folder, load, **environment)


def run_program(folder: Path, words: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "omnigraph.cli.main", *words],
        env={**spark_environment(), "TMPDIR": str(folder), **environment},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )


def told(done: subprocess.CompletedProcess[str]) -> tuple[int, str, str]:
    """The exit code, the error and the hint; there is nothing else."""
    first, error, hint = done.stderr.splitlines()
    assert (first, done.stdout) == ("omnigraph load → graph", "")
    assert error.startswith("error: ")
    assert hint.startswith("hint: ")
    return done.returncode, error.removeprefix("error: "), hint.removeprefix("hint: ")


@pytest.mark.parametrize("url", ["", "local [2]", *NO_MASTERS.split()])
def test_a_url_that_no_spark_would_take_is_refused(url):
    with pytest.raises(BadRequest, match="is no Spark master") as refused:
        refuse_nonsense(url)
    assert "spark://host:port" in refused.value.hint


@pytest.mark.parametrize("url", MASTERS.split())
def test_every_kind_of_spark_can_be_named(url):
    refuse_nonsense(url)


def test_addresses_are_those_that_spark_would_try():
    assert addresses("spark://a:1,[::1]:2") == [("a", 1), ("::1", 2)]
    assert addresses("sc://h/;token=x:9") == [("h", 15002)]
    assert addresses("local[2]") == addresses("yarn") == []


def test_a_master_nobody_listens_at_is_told_by_its_name():
    with pytest.raises(Unavailable, match=r"no Spark answers at spark://127.0.0.1:1,127.0.0.1:2") as refused:
        refuse_unreachable("spark://127.0.0.1:1,127.0.0.1:2", "Start it.")
    assert refused.value.hint == "Start it."


def test_a_master_and_a_server_at_once_are_refused_and_an_upper_level_hides_a_lower_one(tmp_path, monkeypatch):
    for name in ("OMNIGRAPH_SPARK_MASTER", "SPARK_REMOTE"):
        monkeypatch.delenv(name, raising=False)
    file = tmp_path / "omnigraph.yaml"
    file.write_text("spark:\n  remote: sc://file:1\n")
    assert Settings.resolve(str(file)).spark_remote == "sc://file:1"
    monkeypatch.setenv("OMNIGRAPH_SPARK_MASTER", "local[2]")
    seen = Settings.resolve(str(file))
    assert (seen.spark_master, seen.spark_remote) == ("local[2]", None)
    seen = Settings.resolve(str(file), spark_remote="sc://given:1")
    assert (seen.spark_master, seen.spark_remote) == (None, "sc://given:1")
    monkeypatch.setenv("SPARK_REMOTE", "sc://env:1")
    with pytest.raises(BadRequest, match=r"spark.master \(local\[2\]\) and spark.remote \(sc://env:1\) are both set"):
        spark_session(Settings.resolve(str(file)))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (["--master", "spark://127.0.0.1:1"], 6, "no Spark answers at spark://127.0.0.1:1: Connection refused"),
        (["--master", "sc://127.0.0.1:1"], 6, "no Spark answers at sc://127.0.0.1:1: Connection refused"),
        (["--master", "nowhere"], 1, "'nowhere' is no Spark master"),
        (["--spark-conf", "driver.memory=4g"], 1, "'driver.memory' is no setting of Spark"),
    ],
)
def test_what_can_be_known_beforehand_is_told_before_spark_is_started(tmp_path, options, code, text):
    assert told(program(tmp_path, *options))[:2] == (code, text)
    assert not list(tmp_path.glob("omnigraph-spark-*"))


@pytest.mark.slow
@pytest.mark.spark
def test_a_spark_that_dies_in_a_pipeline_is_told_as_that_and_nothing_is_committed(tmp_path):
    graph = og.Graph.init(str(tmp_path / "graph"), "node Person { name: String @key }")
    (tmp_path / "in.csv").write_text("name\nAda\n")
    deadly = "\"concat(name, java_method('java.lang.System', 'exit', 3))\""
    (tmp_path / "pipeline.yaml").write_text(
        "version: 1\ntarget: {graph: graph, mode: append}\n"
        "sources: {rows: {format: csv, path: in.csv, options: {header: true}}}\n"
        f"nodes: [{{type: Person, from: rows, map: {{name: {deadly}}}}}]\n"
    )
    done = run_program(tmp_path, ["pipeline", "run", "pipeline.yaml", "--master", "local[2]"])
    lines = done.stderr.splitlines()
    assert (done.returncode, lines[0], len(lines)) == (6, "omnigraph pipeline run → graph", 3), done.stderr
    assert lines[1].startswith("error: reading rows: Spark failed: ")
    assert lines[2].startswith("hint: Nothing was committed. ")
    assert graph.snapshot().tables["node:Person"].row_count == 0


@pytest.mark.slow
def test_the_environment_and_the_file_can_name_a_server_that_is_not_there(tmp_path):
    done = program(tmp_path, SPARK_REMOTE="sc://127.0.0.1:1")
    assert told(done)[1] == "no Spark answers at sc://127.0.0.1:1: Connection refused"
    (tmp_path / "omnigraph.yaml").write_text("spark:\n  remote: sc://127.0.0.1:2\n")
    assert told(program(tmp_path))[1] == "no Spark answers at sc://127.0.0.1:2: Connection refused"


@pytest.mark.slow
def test_an_old_java_that_the_settings_name_is_refused(tmp_path):
    java = tmp_path / "jdk" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text("#!/bin/sh\necho 'openjdk version \"11.0.2\"' >&2\n")
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "omnigraph.yaml").write_text(f"spark:\n  java_home: {tmp_path / 'jdk'}\n")
    code, text, hint = told(program(tmp_path))
    assert (code, text) == (6, f"{java} is Java 11; Spark needs 17 or newer")
    assert "Install Java 17 or newer" in hint


@pytest.mark.slow
def test_without_grpc_the_extra_to_install_is_named(tmp_path):
    child = (
        "import sys\n"
        "class Absent:\n"
        "    def find_spec(self, name, *_):\n"
        "        if name.split('.')[0] in ('grpc', 'grpc_status'):\n"
        "            raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Absent())\n"
        "from omnigraph.cli.main import run\n"
        "sys.argv = ['omnigraph', 'load', 'graph', '-d', 'in.jsonl', '--mode', 'append', '--master', 'sc://127.0.0.1:1']\n"
        "run()\n"
    )
    program(tmp_path, "--master", "nowhere")
    done = subprocess.run(
        [sys.executable, "-c", child],
        env=spark_environment(),
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert told(done) == (6, "Spark Connect needs grpcio, grpcio-status", "Run pip install 'omnigraph[connect]'.")


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize(
    ("conf", "code", "text"),
    [
        ("spark.driver.memory=lots", 6, "Spark did not start (local[2], Java "),
        ("spark.sql.shuffle.partitions=abc", 1, "Spark does not take its settings"),
    ],
)
def test_a_setting_that_spark_refuses_is_told_with_its_reason(tmp_path, conf, code, text):
    seen, error, hint = told(program(tmp_path, "--master", "local[2]", "--spark-conf", conf))
    assert seen == code
    assert error.startswith(text)
    assert conf.split("=")[1] in error
    assert "Spark's own words are in " in hint


@pytest.mark.spark
@pytest.mark.slow
def test_a_load_on_spark_prints_only_its_own_lines_and_a_broken_java_home_is_no_obstacle(tmp_path):
    done = program(
        tmp_path, "--master", "local[2]", JAVA_HOME=str(tmp_path / "nothing"), SPARK_REMOTE="sc://127.0.0.1:1"
    )
    assert done.stderr == "omnigraph load → graph\n"
    lines = done.stdout.splitlines()
    assert lines == [
        "loaded graph on branch main with append: 1 nodes across 1 node types, 0 edges across 0 edge types"
    ]
    assert done.returncode == 0


def test_a_stranger_at_the_port_of_the_accumulators_leaves_no_word_on_stderr(capfd):
    server = accumulators._start_update_server("token", False)
    quiet_strangers(SimpleNamespace(_accumulatorServer=server))
    with socket.create_connection(server.server_address, timeout=10) as stranger:
        stranger.sendall(b"wrong")
        with suppress(ConnectionResetError):
            assert stranger.recv(1) == b""
    server.shutdown()
    assert capfd.readouterr().err == ""


@pytest.mark.spark
@pytest.mark.slow
def test_a_cluster_that_is_lost_in_mid_job_ends_the_job(tmp_path):
    child = (
        "import sys\n"
        "from omnigraph.pipeline import progress\n"
        "from omnigraph.pipeline.failures import spark_failures\n"
        "from omnigraph.pipeline.session import spark_session\n"
        "from omnigraph.settings import Settings\n"
        "from omnigraph.base.errors import Unavailable\n"
        "progress.LOST_SECONDS = 3\n"
        "def slow(batches):\n"
        "    import time\n"
        "    for batch in batches:\n"
        "        open(sys_argv[2], 'w').close()\n"
        "        time.sleep(300)\n"
        "        yield batch\n"
        "sys_argv = list(sys.argv)\n"
        "spark = spark_session(Settings.resolve(spark_master=sys.argv[1]))\n"
        "try:\n"
        "    with progress.watched(spark, None), spark_failures('waiting'):\n"
        "        spark.range(0, 1, 1, 1).mapInArrow(slow, 'id long').collect()\n"
        "except Unavailable as error:\n"
        "    print(error)\n"
        "    print(error.hint)\n"
    )
    cluster = StandaloneCluster(tmp_path)
    cluster.start()
    begun = tmp_path / "begun"
    client = subprocess.Popen(
        [sys.executable, "-c", child, cluster.url, str(begun)],
        env={**spark_environment(), "PYTHONUNBUFFERED": "1"},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        cluster.wait_for(begun.exists, client)
    finally:
        cluster.kill()
    out, err = client.communicate(timeout=120)
    assert out.splitlines() == [
        f"the Spark cluster at {cluster.url} was lost: no executor is left",
        "Nothing was committed. Run again when the cluster is back.",
    ]
    assert err == ""
