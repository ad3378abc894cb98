"""What a cleanup did, or in a preview would do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class TableCleanup:
    """One table. `old_versions` and `bytes` are what was removed of it, or would be."""

    table_key: str
    bytes_removed: int = 0
    old_versions_removed: int = 0
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        told = {
            "table_key": self.table_key,
            "bytes_removed": self.bytes_removed,
            "old_versions_removed": self.old_versions_removed,
        }
        return told if self.error is None else {**told, "error": self.error}


@dataclass(frozen=True)
class Removed:
    """A leftover that went. Staged files are told per table and branch."""

    path: str
    what: str
    files: int | None = None
    bytes: int | None = None

    def to_json(self) -> dict[str, Any]:
        told = {"path": self.path, "what": self.what, "files": self.files, "bytes": self.bytes}
        return {name: value for name, value in told.items() if value is not None}


@dataclass(frozen=True)
class Kept:
    path: str
    reason: str


@dataclass(frozen=True)
class CleanupResult:
    """With `confirm` false nothing was touched, and everything here says what would be done."""

    uri: str
    confirm: bool
    keep_commits: int | None
    older_than_secs: int | None
    tables: tuple[TableCleanup, ...]
    orphans_removed: tuple[Removed, ...]
    orphans_kept: tuple[Kept, ...]

    @property
    def bytes_removed(self) -> int:
        return sum(t.bytes_removed for t in self.tables)

    @property
    def versions_removed(self) -> int:
        return sum(t.old_versions_removed for t in self.tables)

    def to_json(self) -> dict[str, Any]:
        return {
            "uri": self.uri,
            "confirm": self.confirm,
            "keep_commits": self.keep_commits,
            "older_than_secs": self.older_than_secs,
            "tables": [t.to_json() for t in self.tables],
            "orphans_removed": [o.to_json() for o in self.orphans_removed],
            "orphans_kept": [{"path": o.path, "reason": o.reason} for o in self.orphans_kept],
        }
