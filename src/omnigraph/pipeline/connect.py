"""A session of a Spark Connect server: the executors are elsewhere, and this process needs no Java."""

from __future__ import annotations

import atexit
import importlib.util
import warnings
from collections.abc import Mapping
from typing import Any

from pyspark.errors import AnalysisException, IllegalArgumentException
from pyspark.sql import SparkSession

from omnigraph.base.errors import BadRequest, OmniError, Unavailable
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.masters import refuse_unreachable

# A server that does not answer is tried again for about twelve seconds, not for pyspark's ten minutes: what is over by
# then was the network, and a server that was started again has forgotten the session.
_RETRIES = 6
_BACKOFF_MS_MAX = 4_000
_PACKAGES = {
    "grpc": "grpcio",
    "grpc_status": "grpcio-status",
    "google.rpc": "googleapis-common-protos",
    "zstandard": "zstandard",
}


def connect_session(url: str, conf: Mapping[str, str]) -> SparkSession:
    """A session of the server at `url`, with `conf` set in it."""
    _refuse_without_packages()
    refuse_unreachable(url, "Start the Spark Connect server, or correct spark.remote, SPARK_REMOTE or --master.")
    from pyspark.sql.connect.client.retries import DefaultPolicy

    # The exception that follows says the same.
    warnings.filterwarnings("ignore", message=r"\[RETRIES_EXCEEDED\]")
    spark: Any = None
    try:
        with spark_failures(f"opening a session at {url}"):
            spark = SparkSession.builder.remote(url).getOrCreate()
            spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=_BACKOFF_MS_MAX)])
            # Nothing was asked of the server so far.
            _ = spark.version
        _set(spark, conf)
    except OmniError:
        if spark is not None:
            spark.client.set_retry_policies([])
            spark.stop()
        raise
    # At the end pyspark says goodbye to the server; one that is gone must not hold up the end.
    atexit.register(spark.client.set_retry_policies, [])
    return spark  # type: ignore[no-any-return]


def _set(spark: Any, conf: Mapping[str, str]) -> None:
    for name, value in conf.items():
        try:
            spark.conf.set(name, value)
        except (AnalysisException, IllegalArgumentException) as error:
            text = f"the Spark server does not take {name}={value}"
            hint = "Only spark.sql settings can be set for a session of a server; others belong to the server itself."
            raise BadRequest(text, hint) from error


def default_session() -> SparkSession | None:
    """The Connect session that another thread of this process opened, or None."""
    from pyspark.sql.connect.session import SparkSession as ConnectSession

    found: Any = ConnectSession._get_default_session()
    return None if found is None or found.is_stopped else found


def _refuse_without_packages() -> None:
    missing = [package for module, package in _PACKAGES.items() if not _is_there(module)]
    if missing:
        raise Unavailable(
            f"Spark Connect needs {', '.join(missing)}", "Run pip install 'omnigraph[connect]'.", what="spark"
        )


def _is_there(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is missing
        return False
