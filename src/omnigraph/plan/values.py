"""Values as the engine holds them, and the literals of the query language as such values.

Holds for every value: a Date is days and a DateTime milliseconds since the epoch, both integers; a list or Vector is a
tuple; base64 of a Blob is bytes, another Blob text is a URI nobody has looked at; NULL is None.
"""

from __future__ import annotations

import base64
import binascii
from datetime import date

from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, PropertyType, ScalarType
from omnigraph.catalog.values import as_float, datetime_text, parse_date, parse_datetime_ms
from omnigraph.lang.gq.ast import ListLiteral, Literal, LiteralKind

Stored = str | int | float | bool | bytes | None | tuple[str | int | float | bool, ...]
BASE64_PREFIX = "base64:"

STRING = PropertyType(ScalarType.STRING)
BOOL = PropertyType(ScalarType.BOOL)
I64 = PropertyType(ScalarType.I64)
F64 = PropertyType(ScalarType.F64)
F64_OR_NULL = PropertyType(ScalarType.F64, nullable=True)
DATETIME = PropertyType(ScalarType.DATETIME)

_EPOCH_DAY = date(1970, 1, 1)
_SCALARS = {
    LiteralKind.STRING: ScalarType.STRING,
    LiteralKind.FLOAT: ScalarType.F64,
    LiteralKind.BOOL: ScalarType.BOOL,
    LiteralKind.DATE: ScalarType.DATE,
    LiteralKind.DATETIME: ScalarType.DATETIME,
}
_WRITTEN = {
    ScalarType.DATE: 'Write date("2024-01-31").',
    ScalarType.DATETIME: 'Write datetime("2024-01-31T12:00:00Z").',
}
_LIMIT_I64 = INTEGER_RANGES[ScalarType.I64][1]


def literal_type(literal: Literal | ListLiteral) -> PropertyType:
    """The type a literal has by itself; ValueError for null and for lists that mix kinds."""
    if isinstance(literal, ListLiteral):
        return PropertyType(_element_type(literal), is_list=True)
    return PropertyType(_scalar_type(literal))


def literal_value(literal: Literal | ListLiteral) -> Stored:
    """The value a literal has by itself; ValueError for what `literal_type` refuses and for impossible dates."""
    if isinstance(literal, ListLiteral):
        element = _element_type(literal)
        items = [_scalar_value(item) for item in literal.items if isinstance(item, Literal)]
        return tuple(float(item) if element is ScalarType.F64 else item for item in items)
    return _scalar_value(literal)


def fitted(type_: PropertyType, literal: Literal | ListLiteral) -> Stored:
    """The literal as the property stores it; ValueError says why it does not fit."""
    if isinstance(literal, Literal) and literal.kind is LiteralKind.NULL:
        if not type_.nullable:
            raise ValueError("takes no null, it is required")
        return None
    if type_.is_vector:
        return _vector(type_, literal)
    if not type_.is_list:
        return _fitted_scalar(type_, literal)
    if not isinstance(literal, ListLiteral):
        raise ValueError(f"expects a list, {_given(literal)}")
    element = PropertyType(type_.scalar)
    return tuple(_present(_fitted_scalar(element, item)) for item in literal.items)


def matched(type_: PropertyType, literal: Literal | ListLiteral) -> tuple[PropertyType, Stored]:
    """The literal as something to compare a property with: its kind must fit, its size need not."""
    refuse_misfit(type_, literal)
    return literal_type(literal), literal_value(literal)


def refuse_misfit(type_: PropertyType, literal: Literal | ListLiteral) -> None:
    """ValueError unless the literal is one of the scalar type's own kind, and a member where there is an enum."""
    expected = f"expects {_core(type_)}, {_given(literal)}"
    if isinstance(literal, ListLiteral):
        raise ValueError(expected)
    if type_.is_enum:
        refuse_non_member(type_, literal.value)
    elif type_.scalar in FLOATS:
        if literal.kind not in (LiteralKind.INTEGER, LiteralKind.FLOAT):
            raise ValueError(expected)
    elif type_.scalar in INTEGER_RANGES:
        if literal.kind is not LiteralKind.INTEGER:
            raise ValueError(expected)
    elif literal.kind is LiteralKind.NULL or literal_type(literal).scalar is not _spelt(type_.scalar):
        raise ValueError(expected)


def refuse_non_member(type_: PropertyType, value: object) -> None:
    if value not in type_.enum_values:
        shown = f"'{value}'" if isinstance(value, str) else repr(value)
        raise ValueError(f"expects one of [{', '.join(type_.enum_values)}], got {shown}")


