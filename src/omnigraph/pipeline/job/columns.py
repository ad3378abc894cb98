"""Which Spark columns may become which properties. Decided on types alone, before any row is read.

A type passes if the load's own rules can decide about its values; a type whose values would have to be changed to fit
(texts for numbers, fractions for integers, times for dates) is refused, and the refusal says which cast to write.
"""

from __future__ import annotations

from pyspark.sql import types as st

from omnigraph.catalog.catalog import NodeType
from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, PropertyType, ScalarType

_INTEGERS = (st.ByteType, st.ShortType, st.IntegerType, st.LongType)
_FRACTIONS = (st.FloatType, st.DoubleType, st.DecimalType)
_TEXTS = (st.StringType, st.CharType, st.VarcharType)
_CASTS = {
    ScalarType.STRING: "string",
    ScalarType.BOOL: "boolean",
    ScalarType.I32: "int",
    ScalarType.I64: "bigint",
    ScalarType.U32: "bigint",
    ScalarType.U64: "decimal(20,0)",
    ScalarType.F32: "float",
    ScalarType.F64: "double",
    ScalarType.DATE: "date",
    ScalarType.DATETIME: "timestamp",
    ScalarType.BLOB: "binary",
}


def may_hold(given: st.DataType, wanted: PropertyType) -> bool:
    """Whether a column of the given type can be loaded as the property."""
    if isinstance(given, st.NullType):
        return wanted.nullable
    if wanted.is_vector:
        return isinstance(given, st.ArrayType) and isinstance(given.elementType, (*_INTEGERS, *_FRACTIONS))
    if wanted.is_list:
        return isinstance(given, st.ArrayType) and _may_hold_one(given.elementType, wanted.scalar)
    return _may_hold_one(given, wanted.scalar)


def _may_hold_one(given: st.DataType, scalar: ScalarType) -> bool:
    if scalar in INTEGER_RANGES:
        return isinstance(given, _INTEGERS) or (isinstance(given, st.DecimalType) and given.scale == 0)
    if scalar in FLOATS:
        return isinstance(given, (*_INTEGERS, *_FRACTIONS))
    match scalar:
        case ScalarType.BOOL:
            return isinstance(given, st.BooleanType)
        case ScalarType.DATE:
            return isinstance(given, (st.DateType, *_TEXTS, *_INTEGERS))
        case ScalarType.DATETIME:
            times = (st.TimestampType, st.TimestampNTZType, st.DateType)
            return isinstance(given, (*times, *_TEXTS, *_INTEGERS))
        case ScalarType.BLOB:
            return isinstance(given, (st.BinaryType, *_TEXTS))
        case _:
            return isinstance(given, _TEXTS)


def is_text(given: st.DataType) -> bool:
    return isinstance(given, (*_TEXTS, st.NullType))


def may_point_at(given: st.DataType, node: NodeType | None) -> bool:
    """Whether one column can be the id of an edge's end: a text, or a value of the one key property."""
    key = node.key_properties if node is not None else ()
    return is_text(given) or (len(key) == 1 and may_hold(given, key[0].type))


def cast_hint(expression: str, wanted: PropertyType) -> str:
    """How to say that the change is meant."""
    if wanted.is_vector:
        return f"cast({expression} as array<float>)"
    cast = _CASTS[wanted.scalar]
    return f"cast({expression} as {f'array<{cast}>' if wanted.is_list else cast})"
