"""What two sides could not agree on, as users are told."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from omnigraph.base.errors import MergeConflicts
from omnigraph.engine.merge.table import MESSAGES, Outcome, Violated

_BROKEN = "Nothing was written. No strategy decides these: change the rows on one of the branches, then merge again."


@dataclass(frozen=True)
class MergeConflict:
    """One row that cannot be merged; `properties` are those in dispute, where only some are."""

    table_key: str
    row_id: str
    kind: str
    message: str
    properties: tuple[str, ...] = ()

    @staticmethod
    def of_row(table_key: str, row_id: str, outcome: Outcome, properties: tuple[str, ...] = ()) -> MergeConflict:
        return MergeConflict(table_key, row_id, outcome.value, MESSAGES[outcome].format(id=row_id), properties)

    @property
    def order(self) -> tuple[str, str, str, str]:
        return self.table_key, self.row_id, self.kind, self.message

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"table_key": self.table_key, "row_id": self.row_id, "kind": self.kind}
        told["message"] = self.message
        return {**told, "properties": list(self.properties)} if self.properties else told


def refusal(conflicts: Iterable[MergeConflict], hint: str | None = None) -> MergeConflicts:
    """The error that tells all of them, in order."""
    found = tuple(c.to_json() for c in sorted(conflicts, key=lambda c: c.order))
    if hint is None and {c["kind"] for c in found} <= set(Violated):
        hint = _BROKEN
    return MergeConflicts(merge_conflicts=found) if hint is None else MergeConflicts("", hint, found)
