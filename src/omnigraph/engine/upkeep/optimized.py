"""What an optimize did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.engine.write.ensure_indices import PendingIndex

DRIFT = "drift_needs_repair"


@dataclass(frozen=True)
class TableOptimized:
    """One table. `skipped` says why nothing was tried; `table_version` is what readers see afterwards."""

    table_key: str
    table_version: int
    lance_head_version: int
    fragments_removed: int = 0
    fragments_added: int = 0
    fragments: int = 0
    """How many there are afterwards."""
    committed: bool = False
    skipped: str | None = None
    pending_indexes: tuple[PendingIndex, ...] = ()

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "table_key": self.table_key,
            "fragments_removed": self.fragments_removed,
            "fragments_added": self.fragments_added,
            "committed": self.committed,
        }
        if self.skipped is not None:
            told["skipped"] = self.skipped
        return told | {
            "table_version": self.table_version,
            "lance_head_version": self.lance_head_version,
            "pending_indexes": [{"property": p.property, "reason": p.reason} for p in self.pending_indexes],
        }


@dataclass(frozen=True)
class OptimizeResult:
    """`commit` is None when no table changed. Manifest and commit tables follow the tables of the branch."""

    uri: str
    branch: str
    tables: tuple[TableOptimized, ...]
    commit: str | None = None
    operation_id: str | None = None

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "uri": self.uri,
            "branch": self.branch,
            "tables": [table.to_json() for table in self.tables],
        }
        return told if self.commit is None else told | {"commit": self.commit}
