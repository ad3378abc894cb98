"""What two sides could not agree on, as users are told."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from omnigraph.base.errors import Conflict
from omnigraph.engine.merge.table import MESSAGES, Outcome

NAMED_MAX = 3


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

    def __str__(self) -> str:
        named = f" [{', '.join(self.properties)}]" if self.properties else ""
        return f"{self.table_key} '{self.row_id}' ({self.kind}){named}: {self.message}"


@dataclass(eq=False)
class MergeConflicts(Conflict):
    """Every conflict of a merge, a revert or a reset, in order; nothing was written."""

    text: str = ""
    hint: str = "Nothing was written. Decide with --strategy ours|theirs or --resolve FILE, or change the rows."
    merge_conflicts: tuple[dict[str, Any], ...] = field(default_factory=tuple)

    @staticmethod
    def of(conflicts: Iterable[MergeConflict], hint: str | None = None) -> MergeConflicts:
        found = tuple(c.to_json() for c in sorted(conflicts, key=lambda c: c.order))
        return MergeConflicts(merge_conflicts=found) if hint is None else MergeConflicts("", hint, found)

    def conflicts(self) -> Iterator[MergeConflict]:
        for told in self.merge_conflicts:
            yield MergeConflict(**{**told, "properties": tuple(told.get("properties", ()))})

    def describe(self) -> str:
        named = [_named(found) for found in self.merge_conflicts[:NAMED_MAX]]
        more = len(self.merge_conflicts) - len(named)
        return f"merge conflicts: {', '.join(named)}" + (f"; and {more} more" if more else "")


def _named(found: Mapping[str, Any]) -> str:
    return f"{found['table_key']} '{found['row_id']}' ({found['kind']})"
