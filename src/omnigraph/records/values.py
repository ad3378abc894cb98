"""Stage 5: what `@range` and `@check` say about single values, a whole column at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import Check, NodeType, Range, TableType
from omnigraph.records.decode import POSITION
from omnigraph.records.explain import shown
from omnigraph.records.violations import Findings, Stage, Violation

Mask = np.ndarray[Any, Any]


def check_values(table: TableType, batch: pa.RecordBatch, findings: Findings) -> Mask:
    """Which rows keep every `@range` and `@check` of their type; the others go to `findings`."""
    good = np.ones(batch.num_rows, np.bool_)
    if not isinstance(table, NodeType):
        return good
    rules: list[Range | Check] = [*table.ranges, *table.checks]
    for rule in rules:
        column = batch.column(rule.column)
        broken = _outside(rule, column) if isinstance(rule, Range) else _unmatched(rule, column)
        rows = np.flatnonzero(broken)
        if len(rows):
            positions = batch.column(POSITION).to_numpy()[rows]
            findings.add_many(Stage.VALUES, positions, _told(table, rule, column, rows, positions))
            good[rows] = False
    return good


def _outside(rule: Range, column: pa.Array) -> Mask:
    broken = pc.is_nan(column) if pa.types.is_floating(column.type) else pa.nulls(len(column), pa.bool_())
    if rule.lo is not None:
        broken = pc.or_kleene(broken, pc.less(column, pa.scalar(rule.lo, column.type)))
    if rule.hi is not None:
        broken = pc.or_kleene(broken, pc.greater(column, pa.scalar(rule.hi, column.type)))
    return _flags(broken)


def _unmatched(rule: Check, column: pa.Array) -> Mask:
    return _flags(pc.invert(pc.match_substring_regex(column, pattern=rule.pattern)))


def _flags(mask: pa.Array) -> Mask:
    return np.asarray(mask.fill_null(False).to_numpy(zero_copy_only=False), np.bool_)


def _told(
    table: TableType, rule: Range | Check, column: pa.Array, rows: Mask, positions: Mask
) -> Callable[[int], Violation]:
    place = f"{table.name}.{rule.column}"

    def violation(k: int) -> Violation:
        value = column[int(rows[k])].as_py()
        if isinstance(rule, Check):
            reason = "check_violation"
            text = f"@check violation on {place}: value {shown(value)} does not match pattern '{rule.pattern}'"
        else:
            reason, text = "range_violation", f"@range violation on {place}: {_range_text(rule, value, column.type)}"
        return Violation(Stage.VALUES, int(positions[k]), table.name, rule.column, reason, text)

    return violation


def _range_text(rule: Range, value: int | float, type_: pa.DataType) -> str:
    if value != value:
        return "value is NaN"
    if rule.lo is not None and value < rule.lo:
        return f"value {_number(value, type_)} < min {_number(rule.lo, type_)}"
    assert rule.hi is not None
    return f"value {_number(value, type_)} > max {_number(rule.hi, type_)}"


def _number(value: int | float, type_: pa.DataType) -> str:
    """A number with the fewest digits that tell it apart from its neighbours in its own type."""
    return str(np.float32(value)) if type_ == pa.float32() else repr(value)
