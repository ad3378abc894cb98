"""Which engine does a load or a merge: the choice is made by size and configuration, never by feature."""

from __future__ import annotations

from typing import Literal, cast, get_args

from omnigraph.base.errors import BadRequest
from omnigraph.settings import Settings

Engine = Literal["auto", "embedded", "spark"]


def check_engine(engine: str) -> Engine:
    for known in get_args(Engine):
        if engine == known:
            return cast(Engine, known)
    raise BadRequest(f"unknown engine {engine!r}", "Use auto, embedded or spark.")


def choose_engine(engine: str, stored_bytes: int | None, settings: Settings) -> Engine:
    """The engine asked for; `auto` takes Spark for large inputs and where a master is configured.

    `stored_bytes` is the size of the input as it lies there, None for a stream, which one process reads.
    """
    check_engine(engine)
    if engine == "spark" and stored_bytes is None:
        hint = "Save it to a file, or use the embedded engine."
        raise BadRequest("standard input cannot be read by several", hint)
    if engine != "auto" or stored_bytes is None:
        return "spark" if engine == "spark" else "embedded"
    configured = settings.spark_master is not None or settings.spark_remote is not None
    return "spark" if configured or stored_bytes >= settings.load_auto_spark_bytes else "embedded"
