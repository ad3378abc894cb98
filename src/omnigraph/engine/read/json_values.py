"""The values of a result as JSON has them, for every type a query or SQL can give.

Holds for every value: nothing is rounded or lost. What a JSON number of other programs could not hold is text: integers
beyond 2^53, NaN and the infinities, long decimals.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.records.blobs import blob_text
from omnigraph.records.encode import safe_column

_JSON_SAFE = 9_007_199_254_740_991
# A double has at least this many decimal digits.
_DOUBLE_DIGITS = 15
_PLAIN: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_date32,
    pa.types.is_timestamp,
    pa.types.is_binary,
    pa.types.is_large_binary,
)


def json_values(column: pa.Array | pa.ChunkedArray) -> list[Any]:
    """One JSON value for each value of the column."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks()
    type_ = column.type
    if pa.types.is_floating(type_):
        return _floats(column)
    if _is_list(type_):
        return _lists(column) if _is_plain(type_.value_type) else _others(column)
    return safe_column(column) if _is_plain(type_) else _others(column)


def _is_plain(type_: pa.DataType) -> bool:
    return any(fits(type_) for fits in _PLAIN)


def _is_list(type_: pa.DataType) -> bool:
    return bool(pa.types.is_list(type_) or pa.types.is_large_list(type_) or pa.types.is_fixed_size_list(type_))


def _floats(column: pa.Array) -> list[Any]:
    finite = pc.is_finite(column)
    if not finite.false_count:
        return safe_column(column)
    values = safe_column(pc.if_else(finite, column, pa.scalar(None, column.type)))
    for place, (is_finite, value) in enumerate(zip(finite.to_pylist(), column.to_pylist(), strict=True)):
        if is_finite is False:
            values[place] = _float_text(value)
    return values


def _lists(column: pa.Array) -> list[Any]:
    if pa.types.is_floating(column.type.value_type) and pc.is_finite(column.flatten()).false_count:
        return [None if row.values is None else _floats(row.values) for row in column]
    return safe_column(column)


def _others(column: pa.Array) -> list[Any]:
    return [json_value(value) for value in column.to_pylist(maps_as_pydicts="lossy")]


def json_value(value: Any) -> Any:
    """A Python value of any result as JSON has it."""
    match value:
        case None | bool() | str():
            return value
        case int():
            return value if abs(value) <= _JSON_SAFE else str(value)
        case float():
            return value if math.isfinite(value) else _float_text(value)
        case Decimal():
            return _decimal(value)
        case bytes():
            return blob_text(value)
        case list():
            return [json_value(item) for item in value]
        case dict():
            return {str(json_value(key)): json_value(item) for key, item in value.items()}
        case datetime() | date() | time():
            return _moment_text(value)
        case pa.MonthDayNano():
            return _interval_text(value)
        case _:
            return str(value)


def _float_text(value: float) -> str:
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def _decimal(value: Decimal) -> Any:
    if not value.is_finite():
        return _float_text(float(value))
    if value.as_tuple().exponent == 0:
        return json_value(int(value))
    return float(value) if len(value.as_tuple().digits) <= _DOUBLE_DIGITS else str(value)


def _moment_text(value: date | time) -> str:
    if isinstance(value, datetime) and value.tzinfo is not None:
        return value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
    return value.isoformat()


def _interval_text(value: Any) -> str:
    """`1 month 2 days 3:00:00`, the way SQL reads an interval."""
    months, days, nanoseconds = value
    clock = timedelta(microseconds=abs(nanoseconds) // 1_000)
    sign = "-" if nanoseconds < 0 else ""
    parts = (f"{months} months" if months else "", f"{days} days" if days else "", f"{sign}{clock}" if clock else "")
    return " ".join(part for part in parts if part) or "0:00:00"
