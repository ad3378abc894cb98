"""The Spark session of this process: the one that is already active, or a quick and quiet one of our own.

Holds at every return:
  1. There is one session in the process; a session somebody else started is used as it is.
  2. The JVM writes to a log file, never to the user's terminal.
  3. Python workers run the interpreter that runs the driver, unless the settings name another.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import sys
import tempfile
import threading
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession

import omnigraph.pipeline
from omnigraph.base.errors import Unavailable
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.java import bundled_java, find_java

_starting = threading.Lock()


@dataclass(frozen=True)
class SparkSettings:
    """How to start Spark when no session is active; `conf` has the last word over everything else.

    `search_path` is the list of directories (as in PATH) to look for `java` in.
    """

    master: str = "local[*]"
    conf: Mapping[str, str] = field(default_factory=dict)
    java_home: str | None = None
    search_path: str = os.defpath
    driver_memory: str = "1g"
    shuffle_partitions: int = 4
    python: str = sys.executable
    app_name: str = "omnigraph"

    @property
    def is_local(self) -> bool:
        return self.master.split("[")[0] == "local"


def session(settings: SparkSettings) -> SparkSession:
    """The active session if there is one, else a new one made as the settings say."""
    with _starting:
        with spark_failures("reaching the Spark session of this process"):
            active = SparkSession.getActiveSession()
            if active is None and SparkContext._active_spark_context is not None:  # started by another thread
                active = SparkSession.builder.getOrCreate()
        return active if active is not None else _start(settings)


def _start(settings: SparkSettings) -> SparkSession:
    java = find_java(settings.java_home, settings.search_path, bundled=bundled_java())
    scratch = Path(tempfile.mkdtemp(prefix="omnigraph-spark-"))
    log = scratch / "spark.log"
    conf = spark_conf(settings, scratch)
    with _launch_environment(settings, java.home):
        try:
            gateway = _gateway(conf, log)
            context = SparkContext(conf=conf, gateway=gateway)
        except (PySparkException, Py4JError, OSError) as error:
            raise Unavailable(
                f"Spark did not start ({settings.master}, Java {java.major} at {java.home})",
                f"Spark's own words are in {log}.",
                what="spark",
            ) from error
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    context.setLogLevel("ERROR")
    _quiet_python_loggers()
    with spark_failures("starting Spark"):
        return SparkSession.builder.getOrCreate()


def spark_conf(settings: SparkSettings, scratch: Path) -> SparkConf:
    """Every option of a session of ours, spelled out."""
    options = {
        "spark.app.name": settings.app_name,
        "spark.master": settings.master,
        "spark.driver.memory": settings.driver_memory,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.ansi.enabled": "true",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
    }
    if settings.is_local:
        options |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
            # Workers import this very copy of the package, also where it is not installed.
            "spark.executorEnv.PYTHONPATH": _package_root(),
        }
    return SparkConf(loadDefaults=False).setAll(list((options | dict(settings.conf)).items()))


def _package_root() -> str:
    return str(Path(omnigraph.pipeline.__file__).parents[2])


def _gateway(conf: SparkConf, log: Path) -> Any:
    """The JVM's gateway; a JVM left by a stopped session is used again."""
    if SparkContext._gateway is not None:
        return SparkContext._gateway
    launch: Any = java_gateway.launch_gateway
    with log.open("ab") as output, warnings.catch_warnings():
        # The launcher forks only to become spark-submit at once, so Lance's warning about forks does not apply.
        warnings.filterwarnings("ignore", message="lance is not fork-safe")
        return launch(conf, {"stdout": output, "stderr": output})


@contextmanager
def _launch_environment(settings: SparkSettings, java_home: str) -> Iterator[None]:
    """What Spark's launcher reads from the environment, while it launches; the only place that writes it."""
    wanted = {"JAVA_HOME": java_home, "PYSPARK_PYTHON": settings.python}
    if settings.is_local:
        # A SPARK_HOME of another release would start jars that this pyspark cannot talk to.
        wanted["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _quiet_python_loggers() -> None:
    # pyspark prints each refused query as JSON; its exception says the same and reaches the user through us.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
