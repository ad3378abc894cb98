"""Which engine runs an algorithm, and its values as a result."""

from __future__ import annotations

from collections.abc import Mapping
from typing import get_args

import pyarrow as pa

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.types import PropertyType, ScalarType, arrow_type
from omnigraph.engine.analytics.call import Asked, Scope
from omnigraph.engine.read.engines import Engine
from omnigraph.engine.read.result import QueryResult
from omnigraph.engine.view import View
from omnigraph.settings import Settings

# Both ends of an edge as the algorithms hold them.
_EDGE_BYTES = 16
_VALUES = {"pagerank": ScalarType.F64, "components": ScalarType.STRING, "degree": ScalarType.I64}


def chosen_engine(engine: str, view: View, scope: Scope, settings: Settings) -> Engine:
    """The engine asked for; `auto` takes memory where the edges fit what adjacency may take, Spark otherwise."""
    if engine not in get_args(Engine):
        raise BadRequest(f"unknown engine {engine!r}", "Use auto, embedded or spark.")
    if engine != "auto":
        return "spark" if engine == "spark" else "embedded"
    rows = sum(view.entry(edge.table_key).row_count for edge in scope.edges)
    return "embedded" if rows * _EDGE_BYTES <= settings.cache_csr_bytes else "spark"


def valued(table: pa.Table, asked: Asked, view: View, target: Mapping[str, str]) -> QueryResult:
    types = [PropertyType(scalar) for scalar in (ScalarType.STRING, ScalarType.STRING, _VALUES[asked.algorithm])]
    schema = pa.schema(list(zip(("id", "type", "value"), map(arrow_type, types), strict=True)))
    commit = view.snapshot.graph_commit_id
    return QueryResult(table.cast(schema), types, query_name=asked.algorithm, target=target, graph_commit_id=commit)
