"""Why a value does not fit its property, in the words every engine uses.

Called only for values a converter found bad, and only when somebody will read the answer.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import orjson
import pyarrow as pa

from omnigraph.catalog.catalog import Property
from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, PropertyType, ScalarType
from omnigraph.records.blobs import BadBlob, blob_of
from omnigraph.records.times import parse_ms

Fault = tuple[str, str]
_SHOWN_MAX = 80
_CONTROLS = {code: ascii(chr(code))[1:-1] for code in (*range(32), *range(127, 160), 0x2028, 0x2029)}
_FORMS = {
    ScalarType.DATE: "YYYY-MM-DD or integer days since 1970-01-01",
    ScalarType.DATETIME: "RFC 3339 text or integer milliseconds since 1970-01-01",
}
_KINDS = {
    type(None): "null",
    bool: "boolean",
    int: "integer",
    float: "float",
    str: "string",
    list: "array",
    tuple: "array",
    dict: "object",
}


def explain(
    declared: Property, value: Any, owner: str, allowed_blob_prefixes: Sequence[str] = (), element: int = 0
) -> Fault:
    """The reason code and the message for a value its converter refused; in a list, because of that element."""
    type_, subject = declared.type, f"property '{declared.name}'"
    if type_.is_vector:
        return _vector(type_, value, subject)
    if type_.is_list:
        return _list(type_, value, f"list {subject}", element)
    if type_.is_enum:
        return _enum(type_, value, f"{owner}.{declared.name}" if owner else declared.name)
    if type_.is_blob:
        return _blob(value, subject, allowed_blob_prefixes)
    return _scalar(type_.scalar, value, subject)


def missing(declared: Property) -> Fault:
    return "missing_required", f"non-nullable property '{declared.name}' has null or missing value"


def kind_of(value: Any) -> str:
    """What JSON calls the value, integers and floats apart."""
    return _KINDS.get(type(value), type(value).__name__)


def shown(value: Any) -> str:
    """The value as JSON, shortened for a message; texts in single quotes."""
    if isinstance(value, str):
        return f"'{_short(value)}'"
    if type(value) is int:
        # Python refuses to print integers of thousands of digits.
        return _short(str(value)) if abs(value) < 10**_SHOWN_MAX else "with too many digits"
    if isinstance(value, float):
        return repr(value)
    try:
        return _short(orjson.dumps(value).decode())
    except (TypeError, orjson.JSONEncodeError):
        return f"of type {kind_of(value)}"


def _short(text: str) -> str:
    # Messages travel through logs, a line each, and JSON, where half a surrogate pair cannot.
    safe = text[: _SHOWN_MAX + 1].encode("utf-8", "replace").decode().translate(_CONTROLS)
    return safe if len(safe) <= _SHOWN_MAX else safe[:_SHOWN_MAX] + "…"


def _expects(subject: str, what: str, value: Any) -> Fault:
    return "wrong_type", f"{subject} expects {what}, got {kind_of(value)}"


def _scalar(scalar: ScalarType, value: Any, subject: str) -> Fault:
    if scalar is ScalarType.STRING:
        if isinstance(value, str):
            return "wrong_type", f"{subject} expects a string of valid Unicode"
        return _expects(subject, "a string", value)
    if scalar is ScalarType.BOOL:
        return _expects(subject, "a boolean", value)
    if scalar in INTEGER_RANGES:
        if type(value) is not int:
            return _expects(subject, "an integer", value)
        return "out_of_range", f"{subject}: value {shown(value)} exceeds {scalar.value} range"
    if scalar in FLOATS:
        if type(value) not in (int, float):
            return _expects(subject, "a number", value)
        return "out_of_range", f"{subject}: value {shown(value)} exceeds {scalar.value} range"
    return _time(scalar, value, subject)


def _time(scalar: ScalarType, value: Any, subject: str) -> Fault:
    text = f"{subject}: invalid {scalar.value} literal {shown(value)}"
    if type(value) is int:
        return "out_of_range", f"{text}: more than a {scalar.value} holds"
    if type(value) is str and scalar is ScalarType.DATETIME and _is_too_fine(value):
        return "wrong_type", f"{text}: finer than a millisecond, which is what a DateTime holds"
    return "wrong_type", f"{text} (expected {_FORMS[scalar]})"


def _is_too_fine(text: str) -> bool:
    """The text would be a moment if the digits after the millisecond were not there."""
    head, point, tail = text.partition(".")
    digits = len(tail) - len(tail.lstrip("0123456789"))
    if not point or digits <= 3 or not text.isascii():
        return False
    return bool(parse_ms(pa.array([f"{head}.{tail[:3]}{tail[digits:]}"], pa.string()))[1][0])


def _enum(type_: PropertyType, value: Any, place: str) -> Fault:
    if not isinstance(value, str):
        return _expects(f"property '{place.rpartition('.')[2]}'", "a string", value)
    return "invalid_enum", f"invalid enum value {shown(value)} for {place} (expected: {', '.join(type_.enum_values)})"


def _list(type_: PropertyType, value: Any, subject: str, element: int) -> Fault:
    if not isinstance(value, list | tuple):
        return "wrong_type", f"{subject} expects a JSON array, got {kind_of(value)}"
    return _scalar(type_.scalar, value[element], f"element {element + 1} of {subject}")


def _vector(type_: PropertyType, value: Any, subject: str) -> Fault:
    vector = f"vector {subject}"
    if not isinstance(value, list | tuple):
        return "bad_vector", f"{vector} expects an array of {type_.dimension} numbers, got {kind_of(value)}"
    if len(value) != type_.dimension:
        return "bad_vector", f"{vector} expects {type_.dimension} dimensions, got {len(value)}"
    for place, item in enumerate(value, 1):
        if type(item) not in (int, float):
            return "bad_vector", f"{vector} elements must be numeric, element {place} is {kind_of(item)}"
        if not _fits_f32(item):
            return "bad_vector", f"{vector} elements must be finite, element {place} exceeds F32 range"
    raise AssertionError("the vector fits")


def _fits_f32(value: float) -> bool:
    try:
        with np.errstate(over="ignore"):
            return math.isfinite(np.float32(float(value)))
    except OverflowError:
        return False


def _blob(value: Any, subject: str, allowed_prefixes: Sequence[str]) -> Fault:
    if not isinstance(value, str | bytes):
        return _expects(subject, "a string", value)
    try:
        blob_of(value, allowed_prefixes)
    except BadBlob as why:
        return "bad_blob", f"{subject}: {why}"
    raise AssertionError("the blob fits")
