"""Comparisons by mathematical value, brought into a form in which column and value have the same type.

`normal` is pure; whoever evaluates a comparison, in a store's filter or on rows in memory, starts from its result.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum
from fractions import Fraction

from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, PropertyType
from omnigraph.plan.typed import Comparator
from omnigraph.plan.values import Stored


class Always(Enum):
    """A comparison whose outcome does not depend on the value stored."""

    NEVER = "never"
    IF_PRESENT = "if present"


@dataclass(frozen=True)
class Normal:
    """`column comparator value`: an integer column with an integer in its range, any float column with a double."""

    comparator: Comparator
    value: Stored


_SMALLER = frozenset({Comparator.LT, Comparator.LE, Comparator.NE})
_LARGER = frozenset({Comparator.GT, Comparator.GE, Comparator.NE})


_MIRRORED = {
    Comparator.LT: Comparator.GT,
    Comparator.GT: Comparator.LT,
    Comparator.LE: Comparator.GE,
    Comparator.GE: Comparator.LE,
}


def mirrored(comparator: Comparator) -> Comparator:
    """The comparator that says the same with its sides changed."""
    return _MIRRORED.get(comparator, comparator)


def normal(type_: PropertyType, comparator: Comparator, value: Stored) -> Normal | Always:
    """The comparison in its plain form; with NULL nothing is true."""
    if value is None:
        return Always.NEVER
    if type_.is_integer and isinstance(value, int | float) and not isinstance(value, bool):
        return _whole(type_, comparator, value)
    if type_.scalar in FLOATS and isinstance(value, int) and not isinstance(value, bool):
        return _double(comparator, value)
    return Normal(comparator, value)


def _whole(type_: PropertyType, comparator: Comparator, value: int | float) -> Normal | Always:
    low, high = INTEGER_RANGES[type_.scalar]
    if isinstance(value, float):
        if math.isnan(value):
            return Always.IF_PRESENT if comparator is Comparator.NE else Always.NEVER
        if math.isinf(value) or value != math.floor(value):
            return _between(comparator, value, low, high)
        value = int(value)
    if value > high:
        return Always.IF_PRESENT if comparator in _SMALLER else Always.NEVER
    if value < low:
        return Always.IF_PRESENT if comparator in _LARGER else Always.NEVER
    return Normal(comparator, value)


def _between(comparator: Comparator, value: float, low: int, high: int) -> Normal | Always:
    """A number no integer equals: below it are those up to its floor."""
    if comparator is Comparator.EQ:
        return Always.NEVER
    if comparator is Comparator.NE:
        return Always.IF_PRESENT
    upwards = comparator in (Comparator.GT, Comparator.GE)
    if value > high or value < low:
        return Always.IF_PRESENT if (value < low) == upwards else Always.NEVER
    return Normal(Comparator.GT if upwards else Comparator.LE, math.floor(value))


def _double(comparator: Comparator, value: int) -> Normal | Always:
    """An integer beside floats: one that no double equals lies between two of them."""
    try:
        near = float(value)
    except OverflowError:
        near = math.inf if value > 0 else -math.inf
    if not math.isinf(near) and Fraction(near) == value:
        return Normal(comparator, near)
    if comparator is Comparator.EQ:
        return Always.NEVER
    if comparator is Comparator.NE:
        return Always.IF_PRESENT
    above = (math.isinf(near) and near > 0) or (not math.isinf(near) and Fraction(near) > value)
    if comparator in (Comparator.GT, Comparator.GE):
        return Normal(Comparator.GE if above else Comparator.GT, near)
    return Normal(Comparator.LT if above else Comparator.LE, near)
