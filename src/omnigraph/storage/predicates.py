"""The one place where values become filter text."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

import pyarrow as pa

from omnigraph.base.errors import BadRequest

# Beyond this many ids a scan of the id column beats a filter that names them.
LOOKUP_BY_FILTER_MAX = 1000
_SMALLEST_I64 = -(1 << 63)


def sql_string(value: str) -> str:
    """A string literal that means exactly `value`."""
    if "\x00" in value:
        raise BadRequest("a value with a NUL character cannot be compared")
    return "'" + value.replace("'", "''") + "'"


def column_in(column: str, values: pa.Array) -> str | None:
    """Whether the column holds one of the values; None if one of them cannot be written as a literal."""
    try:
        literals = [literal(value.as_py()) for value in values if value.is_valid]
    except (ValueError, OverflowError):  # a time that Python's calendar does not reach
        return None
    if any(text is None for text in literals):
        return None
    return f"`{column}` IN ({', '.join(text for text in literals if text)})" if literals else "false"


def compared(column: str, operator: str, value: pa.Scalar, column_type: pa.DataType) -> str | None:
    """`column operator value`; None if the value cannot be written as a literal."""
    try:
        text = literal(value.as_py())
    except (ValueError, OverflowError):
        return None  # a day or moment that Python has no date for
    if text is None:
        return None
    wide = f"CAST(`{column}` AS DOUBLE)" if pa.types.is_float32(column_type) else f"`{column}`"
    return f"{wide} {operator} {text}"


def literal(value: Any) -> str | None:
    """The value as Lance's filters write it, None if they cannot."""
    if isinstance(value, str):
        return None if "\x00" in value else sql_string(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        # Lance reads the sign apart, and the digits of the smallest integer alone are beyond the largest.
        return str(value) if value > _SMALLEST_I64 else None
    if isinstance(value, float):
        # repr has every digit, so a 32-bit column finds its own value whichever side is widened.
        # The two zeros are equal everywhere but in an index.
        return repr(value) if math.isfinite(value) and value != 0 else None
    if isinstance(value, datetime):
        return f"TIMESTAMP '{value:%Y-%m-%d %H:%M:%S}.{value.microsecond // 1000:03d}'" if value.year > 999 else None
    if isinstance(value, date):
        return f"DATE '{value.isoformat()}'" if value.year > 999 else None
    return None
