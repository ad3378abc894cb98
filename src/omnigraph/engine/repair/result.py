"""What a repair did, or would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from omnigraph.engine.repair.decide import CLASSIFICATIONS, Action
from omnigraph.engine.verify.findings import Damage


@dataclass(frozen=True)
class RepairedTable:
    """One finding and what became of it; a table without a finding is told as `no_op`."""

    table_key: str | None
    branch: str
    table_version: int | None
    lance_head_version: int | None
    finding: Damage | None
    action: Action
    operations: tuple[str, ...] = ()
    error: str | None = None

    @property
    def classification(self) -> str | None:
        return CLASSIFICATIONS.get(self.finding) if self.finding is not None else None

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {
            "table_key": self.table_key,
            "branch": self.branch,
            "table_version": self.table_version,
            "lance_head_version": self.lance_head_version,
            "finding": self.finding.value if self.finding is not None else None,
            "action": self.action.value,
            "operations": list(self.operations),
        }
        more = {"classification": self.classification, "error": self.error}
        return told | {name: value for name, value in more.items() if value is not None}


@dataclass(frozen=True)
class RepairResult:
    """With `confirm` false nothing was touched, and the actions are what `--confirm` would do."""

    uri: str
    confirm: bool
    force: bool
    manifest_version: int | None
    tables: tuple[RepairedTable, ...]

    @property
    def failed(self) -> bool:
        return any(table.action.is_failure for table in self.tables)

    def to_json(self) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "confirm": self.confirm,
            "force": self.force,
            "manifest_version": self.manifest_version,
            "tables": [table.to_json() for table in self.tables],
        }
