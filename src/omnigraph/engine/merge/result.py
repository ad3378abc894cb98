"""What callers are told of a merge, a revert or a reset."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from omnigraph.engine.merge.conflicts import MergeConflict

UP_TO_DATE, FAST_FORWARD, MERGED = "already_up_to_date", "fast_forward", "merged"


@dataclass(frozen=True)
class MergeResult:
    """A merge that is done; `graph_commit_id` is None when there was nothing to bring over."""

    source: str
    target: str
    outcome: str
    graph_commit_id: str | None = None
    actor_id: str | None = None
    operation_id: str | None = None
    tables: tuple[dict[str, Any], ...] = ()
    branch_deleted: bool | None = None
    branch_delete_error: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As programs get it; optional members without a value are left out."""
        told: dict[str, Any] = {"source": self.source, "target": self.target, "outcome": self.outcome}
        told |= {"graph_commit_id": self.graph_commit_id, "actor_id": self.actor_id}
        told |= {"operation_id": self.operation_id, "tables": list(self.tables)}
        told |= {"branch_deleted": self.branch_deleted, "branch_delete_error": self.branch_delete_error}
        return {name: value for name, value in told.items() if value is not None or name == "actor_id"}


@dataclass(frozen=True)
class MergePreview:
    """What a merge would do; nothing was written. `changes` are the first ones, the totals are exact."""

    source: str
    target: str
    base_commit_id: str
    outcome: str
    would_commit: bool
    tables: tuple[dict[str, Any], ...] = ()
    changes: tuple[dict[str, str], ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()
    resolved: tuple[dict[str, Any], ...] = ()
    resolved_total: int = 0
    template: str | None = field(default=None)
    """The resolution file that was written."""
    disputes: tuple[dict[str, Any], ...] = ()
    """The first rows on which the sides disagree, resolved ones too: each as the base, ours and theirs have it."""

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"source": self.source, "target": self.target, "base_commit_id": self.base_commit_id}
        told |= {"outcome": self.outcome, "would_commit": self.would_commit, "tables": list(self.tables)}
        told |= {"changes": list(self.changes), "conflicts": [c.to_json() for c in self.conflicts]}
        told |= {"resolved": list(self.resolved)}
        if self.resolved_total > len(self.resolved):
            told["resolved_total"] = self.resolved_total
        return told if self.template is None else {**told, "template": self.template}


@dataclass(frozen=True)
class UndoResult:
    """A revert or a reset that is done; `graph_commit_id` is None when the branch was as it was to become."""

    branch: str
    undone: str
    """The commit that was reverted, or the one whose content is back."""
    graph_commit_id: str | None = None
    actor_id: str | None = None
    operation_id: str | None = None
    tables: tuple[dict[str, Any], ...] = ()
    named: str = "reverted"

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"branch": self.branch, self.named: self.undone}
        told |= {"graph_commit_id": self.graph_commit_id, "actor_id": self.actor_id}
        return {**told, "operation_id": self.operation_id, "tables": list(self.tables)}
