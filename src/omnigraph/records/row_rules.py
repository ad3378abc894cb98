"""What a stored row breaks by itself, with the id of the row: `@range`, `@check` and the members of enums."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import NodeType, Property, TableType
from omnigraph.records.decode import POSITION
from omnigraph.records.explain import explain
from omnigraph.records.values import check_values
from omnigraph.records.violations import Findings, Stage, Violation


def has_row_rules(type_: TableType) -> bool:
    ruled = isinstance(type_, NodeType) and bool(type_.ranges or type_.checks)
    return ruled or any(declared.type.is_enum for declared in type_.properties)


def row_violations(type_: TableType, batch: pa.RecordBatch) -> Iterator[tuple[str, Violation]]:
    """The id of each row that breaks a rule, and what it breaks; `batch` has the columns of the table."""
    ids = batch.column("id")
    numbers = pa.array(np.arange(batch.num_rows, dtype=np.int64))
    numbered = batch.select(type_.arrow_schema.names).append_column(POSITION, numbers)
    found: list[Violation] = []
    check_values(type_, numbered, Findings(0, sink=found.append))
    for violation in found:
        yield ids[violation.position].as_py(), violation
    for declared in type_.properties:
        if declared.type.is_enum:
            yield from _strange_members(type_, declared, batch)


def _strange_members(type_: TableType, declared: Property, batch: pa.RecordBatch) -> Iterator[tuple[str, Violation]]:
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
        yield batch.column("id")[row].as_py(), Violation(Stage.VALUES, 0, type_.name, declared.name, reason, message)
