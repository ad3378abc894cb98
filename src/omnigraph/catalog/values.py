"""Literals of the schema language as values of a property's type.

Holds at every return: the value fits the type exactly as it will be stored, or a ValueError says why not.
"""

from __future__ import annotations

import ctypes
import math
import re
from datetime import UTC, date, datetime, timedelta
from fractions import Fraction

from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, PropertyType, ScalarType
from omnigraph.lang.pg.ast import Ident, Literal, LiteralKind, Value

_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_DATETIME = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})"
    r"(?:[T ]([0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.([0-9]{1,3})0*)?(Z|[+-][0-9]{2}:[0-5][0-9])?)?"
)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def default_value(type_: PropertyType, written: Value) -> str | int | float | bool:
    """The literal of `@default` as it is kept: Date and DateTime as their canonical text."""
    if type_.is_list or type_.is_vector or type_.is_blob:
        raise ValueError("@default is not supported on a list, Vector or Blob property")
    if type_.is_enum:
        return _enum_member(type_, written)
    if isinstance(written, Ident):
        raise ValueError(f"@default expects a literal of type {type_}, got the name '{written.text}'")
    if type_.scalar in INTEGER_RANGES:
        return _integer(type_.scalar, written)
    if type_.scalar in FLOATS and written.kind in (LiteralKind.FLOAT, LiteralKind.INTEGER):
        return as_float(type_.scalar, written.value)
    expected = LiteralKind.BOOL if type_.scalar is ScalarType.BOOL else LiteralKind.STRING
    if type_.scalar in FLOATS or written.kind is not expected:
        raise ValueError(f"@default expects a literal of type {type_}, got {written.kind.value}")
    match type_.scalar:
        case ScalarType.DATE:
            return parse_date(str(written.value)).isoformat()
        case ScalarType.DATETIME:
            return datetime_text(parse_datetime_ms(str(written.value)))
        case _:
            return written.value


def stored_default(
    type_: PropertyType, default: str | int | float | bool
) -> str | int | float | bool | date | datetime:
    """A kept default as the Python value Arrow takes for the column."""
    if type_.scalar is ScalarType.DATE:
        return parse_date(str(default))
    if type_.scalar is ScalarType.DATETIME:
        return _EPOCH + timedelta(milliseconds=parse_datetime_ms(str(default)))
    return default


def range_bound(type_: PropertyType, written: Literal, *, lower: bool) -> int | float:
    """A bound as a value of the numeric property; between two integers it moves inwards."""
    value = written.value
    if isinstance(value, str):
        raise ValueError("@range bounds must be numbers")
    if type_.scalar in FLOATS:
        return as_float(type_.scalar, value)
    whole = math.ceil(Fraction(value)) if lower else math.floor(Fraction(value))
    low, high = INTEGER_RANGES[type_.scalar]
    if not low <= whole <= high:
        raise ValueError(f"@range bound {whole} exceeds {type_.scalar.value} range")
    return whole


def as_float(scalar: ScalarType, value: str | int | float | bool) -> float:
    """The nearest value the float type holds, so that an inclusive bound includes the number as written."""
    wide = float(value)
    narrow = ctypes.c_float(wide).value if scalar is ScalarType.F32 else wide
    if not math.isfinite(narrow):
        raise ValueError(f"number exceeds {scalar.value} range")
    return narrow


def parse_date(text: str) -> date:
    if _DATE.fullmatch(text):
        try:
            return date.fromisoformat(text)
        except ValueError:
            pass
    raise ValueError(f"invalid Date literal '{text}'")


def parse_datetime_ms(text: str) -> int:
    """Milliseconds since the epoch; a date alone is its midnight, no offset means UTC."""
    parts = _DATETIME.fullmatch(text)
    if parts is None:
        raise ValueError(f"invalid DateTime literal '{text}'")
    day, time, fraction, offset = parts.groups()
    zone = "+00:00" if offset in (None, "Z") else offset
    try:
        moment = datetime.fromisoformat(f"{day}T{time or '00:00:00'}{zone}")
    except ValueError:
        raise ValueError(f"invalid DateTime literal '{text}'") from None
    return (moment - _EPOCH) // timedelta(milliseconds=1) + int((fraction or "0").ljust(3, "0"))


def datetime_text(milliseconds: int) -> str:
    """`YYYY-MM-DDTHH:MM:SS.mmmZ`."""
    try:
        moment = _EPOCH + timedelta(milliseconds=milliseconds)
    except OverflowError:
        raise ValueError("invalid DateTime literal: outside the years 1 to 9999") from None
    return moment.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"


def _integer(scalar: ScalarType, written: Literal) -> int:
    if written.kind is not LiteralKind.INTEGER:
        raise ValueError(f"@default expects a literal of type {scalar.value}, got {written.kind.value}")
    value = int(written.value)
    low, high = INTEGER_RANGES[scalar]
    if not low <= value <= high:
        raise ValueError(f"@default value {value} exceeds {scalar.value} range")
    return value


def _enum_member(type_: PropertyType, written: Value) -> str:
    given = written.text if isinstance(written, Ident) else written.value
    if not isinstance(given, str) or given not in type_.enum_values:
        raise ValueError(f"@default value '{given}' is not one of [{', '.join(type_.enum_values)}]")
    return given
