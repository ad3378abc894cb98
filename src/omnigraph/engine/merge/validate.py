"""Checks the merged state with the rules that loads and mutations obey; what breaks one is a conflict.

The rules look at what the merge changes and at what that touches, so a table that is taken over whole is checked by
the rows in which it differs from the target's.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import NodeType, Property, TableType
from omnigraph.engine.merge.conflicts import MergeConflict
from omnigraph.engine.merge.table import Violated
from omnigraph.engine.view import View
from omnigraph.engine.write.changeset import ChangeSet, TableChange
from omnigraph.engine.write.validate.cardinality import check_cardinality
from omnigraph.engine.write.validate.check import Check, Make
from omnigraph.engine.write.validate.endpoints import check_endpoints
from omnigraph.engine.write.validate.unique import check_unique
from omnigraph.records.encode import json_column
from omnigraph.records.explain import explain
from omnigraph.records.values import check_values
from omnigraph.records.violations import Findings, Stage, Violation
from omnigraph.sets.scratch import Scratch

_KINDS = {
    Stage.VALUES: Violated.VALUE,
    Stage.UNIQUE: Violated.UNIQUE,
    Stage.ENDPOINTS: Violated.ORPHAN_EDGE,
    Stage.CARDINALITY: Violated.CARDINALITY,
}


@dataclass
class _MergeCheck(Check):
    """Notes every violation with the id of its row, and goes on."""

    table_key: str = ""
    conflicts: list[MergeConflict] = field(default_factory=list)

    def add(self, stage: Stage, rows: pa.RecordBatch | pa.Table, make: Make) -> None:
        columns = {name: json_column(rows.column(name)) for name in rows.schema.names}
        for k in range(rows.num_rows):
            row = {name: values[k] for name, values in columns.items()}
            self.note(make(row), row["id"] if "id" in row else row["source"])

    def note(self, violation: Violation, row_id: str) -> None:
        key = self.table_key or f"edge:{violation.type}"
        self.conflicts.append(MergeConflict(key, row_id, _KINDS[violation.stage].value, violation.message))


def validate_merged(view: View, changes: ChangeSet, scratch: Scratch) -> tuple[list[MergeConflict], frozenset[str]]:
    """Every violation of the state after `changes`, and the keys of the tables that were looked at."""
    conflicts: list[MergeConflict] = []
    read: set[str] = set()
    for change in changes.ordered():
        if change.row_count:
            alone = _MergeCheck(view, ChangeSet({change.table_key: change}), scratch, Findings(0))
            alone.table_key = change.table_key
            _check_rows(alone, change)
            check_unique(alone)
            conflicts += alone.conflicts
            read |= alone.stored.read
    together = _MergeCheck(view, changes, scratch, Findings(0))
    check_endpoints(together)
    check_cardinality(together)
    return [*conflicts, *together.conflicts], frozenset(read | together.stored.read)


def _check_rows(check: _MergeCheck, change: TableChange) -> None:
    """What a row says by itself: `@range`, `@check` and the members of enums."""
    type_ = check.type_of(change)
    enums = [declared for declared in type_.properties if declared.type.is_enum]
    ruled = isinstance(type_, NodeType) and bool(type_.ranges or type_.checks)
    if not enums and not ruled:
        return
    assert change.rows is not None
    for batch in change.rows.batches():
        ids, first = batch.column("id"), batch.column(batch.num_columns - 1)[0].as_py()
        found: list[Violation] = []
        check_values(type_, batch, Findings(0, sink=found.append))
        for violation in found:
            check.note(violation, ids[violation.position - first].as_py())
        for declared in enums:
            _check_enum(check, type_, declared, batch)


def _check_enum(check: _MergeCheck, type_: TableType, declared: Property, batch: pa.RecordBatch) -> None:
    column = batch.column(declared.name)
    members = pa.array(declared.type.enum_values, pa.string())
    if declared.type.is_list:
        strange = pc.unique(pc.list_parent_indices(column).filter(pc.invert(pc.is_in(column.flatten(), members))))
        rows = strange.to_pylist()
    else:
        known = pc.or_(pc.is_in(column, members), pc.is_null(column))
        rows = np.flatnonzero(pc.invert(known).to_numpy(zero_copy_only=False)).tolist()
    for row in rows:
        value = column[row].as_py()
        items = value if declared.type.is_list else [value]
        element = next(i for i, item in enumerate(items) if item not in declared.type.enum_values)
        reason, message = explain(declared, value, type_.name, (), element)
        violation = Violation(Stage.VALUES, 0, type_.name, declared.name, reason, message)
        check.note(violation, batch.column("id")[row].as_py())