def spelling_hint(type_: PropertyType, literal: Literal | ListLiteral) -> str:
    """How to write a date, for those who wrote a text."""
    quoted = isinstance(literal, Literal) and literal.kind is LiteralKind.STRING
    return _WRITTEN.get(type_.scalar, "") if quoted else ""


def date_days(text: str) -> int:
    return (parse_date(text) - _EPOCH_DAY).days


def datetime_ms(text: str) -> int:
    milliseconds = parse_datetime_ms(text)
    datetime_text(milliseconds)  # an offset may push the moment out of the years 1 to 9999
    return milliseconds


def blob_value(text: str) -> bytes | str:
    """The bytes behind `base64:`, else the URI as it is; whether that is allowed depends on the graph."""
    if not text.startswith(BASE64_PREFIX):
        return text
    try:
        return base64.b64decode(text.removeprefix(BASE64_PREFIX), validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("invalid base64") from None


def _fitted_scalar(type_: PropertyType, literal: Literal | ListLiteral) -> Stored:
    refuse_misfit(type_, literal)
    assert isinstance(literal, Literal)
    value = literal_value(literal)
    if type_.is_blob:
        return blob_value(str(value))
    if type_.scalar in FLOATS:
        assert isinstance(value, int | float)
        return as_float(type_.scalar, value)
    if type_.scalar in INTEGER_RANGES:
        low, high = INTEGER_RANGES[type_.scalar]
        assert isinstance(value, int)
        if not low <= value <= high:
            raise ValueError(f"value {value} exceeds {type_.scalar.value} range")
    return value


def _vector(type_: PropertyType, literal: Literal | ListLiteral) -> tuple[float, ...]:
    if not isinstance(literal, ListLiteral):
        raise ValueError(f"expects {_core(type_)}, {_given(literal)}")
    if len(literal.items) != type_.dimension:
        raise ValueError(f"expects {type_.dimension} dimensions, got {len(literal.items)}")
    return vector_of(literal)


def vector_of(literal: ListLiteral) -> tuple[float, ...]:
    """The numbers of a list as a Vector holds them."""
    numbers: list[float] = []
    for item in literal.items:
        if not isinstance(item, Literal) or item.kind not in (LiteralKind.INTEGER, LiteralKind.FLOAT):
            raise ValueError("elements must be numeric")
        assert isinstance(item.value, int | float)
        numbers.append(as_float(ScalarType.F32, item.value))
    return tuple(numbers)


def _element_type(literal: ListLiteral) -> ScalarType:
    if any(isinstance(item, ListLiteral) for item in literal.items):
        raise ValueError("a list holds no lists")
    found = {_scalar_type(item) for item in literal.items if isinstance(item, Literal)}
    if not found:
        return ScalarType.STRING
    if len(found) == 1:
        return found.pop()
    if found == {ScalarType.I64, ScalarType.U64}:
        values = [item.value for item in literal.items if isinstance(item, Literal)]
        if all(isinstance(value, int) and value >= 0 for value in values):
            return ScalarType.U64
        raise ValueError("a list of integers needs one integer type that holds them all")
    if found <= {ScalarType.I64, ScalarType.U64, ScalarType.F64}:
        return ScalarType.F64
    raise ValueError(f"a list is homogeneous, this one mixes {' and '.join(sorted(s.value for s in found))}")


def _scalar_type(literal: Literal) -> ScalarType:
    if literal.kind is LiteralKind.NULL:
        raise ValueError("null is only allowed in assignments")
    if literal.kind is LiteralKind.INTEGER:
        assert isinstance(literal.value, int)
        return ScalarType.I64 if literal.value <= _LIMIT_I64 else ScalarType.U64
    return _SCALARS[literal.kind]


def _scalar_value(literal: Literal) -> str | int | float | bool:
    if literal.kind is LiteralKind.DATE:
        return date_days(str(literal.value))
    if literal.kind is LiteralKind.DATETIME:
        return datetime_ms(str(literal.value))
    return _present(literal.value)


def _present(value: Stored) -> str | int | float | bool:
    assert isinstance(value, str | int | float | bool)
    return value


def _spelt(scalar: ScalarType) -> ScalarType:
    return ScalarType.STRING if scalar is ScalarType.BLOB else scalar


def _core(type_: PropertyType) -> str:
    return str(type_).removesuffix("?")


def _given(literal: Literal | ListLiteral) -> str:
    return f"got {'list' if isinstance(literal, ListLiteral) else literal.kind.value}"
