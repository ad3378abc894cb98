"""Checks the merged state with the rules that loads and mutations obey; what breaks one is a conflict.

The rules look at what the merge changes and at what that touches, so a table that is taken over whole is checked by
the rows in which it differs from the target's.
"""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa

from omnigraph.engine.merge.conflicts import MergeConflict
from omnigraph.engine.merge.table import Violated
from omnigraph.engine.view import View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.validate.cardinality import check_cardinality
from omnigraph.engine.write.validate.check import Check, Make
from omnigraph.engine.write.validate.endpoints import check_endpoints
from omnigraph.engine.write.validate.unique import check_unique
from omnigraph.records.encode import json_column
from omnigraph.records.row_rules import has_row_rules, row_violations
from omnigraph.records.violations import Findings, Stage, Violation
from omnigraph.sets.scratch import Scratch

_KINDS = {
    Stage.VALUES: Violated.VALUE,
    Stage.UNIQUE: Violated.UNIQUE,
    Stage.ENDPOINTS: Violated.ORPHAN_EDGE,
    Stage.CARDINALITY: Violated.CARDINALITY,
}


class MergeCheck(Check):
    """Notes every violation with the id of its row, and goes on. `table_key`: the table, if all rows are of one."""

    def __init__(self, view: View, changes: ChangeSet, scratch: Scratch, table_key: str = "") -> None:
        super().__init__(view, changes, scratch, Findings(0))
        self.table_key = table_key
        self.conflicts: list[MergeConflict] = []

    def add(self, stage: Stage, rows: pa.RecordBatch | pa.Table, make: Make) -> None:
        columns = {name: json_column(rows.column(name)) for name in rows.schema.names}
        for k in range(rows.num_rows):
            row = {name: values[k] for name, values in columns.items()}
            self.note(make(row), row["id"] if "id" in row else row["source"])

    def note(self, violation: Violation, row_id: str) -> None:
        key = self.table_key or f"edge:{violation.type}"
        self.conflicts.append(MergeConflict(key, row_id, _KINDS[violation.stage].value, violation.message))

    def check_rows(self, change: TableChange) -> None:
        """What a row says by itself: `@range`, `@check` and the members of enums."""
        type_ = self.type_of(change)
        if change.rows is not None and has_row_rules(type_):
            for batch in change.rows.batches():
                for row_id, violation in row_violations(type_, batch):
                    self.note(violation, row_id)


MakeCheck = Callable[[ChangeSet, str], MergeCheck]


def validate_merged(changes: ChangeSet, make: MakeCheck) -> tuple[list[MergeConflict], frozenset[str]]:
    """Every violation of the state after `changes`, and the keys of the tables that were looked at."""
    conflicts: list[MergeConflict] = []
    read: set[str] = set()
    for change in changes.ordered():
        if change.row_count:
            alone = make(ChangeSet({change.table_key: change}), change.table_key)
            alone.check_rows(change)
            check_unique(alone)
            conflicts += alone.conflicts
            read |= alone.stored.read
    together = make(changes, "")
    check_endpoints(together)
    check_cardinality(together)
    return [*conflicts, *together.conflicts], frozenset(read | together.stored.read)
