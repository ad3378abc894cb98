"""Tests of rows, by mathematical value and three-valued logic: a row passes only if a test is TRUE for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.types import FLOATS, PropertyType, arrow_type
from omnigraph.plan.compare import Always, mirrored, normal
from omnigraph.plan.operands import Values
from omnigraph.plan.steps import Test
from omnigraph.plan.typed import (
    Comparator,
    Comparison,
    Constant,
    CurrentTime,
    EntityId,
    Operand,
    Parameter,
    PropertyValue,
    TextSearch,
)
from omnigraph.plan.values import Stored

Column = PropertyValue | EntityId | TextSearch
ColumnOf = Callable[[Column], pa.Array]

_COMPARE: dict[Comparator, Any] = {
    Comparator.EQ: pc.equal,
    Comparator.NE: pc.not_equal,
    Comparator.LT: pc.less,
    Comparator.LE: pc.less_equal,
    Comparator.GT: pc.greater,
    Comparator.GE: pc.greater_equal,
}
_BY_SIGN: dict[Comparator, Callable[[npt.NDArray[np.int8]], npt.NDArray[np.bool_]]] = {
    Comparator.EQ: lambda sign: sign == 0,
    Comparator.NE: lambda sign: sign != 0,
    Comparator.LT: lambda sign: sign < 0,
    Comparator.LE: lambda sign: sign <= 0,
    Comparator.GT: lambda sign: sign > 0,
    Comparator.GE: lambda sign: sign >= 0,
}


def passing(tests: Sequence[Test], column: ColumnOf, count: int, values: Values) -> npt.NDArray[np.bool_]:
    """Which of `count` rows pass all the tests; `column` gives what the rows have."""
    masks = (_mask(test, column, count, values) for test in tests)
    return reduce(np.logical_and, masks, np.ones(count, bool))


def _mask(test: Test, column: ColumnOf, count: int, values: Values) -> npt.NDArray[np.bool_]:
    if isinstance(test, TextSearch):
        return _true(column(test))
    left, right, comparator = test.left, test.right, test.comparator
    if isinstance(left, Operand) and isinstance(right, Operand):
        return np.full(count, _of_operands(test, values))
    if isinstance(left, Operand):
        assert not isinstance(right, Operand)
        if comparator is Comparator.MEMBER:
            return _among(values.of(left), column(right), right.type)
        if comparator in (Comparator.STARTS_WITH, Comparator.SUBSTRING):
            return _by_row(comparator, [values.of(left)] * count, column(right).to_pylist())
        return _true(with_operand(column(right), right.type, mirrored(comparator), values.of(left)))
    if isinstance(right, Operand):
        return _true(with_operand(column(left), left.type, comparator, values.of(right)))
    return _of_columns(comparator, column(left), left.type, column(right), right.type)


def _true(mask: Any) -> npt.NDArray[np.bool_]:
    if isinstance(mask, pa.ChunkedArray):
        mask = mask.combine_chunks()
    found: npt.NDArray[np.bool_] = mask.fill_null(False).to_numpy(zero_copy_only=False)
    return found


def with_operand(column: pa.Array, type_: PropertyType, comparator: Comparator, value: Stored) -> pa.Array:
    """A column compared with one value."""
    if comparator is Comparator.MEMBER:
        return _member(column, type_, value)
    if comparator in (Comparator.STARTS_WITH, Comparator.SUBSTRING):
        if value is None:
            return _never(len(column))
        find = pc.starts_with if comparator is Comparator.STARTS_WITH else pc.match_substring
        return find(column, pattern=value)
    rule = normal(type_, comparator, value)
    if rule is Always.NEVER:
        return _never(len(column))
    if rule is Always.IF_PRESENT:
        return pc.is_valid(column)
    assert not isinstance(rule, Always)
    floating = type_.scalar in FLOATS
    scalar = pa.scalar(rule.value, pa.float64() if floating else arrow_type(type_))
    return _COMPARE[rule.comparator](column.cast(pa.float64()) if floating else column, scalar)


def _member(column: pa.ListArray, type_: PropertyType, value: Stored) -> pa.Array:
    items = with_operand(column.flatten(), PropertyType(type_.scalar), Comparator.EQ, value)
    owners = pc.list_parent_indices(column).to_numpy()
    found = np.zeros(len(column), bool)
    found[owners[_true(items)]] = True
    return pa.array(found)


def _among(items: Stored, column: pa.Array, type_: PropertyType) -> npt.NDArray[np.bool_]:
    """Which values of a column are one of the items."""
    assert items is None or isinstance(items, tuple)
    masks = (_true(with_operand(column, type_, Comparator.EQ, item)) for item in items or ())
    return reduce(np.logical_or, masks, np.zeros(len(column), bool))


def _never(count: int) -> pa.Array:
    return pa.array(np.zeros(count, bool))


def _of_operands(test: Comparison, values: Values) -> bool:
    assert isinstance(test.left, Constant | Parameter | CurrentTime)
    assert isinstance(test.right, Constant | Parameter | CurrentTime)
    one, other = values.of(test.left), values.of(test.right)
    if test.comparator in (Comparator.STARTS_WITH, Comparator.SUBSTRING, Comparator.MEMBER):
        return bool(_by_row(test.comparator, [one], [other])[0])
    return bool(compare_values(test.comparator, one, other))


def compare_values(comparator: Comparator, one: Stored, other: Stored) -> bool:
    """Two values by mathematical value; texts by their UTF-8 bytes."""
    if one is None or other is None:
        return False
    left: Any = one.encode() if isinstance(one, str) else one
    right: Any = other.encode() if isinstance(other, str) else other
    match comparator:
        case Comparator.EQ:
            return bool(left == right)
        case Comparator.NE:
            return bool(left != right)
        case Comparator.LT:
            return bool(left < right)
        case Comparator.LE:
            return bool(left <= right)
        case Comparator.GT:
            return bool(left > right)
        case _:
            return bool(left >= right)


def _of_columns(
    comparator: Comparator, one: pa.Array, one_type: PropertyType, other: pa.Array, other_type: PropertyType
) -> npt.NDArray[np.bool_]:
    if comparator in (Comparator.STARTS_WITH, Comparator.SUBSTRING):
        return _by_row(comparator, one.to_pylist(), other.to_pylist())
    if comparator is Comparator.MEMBER:
        owners = pc.list_parent_indices(one)
        element = PropertyType(one_type.scalar)
        hits = _of_columns(Comparator.EQ, one.flatten(), element, other.take(owners), other_type)
        found = np.zeros(len(one), bool)
        found[owners.to_numpy()[hits]] = True
        return found
    if one_type.is_numeric and other_type.is_numeric:
        return _of_numbers(comparator, one, one_type, other, other_type)
    return _true(_COMPARE[comparator](one, other))


def _by_row(comparator: Comparator, ones: Sequence[Any], others: Sequence[Any]) -> npt.NDArray[np.bool_]:
    if comparator is Comparator.STARTS_WITH:
        found = [a is not None and b is not None and a.startswith(b) for a, b in zip(ones, others, strict=True)]
    else:
        found = [a is not None and b is not None and b in a for a, b in zip(ones, others, strict=True)]
    return np.array(found, bool)


def _of_numbers(
    comparator: Comparator, one: pa.Array, one_type: PropertyType, other: pa.Array, other_type: PropertyType
) -> npt.NDArray[np.bool_]:
    """Numbers of any two types, without losing a digit of either."""
    both = np.logical_and(_true(pc.is_valid(one)), _true(pc.is_valid(other)))
    left, right = _numbers(one), _numbers(other)
    if one_type.is_integer == other_type.is_integer:
        sign = _sign(left, right) if one_type.is_integer else _sign_of_floats(left, right)
    elif one_type.is_integer:
        sign = _sign_beside_float(left, right)
    else:
        sign = -_sign_beside_float(right, left)
    found = _BY_SIGN[comparator](sign)
    unordered = np.isnan(left) | np.isnan(right) if not (one_type.is_integer and other_type.is_integer) else None
    if unordered is not None:
        found = np.where(unordered, comparator is Comparator.NE, found)
    return np.logical_and(found, both)


def _numbers(column: pa.Array) -> npt.NDArray[Any]:
    if pa.types.is_float32(column.type):
        column = column.cast(pa.float64())
    found: npt.NDArray[Any] = column.fill_null(0).to_numpy(zero_copy_only=False)
    return found


def _sign(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """-1, 0 or 1 for integers of any width; an unsigned one may be beyond every signed one."""
    if left.dtype.kind == right.dtype.kind:
        return (left > right).astype(np.int8) - (left < right).astype(np.int8)
    if left.dtype.kind == "u":
        return -_sign(right, left)
    below = left < 0
    wide = np.where(below, 0, left).astype(np.uint64)
    return np.where(below, np.int8(-1), _sign(wide, right.astype(np.uint64))).astype(np.int8)


def _sign_of_floats(left: npt.NDArray[Any], right: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    return (left > right).astype(np.int8) - (left < right).astype(np.int8)


def _sign_beside_float(whole: npt.NDArray[Any], real: npt.NDArray[Any]) -> npt.NDArray[np.int8]:
    """An integer beside a double: first its floor, then what is left of it."""
    info = np.iinfo(whole.dtype)
    floor = np.floor(np.nan_to_num(real, nan=0.0, posinf=0.0, neginf=0.0))
    # The bounds as doubles: 2**63 and 2**64 themselves are out of range already.
    above, below = real >= float(info.max) + 1.0, real < float(info.min)
    inside = np.where(above | below, 0.0, floor).astype(whole.dtype)
    sign = _sign(whole, inside)
    sign = np.where((sign == 0) & (real > floor), np.int8(-1), sign)
    return np.where(above, np.int8(-1), np.where(below, np.int8(1), sign)).astype(np.int8)
