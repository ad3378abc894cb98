"""Tests and values of a query as Spark columns, with the meaning they have in memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf

from omnigraph.catalog.types import FLOATS, PropertyType, ScalarType
from omnigraph.plan.compare import Always, mirrored, normal
from omnigraph.plan.operands import Values
from omnigraph.plan.steps import Test
from omnigraph.plan.typed import Comparator, EntityId, Operand, PropertyValue, TextSearch
from omnigraph.plan.values import Stored

Read = PropertyValue | EntityId | TextSearch
ColumnOf = Callable[[Read], Column]

_TYPES = {
    ScalarType.STRING: "string",
    ScalarType.BOOL: "boolean",
    ScalarType.I32: "int",
    ScalarType.I64: "bigint",
    ScalarType.U32: "bigint",
    ScalarType.U64: "decimal(20,0)",
    ScalarType.F32: "double",
    ScalarType.F64: "double",
    ScalarType.DATE: "date",
    ScalarType.DATETIME: "timestamp",
}
_TEXTUAL = (Comparator.STARTS_WITH, Comparator.SUBSTRING, Comparator.MEMBER)
_LONG_END = float(1 << 63)
_ULONG_END = float(1 << 64)


def condition(test: Test, column: ColumnOf, values: Values) -> Column:
    """TRUE for the rows that pass; anything else is not."""
    if isinstance(test, TextSearch):
        return column(test)
    left, right, comparator = test.left, test.right, test.comparator
    if isinstance(left, Operand) and isinstance(right, Operand):
        return _compared(
            literal(left.type, values.of(left)), left.type, comparator, literal_of(right, values), right.type
        )
    if isinstance(left, Operand):
        assert not isinstance(right, Operand)
        if comparator in _TEXTUAL:
            return _compared(literal_of(left, values), left.type, comparator, column(right), right.type)
        return with_value(column(right), right.type, mirrored(comparator), values.of(left))
    if isinstance(right, Operand):
        return with_value(column(left), left.type, comparator, values.of(right))
    return _compared(column(left), left.type, comparator, column(right), right.type)


def with_value(column: Column, type_: PropertyType, comparator: Comparator, value: Stored) -> Column:
    """A column compared with one value, brought to the column's own type."""
    if comparator is Comparator.MEMBER:
        element = PropertyType(type_.scalar)
        return sf.exists(column, lambda item: sf.coalesce(with_value(item, element, Comparator.EQ, value), _no()))
    if comparator in (Comparator.STARTS_WITH, Comparator.SUBSTRING):
        if value is None:
            return _no()
        find = sf.startswith if comparator is Comparator.STARTS_WITH else sf.contains
        return find(column, sf.lit(value))
    rule = normal(type_, comparator, value)
    if rule is Always.NEVER:
        return _no()
    if rule is Always.IF_PRESENT:
        return column.isNotNull()
    assert not isinstance(rule, Always)
    wide = column.cast("double") if type_.scalar in FLOATS else column
    return _plain(wide, rule.comparator, literal(type_, rule.value), type_.scalar in FLOATS)


def literal_of(operand: Operand, values: Values) -> Column:
    return literal(operand.type, values.of(operand))


def literal(type_: PropertyType, value: Stored) -> Column:
    """A value as Spark holds it."""
    if type_.is_vector:
        return _null("array<float>") if value is None else sf.array([sf.lit(v).cast("float") for v in _items(value)])
    if type_.is_list:
        name = f"array<{_TYPES[type_.scalar]}>"
        if value is None:
            return _null(name)
        element = PropertyType(type_.scalar)
        return sf.array([literal(element, item) for item in _items(value)]).cast(name)
    if value is None:
        return _null(_TYPES[type_.scalar])
    if type_.scalar is ScalarType.DATE:
        return sf.date_add(sf.lit("1970-01-01").cast("date"), sf.lit(value))
    if type_.scalar is ScalarType.DATETIME:
        return sf.timestamp_millis(sf.lit(value).cast("bigint"))
    if type_.scalar is ScalarType.U64:
        return sf.lit(str(value)).cast("decimal(20,0)")
    return sf.lit(value).cast(_TYPES[type_.scalar])


def _items(value: Stored) -> tuple[Any, ...]:
    assert isinstance(value, tuple)
    return value


def _null(name: str) -> Column:
    return sf.lit(None).cast(name)


def _no() -> Column:
    return sf.lit(False)


def _compared(
    one: Column, one_type: PropertyType, comparator: Comparator, other: Column, other_type: PropertyType
) -> Column:
    if comparator is Comparator.MEMBER:
        element = PropertyType(one_type.scalar)
        return sf.exists(
            one, lambda item: sf.coalesce(_compared(item, element, Comparator.EQ, other, other_type), _no())
        )
    if comparator in (Comparator.STARTS_WITH, Comparator.SUBSTRING):
        return (sf.startswith if comparator is Comparator.STARTS_WITH else sf.contains)(one, other)
    if one_type.is_numeric and other_type.is_numeric and one_type.is_integer != other_type.is_integer:
        if one_type.is_integer:
            return _beside_double(one, one_type, comparator, other.cast("double"))
        return _beside_double(other, other_type, mirrored(comparator), one.cast("double"))
    floats = one_type.scalar in FLOATS
    if floats:
        one, other = one.cast("double"), other.cast("double")
    return _plain(one, comparator, other, floats)


def _plain(one: Column, comparator: Comparator, other: Column, floats: bool) -> Column:
    found = {
        Comparator.EQ: one == other,
        Comparator.NE: one != other,
        Comparator.LT: one < other,
        Comparator.LE: one <= other,
        Comparator.GT: one > other,
        Comparator.GE: one >= other,
    }[comparator]
    if not floats:
        return found
    # To Spark NaN is a number, equal to itself and above the others; in a query it compares with nothing.
    unordered = sf.isnan(one) | sf.isnan(other)
    both = one.isNotNull() & other.isNotNull()
    return both & (unordered | found) if comparator is Comparator.NE else both & ~unordered & found


def _beside_double(whole: Column, type_: PropertyType, comparator: Comparator, real: Column) -> Column:
    """An integer beside a double, without losing a digit of either: the floor first, then what is left."""
    low, high = (0.0, _ULONG_END) if type_.scalar in (ScalarType.U32, ScalarType.U64) else (-_LONG_END, _LONG_END)
    floor = sf.floor(sf.when((real >= low) & (real < high), real)).cast("decimal(20,0)")
    exact = whole.cast("decimal(20,0)")
    sign = (
        sf.when(real >= high, -1)
        .when(real < low, 1)
        .when(exact < floor, -1)
        .when(exact > floor, 1)
        .when(floor.cast("double") < real, -1)
        .otherwise(0)
    )
    zero = sf.lit(0)
    found = _plain(sign, comparator, zero, floats=False)
    both = whole.isNotNull() & real.isNotNull()
    return both & (sf.isnan(real) | found) if comparator is Comparator.NE else both & ~sf.isnan(real) & found
