"""The Spark session of this process: the one that is already active, or a quick and quiet one of our own.

Holds at every return:
  1. There is one session in the process, classic or of a Connect server; one that somebody else started is used as is.
  2. The JVM writes to a log file, never to the user's terminal.
  3. Python workers run the interpreter that runs the driver, unless the settings name another.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import socket
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
from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext, java_gateway
from pyspark.errors import IllegalArgumentException, PySparkException
from pyspark.logger import PySparkLogger
from pyspark.sql import SparkSession
from pyspark.sql.utils import is_remote

import omnigraph.pipeline
from omnigraph.base.errors import BadRequest, OmniError, Unavailable
from omnigraph.pipeline.batch_bytes import BATCH_BYTES, BATCH_ROWS, FEW_ROWS, UNLIMITED_BYTES
from omnigraph.pipeline.connect import connect_session, default_session
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.java import JavaRuntime, bundled_java, find_java
from omnigraph.pipeline.masters import is_local, is_loopback, is_server, refuse_nonsense, refuse_unreachable
from omnigraph.settings import Settings

# What our SQL, its answers and its end rely on; a session of ours has them on every kind of Spark.
_MEANING = {
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.ansi.enabled": "true",
    "spark.sql.execution.arrow.pyspark.enabled": "true",
    # Rows of a cross product that lie in a plain buffer are walked without a look whether the task was cancelled: one
    # that was stopped for its time would go on to its end, in hours. Rows of a sorter are walked with that look.
    "spark.sql.cartesianProductExec.buffer.in.memory.threshold": "0",
}
_REASON_CHARS_MAX = 500
# The path of a socket may have 104 bytes, of which its name takes 42.
_SOCKET_FOLDER_BYTES_MAX = 60
_starting = threading.Lock()
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class SparkSettings:
    """How to start Spark when no session is active; `conf` has the last word over everything else.

    `remote` is the `sc://` address of a Connect server and stands in place of the master. `search_path` is the list of
    directories (as in PATH) to look for `java` in.
    """

    master: str = "local[*]"
    remote: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict)
    java_home: str | None = None
    search_path: str = os.defpath
    driver_memory: str = "1g"
    shuffle_partitions: int = 4
    python: str = sys.executable
    app_name: str = "omnigraph"

    @property
    def is_local(self) -> bool:
        return is_local(self.master)


def spark_session(settings: Settings) -> SparkSession:
    """The active session, or one of our own as the settings say.

    A Java home from the environment is only looked at first; where it is too old, the bundled Java serves.
    """
    conf = dict(settings.spark_conf)
    master = conf.pop("spark.master", None) or settings.spark_master
    remote = conf.pop("spark.remote", None) or settings.spark_remote
    if master and remote:
        hint = "Name one of them; --master on the line goes before both."
        raise BadRequest(f"spark.master ({master}) and spark.remote ({remote}) are both set", hint)
    url = master or remote or "local[*]"
    home = settings.environment_java_home
    return session(
        SparkSettings(
            master=url,
            remote=url if is_server(url) else None,
            conf=conf,
            java_home=settings.spark_java_home,
            search_path=os.pathsep.join([*([f"{home}/bin"] if home else []), settings.search_path]),
        )
    )


def session(settings: SparkSettings) -> SparkSession:
    """The active session if there is one, else a new one made as the settings say."""
    with _starting:
        with spark_failures("reaching the Spark session of this process"):
            active = _active()
        return active if active is not None else _start(settings)


def _active() -> SparkSession | None:
    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    # Another thread may have started it.
    if is_remote():
        return default_session()
    return SparkSession(SparkContext._active_spark_context) if SparkContext._active_spark_context is not None else None


def _start(settings: SparkSettings) -> SparkSession:
    for name in settings.conf:
        if not name.startswith("spark."):
            raise BadRequest(f"'{name}' is no setting of Spark", f"Their names start with spark., as in spark.{name}.")
    refuse_nonsense(settings.remote or settings.master)
    _quiet_python_loggers()
    if settings.remote is not None:
        return connect_session(settings.remote, _MEANING | dict(settings.conf))
    refuse_unreachable(
        settings.master, "Start the cluster, or correct spark.master, OMNIGRAPH_SPARK_MASTER or --master."
    )
    return _start_classic(settings)


def _start_classic(settings: SparkSettings) -> SparkSession:
    java = find_java(settings.java_home, settings.search_path, bundled=bundled_java())
    scratch = Path(tempfile.mkdtemp(prefix="omnigraph-spark-"))
    log = scratch / "spark.log"
    conf = spark_conf(settings, scratch)
    with _launch_environment(settings, java.home):
        try:
            gateway = _gateway(conf, log)
            context = SparkContext(conf=conf, gateway=gateway)
            context.setLogLevel("ERROR")
            quiet_strangers(context)
            spark = SparkSession(context)
            _ = spark.range(1).schema  # Spark reads its SQL settings only when a query is looked at.
        except (PySparkException, Py4JError, OSError) as error:
            refused = _not_started(error, settings, java, log)
            if SparkContext._active_spark_context is not None:
                SparkContext._active_spark_context.stop()
            raise refused from error
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    return spark


def _not_started(error: Exception, settings: SparkSettings, java: JavaRuntime, log: Path) -> OmniError:
    reason, refuses = "", False
    if isinstance(error, Py4JJavaError):
        cause = error.java_exception
        reason = str(cause.getMessage() or cause.getClass().getName())
        refuses = is_instance_of(SparkContext._gateway, cause, "java.lang.IllegalArgumentException")
    elif isinstance(error, IllegalArgumentException):
        reason, refuses = _innermost(error), True
    elif isinstance(error, PySparkException):
        reason = _said_last(log)
    told = f": {reason.strip().splitlines()[0][:_REASON_CHARS_MAX]}" if reason.strip() else ""
    words = f"Spark's own words are in {log}."
    if refuses and settings.conf:
        return BadRequest(f"Spark does not take its settings{told}", f"Correct --spark-conf or spark.conf. {words}")
    started = f"Spark did not start ({settings.master}, Java {java.major} at {java.home})"
    return Unavailable(f"{started}{told}", words, what="spark")


def _innermost(error: Exception) -> str:
    """What the first cause said; those around it only tell where it happened."""
    cause = getattr(error, "_cause", None)
    return _innermost(cause) if isinstance(cause, Exception) else str(error)


def _said_last(log: Path) -> str:
    """The line of the log that most likely says why the JVM ended; for people only."""
    try:
        lines = log.read_text(errors="replace").splitlines()
    except OSError:
        return ""
    telling = [line for line in lines if ("Error" in line or "Exception" in line or "Invalid" in line)]
    return next((line for line in telling if not line.startswith(("\t", " "))), "")


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
        BATCH_ROWS: FEW_ROWS,
        BATCH_BYTES: UNLIMITED_BYTES,
        **_MEANING,
    }
    if settings.is_local or is_loopback(settings.master):
        options |= {
            "spark.driver.bindAddress": "127.0.0.1",
            "spark.driver.host": "127.0.0.1",
            "spark.sql.shuffle.partitions": str(settings.shuffle_partitions),
            "spark.driver.extraJavaOptions": "-XX:+UseSerialGC",
            # Workers import this very copy of the package, also where it is not installed.
            "spark.executorEnv.PYTHONPATH": _package_root(),
        }
    if settings.is_local:
        options |= _sockets(scratch)
    return SparkConf(loadDefaults=False).setAll(list((options | dict(settings.conf)).items()))


def _sockets(folder: Path) -> dict[str, str]:
    """Workers on this machine are reached without TCP, over which every task waits 40 ms for an acknowledgement."""
    if not hasattr(socket, "AF_UNIX") or len(os.fsencode(folder)) > _SOCKET_FOLDER_BYTES_MAX:
        return {}
    return {"spark.python.unix.domain.socket.enabled": "true", "spark.python.unix.domain.socket.dir": str(folder)}


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
    wanted: dict[str, str | None] = {"JAVA_HOME": java_home, "PYSPARK_PYTHON": settings.python}
    # A master was chosen: a server that the environment names must not be asked in its place.
    wanted |= dict.fromkeys(("SPARK_REMOTE", "SPARK_API_MODE", "SPARK_CONNECT_MODE_ENABLED"))
    if settings.is_local:
        # A SPARK_HOME of another release would start jars that this pyspark cannot talk to.
        wanted["SPARK_HOME"] = str(Path(pyspark.__file__).parent)
    before = {name: os.environ.get(name) for name in wanted}
    _set_environment(wanted)
    try:
        yield
    finally:
        _set_environment(before)


def _set_environment(values: Mapping[str, str | None]) -> None:
    for name, value in values.items():
        if value is None:
            os.environ.pop(name, None)
        else:
            os.environ[name] = value


def quiet_strangers(context: SparkContext) -> None:
    """Whoever else connects to the port of pyspark's accumulators is turned away without a traceback on our stderr.

    The JVM of a driver that was killed does: it goes on sending to the port its driver had.
    """

    def turned_away(_request: object, address: object) -> None:
        _log.debug("a connection from %s to the port of the accumulators was refused", address, exc_info=True)

    context._accumulatorServer.handle_error = turned_away  # type: ignore[assignment, method-assign]


def _quiet_python_loggers() -> None:
    # pyspark prints each refused query as JSON; its exception says the same and reaches the user through us.
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    # The gateway tells the root logger, with a traceback, that its JVM is gone; who asked for something is told by us.
    logging.getLogger().addFilter(_is_not_the_gateways)


def _is_not_the_gateways(record: logging.LogRecord) -> bool:
    return Path(record.pathname).parent.name != "py4j"
