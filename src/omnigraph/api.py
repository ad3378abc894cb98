"""Everything `import omnigraph as og` offers, in one list. The package itself loads it only when asked."""

from __future__ import annotations

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
from omnigraph.graph import Graph, OpenMode
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.settings import Settings

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
