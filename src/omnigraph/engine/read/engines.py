"""Which engine answers a query: the choice is made by size and configuration, never by feature."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from omnigraph.base.errors import BadRequest
from omnigraph.engine.view import View
from omnigraph.settings import Settings

Engine = Literal["auto", "embedded", "spark"]
# What one row of a table costs a query that keeps it in memory.
_ROW_BYTES = 48


def choose_engine(engine: str, view: View, columns: Mapping[str, frozenset[str]], settings: Settings) -> Engine:
    """The engine asked for; `auto` takes Spark where one is configured and the tables are more than memory allows."""
    if engine not in get_args(Engine):
        raise BadRequest(f"unknown engine {engine!r}", "Use auto, embedded or spark.")
    if engine != "auto":
        return "spark" if engine == "spark" else "embedded"
    configured = settings.spark_master is not None or settings.spark_remote is not None
    rows = sum(view.entry(key).row_count for key in columns)
    return "spark" if configured and rows * _ROW_BYTES > settings.limits_query_memory_bytes else "embedded"
