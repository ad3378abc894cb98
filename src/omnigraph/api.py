"""Everything `import omnigraph as og` offers, in one list. The package itself loads it only when asked."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from omnigraph import graph as handle
from omnigraph.base.errors import (
    BadRequest,
    CatalogError,
    Conflict,
    Drift,
    ExpectedVersionMismatch,
    GraphMoved,
    InternalError,
    InvalidData,
    KeyConflict,
    LimitExceeded,
    NotFound,
    OmniError,
    ParseError,
    PolicyDenied,
    PreconditionFailed,
    Reclaimed,
    RecoveryRequired,
    RowLevelCasContention,
    TypeCheckError,
    Unavailable,
)
from omnigraph.engine.write.changes import (
    Append,
    BuildIndexes,
    Compact,
    Delete,
    DeleteWhere,
    Fragments,
    Overwrite,
    Upsert,
)
from omnigraph.graph import OpenMode
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.settings import Settings

if TYPE_CHECKING:
    from omnigraph.pipeline.frames_api import SparkGraph


class Graph(handle.Graph):
    """A graph at one place, with the rooms above it as namespaces. Safe to use from several threads."""

    @cached_property
    def spark(self) -> SparkGraph:
        """The graph as DataFrames; Spark is loaded when this is first used."""
        from omnigraph.pipeline.frames_api import SparkGraph

        return SparkGraph(self)


Omnigraph = Graph

__all__ = [
    "Append",
    "BadRequest",
    "BuildIndexes",
    "CatalogError",
    "Compact",
    "Conflict",
    "Delete",
    "DeleteWhere",
    "Drift",
    "ExpectedVersionMismatch",
    "Fragments",
    "Graph",
    "GraphCommit",
    "GraphMoved",
    "InternalError",
    "InvalidData",
    "KeyConflict",
    "LimitExceeded",
    "NotFound",
    "OmniError",
    "Omnigraph",
    "OpenMode",
    "Overwrite",
    "ParseError",
    "PolicyDenied",
    "PreconditionFailed",
    "Reclaimed",
    "RecoveryRequired",
    "RowLevelCasContention",
    "Settings",
    "Snapshot",
    "TypeCheckError",
    "Unavailable",
    "Upsert",
]
