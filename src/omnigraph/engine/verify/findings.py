"""What is wrong with a graph, as data: one finding for each thing that is broken, and what mends it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Damage(StrEnum):
    """The kinds of findings, in the words of the result."""

    MANIFEST = "manifest_unreadable"
    SCHEMA = "schema_contract"
    MOVED_BASE = "moved_base"
    PIN = "pin_unreadable"
    MISSING_FILE = "missing_data_file"
    CONTENT = "content_mismatch"
    CONSTRAINT = "constraint_violation"
    DANGLING = "dangling_edge"
    TORN_ABOVE = "unreadable_above_pin"
    LATE = "late_effects"
    DRIFT_MAINTENANCE = "drift_maintenance"
    DRIFT_DATA = "drift_data"
    DRIFT_UNVERIFIABLE = "drift_unverifiable"
    MISSING_INDEX = "missing_index"
    INDEX_ANSWERS = "index_mismatch"
    PROJECTION = "projection_mismatch"
    PENDING = "recovery_pending"
    ORPHAN_FORK = "orphan_fork"
    ORPHAN_TABLE = "orphan_table"
    TAG = "broken_tag"
    HEARTBEAT = "dead_heartbeat"


_BACKUP = "restore it from a backup"
_REPAIR, _FORCE = "omnigraph repair --confirm", "omnigraph repair --confirm --force"
_CLEANUP, _OPEN = "omnigraph cleanup", "open the graph read-write"

REPAIRS: Mapping[Damage, str] = {
    Damage.MANIFEST: _BACKUP,
    Damage.SCHEMA: "restore the schema files as the last schema apply wrote them",
    Damage.MOVED_BASE: "omnigraph clone",
    Damage.PIN: _BACKUP,
    Damage.MISSING_FILE: _BACKUP,
    Damage.CONTENT: _BACKUP,
    Damage.CONSTRAINT: "correct the rows with omnigraph mutate or omnigraph load --mode merge",
    Damage.DANGLING: "delete the edges, or add the nodes, with omnigraph mutate or omnigraph load",
    Damage.TORN_ABOVE: _REPAIR,
    Damage.LATE: _REPAIR,
    Damage.DRIFT_MAINTENANCE: _REPAIR,
    Damage.DRIFT_DATA: _FORCE,
    Damage.DRIFT_UNVERIFIABLE: _FORCE,
    Damage.MISSING_INDEX: _REPAIR,
    Damage.INDEX_ANSWERS: _REPAIR,
    Damage.PROJECTION: f"{_OPEN}; extra rows: {_BACKUP}",
    Damage.PENDING: _OPEN,
    Damage.ORPHAN_FORK: _CLEANUP,
    Damage.ORPHAN_TABLE: _CLEANUP,
    Damage.TAG: "omnigraph tag delete",
    Damage.HEARTBEAT: _CLEANUP,
}


@dataclass(frozen=True)
class Finding:
    """One thing that is broken. `repair`: what mends it. Of what is not known or does not apply the member is None."""

    finding: Damage
    branch: str | None
    table_key: str | None
    message: str
    pinned: int | None = None
    head: int | None = None
    path: str | None = None
    repair: str = ""
    operations: tuple[str, ...] = ()
    """What the versions above a pin did, the oldest first."""

    def __post_init__(self) -> None:
        if not self.repair:
            object.__setattr__(self, "repair", REPAIRS[self.finding])

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"finding": self.finding.value, "branch": self.branch, "table_key": self.table_key}
        more = {"pinned": self.pinned, "head": self.head, "path": self.path}
        told |= {name: value for name, value in more.items() if value is not None}
        return told | {"message": self.message, "repair": self.repair}


_ORDER = {damage: number for number, damage in enumerate(Damage)}


def ordered(findings: list[Finding]) -> tuple[Finding, ...]:
    """The worst first, each once; then by branch, table and place."""
    seen = dict.fromkeys(findings)
    return tuple(
        sorted(seen, key=lambda f: (_ORDER[f.finding], f.branch or "", f.table_key or "", f.path or "", f.message))
    )


@dataclass(frozen=True)
class VerifyResult:
    """What was looked at, and what was found."""

    uri: str
    branches: tuple[str, ...]
    tables_checked: int
    findings: tuple[Finding, ...]

    @property
    def is_whole(self) -> bool:
        return not self.findings

    def to_json(self) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "branches": list(self.branches),
            "tables_checked": self.tables_checked,
            "findings": [f.to_json() for f in self.findings],
        }


def findings_said(count: int) -> str:
    return "no findings" if not count else "1 finding" if count == 1 else f"{count} findings"
