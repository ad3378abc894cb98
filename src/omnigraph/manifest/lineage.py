"""Commits and how they descend from each other, read from the `graph_commit` rows of one branch."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import orjson

from omnigraph.manifest.rows import Row, RowEffect, counts_from_json

RECOVERY_KEY = "recovery"
SCHEMA_HASH_KEY = "schema_ir_hash"
SCHEMA_SOURCE_HASH_KEY = "schema_source_hash"
ROLLED_BACK = "rolled_back"


@dataclass(frozen=True)
class GraphCommit:
    """One commit as users see it."""

    graph_commit_id: str
    manifest_branch: str | None
    manifest_version: int
    parent_commit_id: str | None = None
    merged_parent_commit_id: str | None = None
    actor_id: str | None = None
    created_at: int = 0
    kind: str | None = None
    message: str | None = None
    counts: Mapping[str, RowEffect] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    operation_id: str | None = None
    lock_token: int | None = None

    @property
    def is_roll_back(self) -> bool:
        ours = self.metadata.get("omnigraph")
        return isinstance(ours, dict) and ours.get(RECOVERY_KEY) == ROLLED_BACK

    @property
    def sets_schema(self) -> bool:
        """Whether the schema files are those of this commit; one that was rolled forward is no `schema_apply`."""
        ours = self.metadata.get("omnigraph")
        return self.kind in ("init", "schema_apply") or (isinstance(ours, dict) and SCHEMA_HASH_KEY in ours)

    @property
    def schema_hashes(self) -> tuple[str | None, str | None]:
        """Of the compiled schema and of its source, as far as the commit tells them."""
        ours = self.metadata.get("omnigraph")
        told = ours if isinstance(ours, dict) else {}
        return told.get(SCHEMA_HASH_KEY), told.get(SCHEMA_SOURCE_HASH_KEY)

    @property
    def order(self) -> tuple[int, int, str]:
        return (self.manifest_version, self.created_at, self.graph_commit_id)


def commit_from_row(row: Row, origin: Origin) -> GraphCommit:
    stamp = orjson.loads(row.metadata)
    # A migrated row was written later, and perhaps on another branch, than the commit it speaks of.
    version = stamp.get("manifest_version", row.created_at_version)
    return GraphCommit(
        graph_commit_id=stamp["graph_commit_id"],
        manifest_branch=origin.branch_at(version),
        manifest_version=version,
        parent_commit_id=stamp.get("parent_commit_id"),
        merged_parent_commit_id=stamp.get("merged_parent_commit_id"),
        actor_id=stamp.get("actor_id"),
        created_at=stamp.get("created_at", 0),
        kind=stamp.get("kind"),
        message=stamp.get("message"),
        counts=counts_from_json(stamp.get("counts")),
        metadata=stamp.get("metadata") or {},
        operation_id=stamp.get("operation_id"),
        lock_token=stamp.get("lock_token"),
    )


@dataclass(frozen=True)
class Origin:
    """Where a branch came from: up to each fork version its rows were written by an older branch."""

    branch: str | None
    forks: tuple[tuple[int, str | None], ...] = ()

    def branch_at(self, version: int) -> str | None:
        """The branch that published manifest version `version`."""
        return next((branch for fork, branch in self.forks if version <= fork), self.branch)


class CommitLog:
    """The commits of one branch, oldest first. Grows at its end only; rows are decoded when somebody asks."""

    def __init__(self, rows: Iterable[Row], origin: Origin) -> None:
        self._rows = list(rows)
        self._decoded: list[GraphCommit] = []
        self._origin = origin
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._rows)

    def extended_to(self, length: int, rows: Iterable[Row]) -> None:
        """Add the rows that follow the first `length`; another thread may have added some of them already."""
        with self._lock:
            self._rows.extend(list(rows)[len(self._rows) - length :])

    def head(self, length: int) -> GraphCommit | None:
        return self._decode(self._rows[length - 1]) if length else None

    def upto(self, length: int) -> list[GraphCommit]:
        """The first `length` commits, decoded."""
        with self._lock:
            while len(self._decoded) < length:
                self._decoded.append(self._decode(self._rows[len(self._decoded)]))
            return self._decoded[:length]

    def since(self, length: int, version: int) -> Iterator[GraphCommit]:
        """Commits published after manifest version `version`, newest first."""
        for row in reversed(self._rows[:length]):
            if row.created_at_version <= version:
                return
            yield self._decode(row)

    def naming(self, length: int, *texts: str) -> Iterator[GraphCommit]:
        """Of the first `length` commits those with one of the texts in their row, newest first, by decoding few."""
        for row in reversed(self._rows[:length]):
            if any(text in row.metadata for text in texts):
                yield self._decode(row)

    def _decode(self, row: Row) -> GraphCommit:
        return commit_from_row(row, self._origin)
