"""A session starts wherever a Java can be found, quietly, and only once."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from omnigraph.base.errors import BadRequest, InternalError, Unavailable
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.session import SparkSettings, session, spark_conf
from omnigraph.storage.row_files import RowFolder

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SRC = str(Path(__file__).parents[2] / "src")

CHILD = """
import os
import lance  # warns at every fork, which a user must not see
from omnigraph.pipeline.session import SparkSettings, session
spark = session(SparkSettings(master="local[2]", search_path=os.environ["PATH"], shuffle_partitions=2))
def same(batches):
    yield from batches
print(spark.range(1000).mapInArrow(same, "id long").where("id % 10 = 0").count())
print(spark.sparkContext._jvm.System.getProperty("java.version").split(".")[0])
print("JAVA_HOME" in os.environ, "PYSPARK_PYTHON" in os.environ)
"""


def test_a_session_starts_with_the_java_on_the_path(spark):
    assert spark.range(100).selectExpr("sum(id)").first()[0] == 4950
    assert int(spark.sparkContext._jvm.System.getProperty("java.version").split(".")[0]) >= 17


def test_a_session_starts_without_java_on_the_path_and_prints_nothing_of_its_own(tmp_path):
    tools = tmp_path / "bin"
    tools.mkdir()
    for tool in ("bash", "sh", "dirname", "ps", "env", "cat", "rm", "mkdir", "chmod", "uname", "head"):
        found = next((Path(d, tool) for d in ("/bin", "/usr/bin") if Path(d, tool).exists()), None)
        if found:
            (tools / tool).symlink_to(found)
    home = tmp_path / "home"
    home.mkdir()
    env = {"PATH": str(tools), "HOME": str(home), "PYTHONPATH": SRC}
    env["JAVA_TOOL_OPTIONS"] = os.environ["JAVA_TOOL_OPTIONS"]
    child = subprocess.run(
        [sys.executable, "-c", CHILD], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert child.stderr == ""
    assert child.stdout.splitlines() == ["100", "21", "False False"]
    assert not (tmp_path / "spark-warehouse").exists()
    assert list((home / ".cache" / "omnigraph").iterdir())


def test_the_active_session_is_used_again_from_every_thread(spark):
    found = [session(SparkSettings(master="local[7]"))]
    thread = threading.Thread(target=lambda: found.append(session(SparkSettings(master="local[7]"))))
    thread.start()
    thread.join()
    assert [s.sparkContext.master for s in found] == ["local[2,2]", "local[2,2]"]
    assert found[0] is spark


def test_a_master_that_spark_refuses_is_unavailable_with_a_log_to_read(tmp_path):
    child = (
        "import os\nfrom omnigraph.pipeline.session import *\nfrom omnigraph.base.errors import Unavailable\n"
        "try:\n    session(SparkSettings(master='nowhere://host', search_path=os.environ['PATH']))\n"
        "except Unavailable as error:\n    print(error)\n    print(error.hint)\n"
    )
    env = {**os.environ, "PYTHONPATH": SRC, "TMPDIR": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", child], env=env, capture_output=True, text=True, timeout=120, check=True
    )
    text, hint = ran.stdout.splitlines()
    assert text.startswith("Spark did not start (nowhere://host, Java ")
    log = Path(hint.removeprefix("Spark's own words are in ").removesuffix("."))
    assert "Master must" in log.read_text()


def test_what_the_settings_say_last_wins_over_our_tuning(tmp_path):
    settings = SparkSettings(conf={"spark.ui.enabled": "true", "spark.my.own": "x"}, driver_memory="3g")
    conf = spark_conf(settings, tmp_path)
    assert conf.get("spark.ui.enabled") == "true"
    assert conf.get("spark.my.own") == "x"
    assert conf.get("spark.driver.memory") == "3g"
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"


def test_a_cluster_is_not_told_to_talk_to_loopback_nor_to_files_of_this_machine(tmp_path):
    conf = spark_conf(SparkSettings(master="spark://host:7077"), tmp_path)
    assert conf.get("spark.driver.bindAddress") is None
    assert conf.get("spark.executorEnv.PYTHONPATH") is None
    assert conf.get("spark.python.unix.domain.socket.enabled") is None


def test_workers_of_this_machine_are_reached_by_files_unless_their_names_would_be_too_long():
    places = (Path("/tmp/short"), "true"), (Path("/tmp") / ("long" * 20), None), (Path("/tmp") / ("長い" * 20), None)
    for folder, expected in places:
        conf = spark_conf(SparkSettings(master="local[2]"), folder)
        assert conf.get("spark.python.unix.domain.socket.enabled") == expected


def test_a_worker_that_ran_a_task_of_ours_looks_at_few_objects_when_it_collects_garbage(spark, tmp_path):
    desk = Desk(spark, RowFolder(str(tmp_path)))
    for _ in range(2):
        left = desk.answers(list(range(8)), lambda _: len(gc.get_objects()), "counting")
    # A worker that is new by now counts all it was born with.
    assert min(left) < 10_000 < len(gc.get_objects())


@pytest.mark.parametrize("query", ["select nope from range(3)", "selec 1", "select cast('x' as int)", "select 1/0"])
def test_a_wrong_query_is_a_bad_request_and_prints_nothing(spark, capfd, query):
    with pytest.raises(BadRequest, match="counting: Spark refused it: "), spark_failures("counting"):
        spark.sql(query).collect()
    assert capfd.readouterr().err == ""


def test_a_failing_worker_is_told_by_its_last_words(spark, capfd):
    def boom(batches):
        for _ in batches:
            raise RuntimeError("the roof fell in")
        yield

    with (
        pytest.raises(InternalError, match="mapping: a Spark worker failed: RuntimeError: the roof fell in"),
        spark_failures("mapping"),
    ):
        spark.range(3).mapInArrow(boom, "id long").collect()
    assert capfd.readouterr().err == ""


def test_a_broken_connection_to_spark_is_unavailable():
    with pytest.raises(Unavailable, match="loading: Spark failed") as refused, spark_failures("loading"):
        raise ConnectionRefusedError("gone")
    assert refused.value.what == "spark"
