"""JSON parameters as values of the types a query declares.

Holds at every return: each declared parameter has a value of its type or, if it is nullable, None; no other is there.
Python callers may also give what results are made of: dates, datetimes with a time zone, NumPy arrays and numbers.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Any

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, PropertyType, ScalarType
from omnigraph.catalog.values import as_float, datetime_text
from omnigraph.lang.diagnostics import nearest_name
from omnigraph.lang.gq.header import RESERVED_PREFIX
from omnigraph.plan.typed import ParamSpec
from omnigraph.plan.values import Stored, blob_value, date_days, datetime_ms

_DIGITS_MAX = 40
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_SIGNED = re.compile(r"-?[0-9]+")
_UNSIGNED = re.compile(r"[0-9]+")


def bind_parameters(declared: Sequence[ParamSpec], given: Any = None) -> dict[str, Stored]:
    """The value of every declared parameter, from a JSON object or nothing."""
    members = _members(given)
    specs = {spec.name: spec for spec in declared}
    for name, value in members.items():
        if name in specs:
            continue
        if name.startswith(RESERVED_PREFIX):
            hint = f"Names beginning with {RESERVED_PREFIX} are kept for the engine."
            raise BadRequest(f"parameter name '{name}' is reserved", hint)
        if _holds_object(value):
            raise BadRequest(f"param '{name}': object is not supported")
    return {spec.name: _bound(spec, members, specs) for spec in declared}


def json_kind(value: Any) -> str:
    """What JSON calls a value; integers and floats apart."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "float"
        case str():
            return "string"
        case list() | tuple():
            return "array"
        case Mapping():
            return "object"
        case _:
            return type(value).__name__


def _members(given: Any) -> Mapping[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise BadRequest(f"parameters must be a JSON object, got {json_kind(given)}", 'Write {"name": value}.')
    for name in given:
        if not isinstance(name, str):
            raise BadRequest(f"parameter names are strings, got {json_kind(name)}")
    return given


def _holds_object(value: Any) -> bool:
    waiting = [value]
    while waiting:
        found = waiting.pop()
        if isinstance(found, Mapping):
            return True
        if isinstance(found, list | tuple):
            waiting.extend(found)
    return False


def _bound(spec: ParamSpec, members: Mapping[str, Any], specs: Mapping[str, ParamSpec]) -> Stored:
    if spec.name not in members:
        if spec.type.nullable:
            return None
        meant = nearest_name(spec.name, [name for name in members if name not in specs])
        hint = f"'{meant}' was given and is not declared." if meant else f"It is declared as {spec.type}."
        raise BadRequest(f"parameter '{spec.name}' not provided", hint)
    value = members[spec.name]
    if value is None:
        if spec.type.nullable:
            return None
        raise _refused(spec, "null is not accepted for non-nullable parameter")
    try:
        return _value(spec.type, value)
    except ValueError as error:
        raise _refused(spec, str(error)) from None


def _refused(spec: ParamSpec, why: str) -> BadRequest:
    return BadRequest(f"param '{spec.name}': {why}", f"It is declared as {spec.type}.")


def _value(type_: PropertyType, value: Any) -> Stored:
    if type(value) is str and type_.scalar is ScalarType.STRING and not type_.is_list:
        _refuse_lone_surrogates(value)
        return value
    value = _plain(value)
    if type_.is_vector:
        return _vector(type_, value)
    if not type_.is_list:
        return _scalar(type_.scalar, value)
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected array for [{type_.scalar.value}], got {json_kind(value)}")
    items: list[str | int | float | bool] = []
    for place, item in enumerate(value):
        try:
            converted = _scalar(type_.scalar, _plain(item))
        except ValueError as error:
            raise ValueError(f"item {place}: {error}") from None
        assert isinstance(converted, str | int | float | bool)
        items.append(converted)
    return tuple(items)


def _plain(value: Any) -> Any:
    """What NumPy and pandas hold, as Python has it; neither need be installed."""
    return value.tolist() if hasattr(value, "tolist") else value


def _scalar(scalar: ScalarType, value: Any) -> Stored:
    if scalar in INTEGER_RANGES:
        return _integer(scalar, value)
    if scalar in FLOATS:
        return _float(scalar, value)
    if scalar is ScalarType.BOOL:
        if not isinstance(value, bool):
            raise ValueError(f"expected boolean, got {json_kind(value)}")
        return value
    expected = _TEXTS[scalar]
    if scalar in (ScalarType.DATE, ScalarType.DATETIME) and isinstance(value, date):
        value = _moment_text(value)
    if not isinstance(value, str):
        raise ValueError(f"expected {expected}, got {json_kind(value)}")
    _refuse_lone_surrogates(value)
    try:
        match scalar:
            case ScalarType.DATE:
                return date_days(value)
            case ScalarType.DATETIME:
                return datetime_ms(value)
            case ScalarType.BLOB:
                return blob_value(value)
            case _:
                return value
    except ValueError as error:
        raise ValueError(f"expected {expected}: {error}") from None


_TEXTS = {
    ScalarType.STRING: "string",
    ScalarType.DATE: "date string",
    ScalarType.DATETIME: "datetime string",
    ScalarType.BLOB: "blob URI string",
}


def _moment_text(value: date) -> str:
    """A date, or a datetime to the millisecond, as JSON would say it."""
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is None:
        raise ValueError(f"{value!r} has no time zone: write datetime(…, tzinfo=UTC)")
    return datetime_text((value - _EPOCH) // timedelta(milliseconds=1))


def _refuse_lone_surrogates(value: str) -> None:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("the text is not valid Unicode") from None


def _integer(scalar: ScalarType, value: Any) -> int:
    low, high = INTEGER_RANGES[scalar]
    expected, digits = ("unsigned integer", _UNSIGNED) if low == 0 else ("integer", _SIGNED)
    if isinstance(value, str) and digits.fullmatch(value):
        value = int(value) if len(value) <= _DIGITS_MAX else high + 1 if value[0] != "-" else low - 1
    if isinstance(value, bool) or not isinstance(value, int):
        shown = f"'{value[:40]}'" if isinstance(value, str) else json_kind(value)
        raise ValueError(f"expected {expected}, got {shown}")
    if low == 0 and value < 0:
        raise ValueError(f"expected {expected}, got {_shown(value)}")
    if not low <= value <= high:
        raise ValueError(f"value exceeds {scalar.value} range")
    return value


def _float(scalar: ScalarType, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"expected float, got {json_kind(value)}")
    if isinstance(value, float) and not math.isfinite(value):
        raise ValueError(f"expected float, got {value}")
    try:
        return as_float(scalar, value)
    except (OverflowError, ValueError):
        raise ValueError(f"value exceeds {scalar.value} range") from None


def _vector(type_: PropertyType, value: Any) -> tuple[float, ...]:
    if not isinstance(value, list | tuple):
        raise ValueError(f"expected array for {_core(type_)}, got {json_kind(value)}")
    if len(value) != type_.dimension:
        raise ValueError(f"expected {type_.dimension} values for {_core(type_)}, got {len(value)}")
    items = [item if type(item) is float else _plain(item) for item in value]
    for item in items:
        if isinstance(item, bool) or not isinstance(item, int | float):
            raise ValueError(f"vector element is not numeric, got {json_kind(item)}")
    return tuple(_float(ScalarType.F32, item) for item in items)


def _core(type_: PropertyType) -> str:
    return str(type_).removesuffix("?")


def _shown(value: int) -> str:
    return str(value) if abs(value) < 10**_DIGITS_MAX else "a very large number"
