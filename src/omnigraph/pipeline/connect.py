"""A session of a Spark Connect server: the executors are elsewhere, and this process needs no Java."""

from __future__ import annotations

import importlib.util
import warnings
from collections.abc import Mapping
from typing import Any

from pyspark.sql import SparkSession

from omnigraph.base.errors import Unavailable
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.masters import refuse_unreachable

# A server that is gone is tried again for about half a minute; pyspark's own default is ten minutes.
_RETRIES = 9
_BACKOFF_MS_MAX = 5_000
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
    with spark_failures(f"opening a session at {url}"):
        spark: Any = SparkSession.builder.remote(url).getOrCreate()
        spark.client.set_retry_policies([DefaultPolicy(max_retries=_RETRIES, max_backoff=_BACKOFF_MS_MAX)])
        for name, value in conf.items():
            spark.conf.set(name, value)
        # Nothing was asked of the server so far if nothing was to be set.
        _ = spark.version
    return spark  # type: ignore[no-any-return]


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
