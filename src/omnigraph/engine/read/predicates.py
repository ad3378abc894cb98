"""Tests as a filter for the store: it lets through at least the rows that pass."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from omnigraph.catalog.types import FLOATS, arrow_type
from omnigraph.plan.compare import Always, mirrored, normal
from omnigraph.plan.operands import Values
from omnigraph.plan.steps import Test
from omnigraph.plan.typed import Comparator, Comparison, Operand, PropertyValue
from omnigraph.storage.predicates import compared

_PLAIN = (Comparator.EQ, Comparator.NE, Comparator.LT, Comparator.LE, Comparator.GT, Comparator.GE)


def filter_text(tests: Sequence[Test], values: Values) -> str | None:
    """None when nothing useful can be said."""
    texts = [text for test in tests if isinstance(test, Comparison) and (text := _text(test, values)) is not None]
    return " AND ".join(texts) or None


def _text(test: Comparison, values: Values) -> str | None:
    left, right, comparator = test.left, test.right, test.comparator
    if isinstance(left, Operand) and isinstance(right, PropertyValue):
        left, right, comparator = right, left, mirrored(comparator)
    if not isinstance(left, PropertyValue) or not isinstance(right, Operand) or comparator not in _PLAIN:
        return None
    rule = normal(left.type, comparator, values.of(right))
    if rule is Always.NEVER:
        return "false"
    if rule is Always.IF_PRESENT:
        return f"`{left.name}` IS NOT NULL"
    assert not isinstance(rule, Always)
    type_ = pa.float64() if left.type.scalar in FLOATS else arrow_type(left.type)
    return compared(left.name, rule.comparator.value, pa.scalar(rule.value, type_), arrow_type(left.type))
