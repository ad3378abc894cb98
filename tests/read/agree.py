"""Whether an answer is one the spec allows, given what the naive evaluator says."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from omnigraph.catalog.types import PropertyType, ScalarType
from omnigraph.plan import typed
from read.naive import Tables, evaluate
from read.naive_parts import WORDS, Search

_MISSING = object()


def disagreement(
    query: typed.ReadQuery,
    tables: Tables,
    found: Sequence[dict[str, Any]],
    params: Any = None,
    now_ms: int = 0,
    search: Search = WORDS,
) -> str | None:
    """What is wrong with the JSON rows found, or None.

    Without `order` any order is right, and with a limit any rows of the whole answer are. Groups that their ordering
    keys leave equal may come in any order.
    """
    open_ended = bool(query.order) and not query.aggregated
    whole = query if open_ended else replace(query, limit=None)
    return misfit(query, evaluate(whole, tables, params, now_ms, search), found)


def misfit(query: typed.ReadQuery, whole: Sequence[dict[str, Any]], found: Sequence[dict[str, Any]]) -> str | None:
    """What is wrong with the rows found when `whole` are those the query has, in an order it allows."""
    names = [column.name for column in query.columns]
    for row in found:
        if list(row) != names:
            return f"columns {list(row)}, not {names}"
    expected, answer = ([canonical(query, row) for row in rows] for rows in (whole, found))
    wanted = len(expected) if query.limit is None else min(query.limit, len(expected))
    if len(answer) != wanted:
        return f"{len(answer)} rows, not {wanted}: {_difference(expected, answer)}"
    if surplus := Counter(answer) - Counter(expected):
        return f"rows that do not belong: {list(surplus)[:5]}; {_difference(expected, answer)}"
    if not query.order:
        return None
    if not query.aggregated:
        return None if answer == expected[:wanted] else f"order {answer[:10]}, not {expected[:10]}"
    keys = [key.value.index for key in query.order if isinstance(key.value, typed.ColumnRef)]
    for place, (one, other) in enumerate(zip(answer, expected, strict=False)):
        if [one[key] for key in keys] != [other[key] for key in keys]:
            return f"row {place} is {one}, and {other} comes before it"
    return None


def canonical(query: typed.ReadQuery, row: dict[str, Any]) -> tuple[Any, ...]:
    """The row by value: floats as near as the spec promises them."""
    return tuple(_canonical(column, row.get(column.name, _MISSING)) for column in query.columns)


def _canonical(column: typed.Column, value: Any) -> Any:
    if isinstance(value, list):
        inner = replace(column, value=typed.Constant(_element(column.type), None))
        return tuple(_canonical(inner, item) for item in value)
    if not isinstance(value, float):
        # JSON knows one kind of number, Python two and a Bool that equals 1.
        return (type(value).__name__, value)
    if column.type.scalar is ScalarType.F32:
        return ("float", ctypes.c_float(value).value)
    if isinstance(column.value, typed.Ranking):
        return ("float", round(value, 5))
    return ("float", float(f"{value:.13g}") if isinstance(column.value, typed.Aggregate) else value)


def _element(type_: PropertyType) -> PropertyType:
    return PropertyType(ScalarType.F32 if type_.is_vector else type_.scalar)


def _difference(expected: list[tuple[Any, ...]], answer: list[tuple[Any, ...]]) -> str:
    missing = list((Counter(expected) - Counter(answer)).elements())[:5]
    surplus = list((Counter(answer) - Counter(expected)).elements())[:5]
    return f"missing {missing}, surplus {surplus}"
