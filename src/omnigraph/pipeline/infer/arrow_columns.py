"""Columns that come with a type, as Parquet gives them: which property type holds what they hold."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.errors import BadRequest
from omnigraph.catalog.types import ScalarType
from omnigraph.pipeline.infer.profile import SAMPLE_VALUES_MAX, TO_JSON, ColumnProfile, narrowest_whole
from omnigraph.pipeline.infer.texts import TextColumn

_EXACT_PRECISION = 15


def column_of(name: str, position: int, type_: pa.DataType) -> TextColumn | ArrowColumn:
    plain = plain_type(type_)
    return TextColumn(name, position, typed=True) if pa.types.is_string(plain) else ArrowColumn(name, position, plain)


def plain_type(type_: pa.DataType) -> pa.DataType:
    """Without dictionaries and large offsets, which say nothing about the values."""
    types = pa.types
    if types.is_dictionary(type_):
        return plain_type(type_.value_type)
    return pa.string() if types.is_large_string(type_) or types.is_string_view(type_) else type_


def refuse_unreadable(file: str, schema: pa.Schema) -> None:
    """Types that Spark cannot read make the whole file unreadable for it."""
    for field in schema:
        why = _unreadable(field.type)
        if why:
            raise BadRequest(
                f"column '{field.name}' of '{file}' holds {why}, which Spark does not read",
                "Write the file again without that column, or with times in microseconds and decimals up to 38 digits.",
            )


def _unreadable(type_: pa.DataType) -> str:
    types = pa.types
    if types.is_nested(type_):
        return next((why for k in range(type_.num_fields) if (why := _unreadable(type_.field(k).type))), "")
    if types.is_timestamp(type_) and type_.unit == "ns":
        return "times in nanoseconds"
    if types.is_time(type_):
        return "times of day"
    if types.is_float16(type_):
        return "16-bit floats"
    return f"decimals of {type_.precision} digits" if types.is_decimal(type_) and type_.precision > 38 else ""


class ArrowColumn:
    has_newline = False

    def __init__(self, name: str, position: int, type_: pa.DataType) -> None:
        self._name, self._position, self._type = name, position, type_
        self.rows = self.nulls = 0
        self._low: int | None = None
        self._high: int | None = None
        self._has_fine_times = self._has_null_elements = False
        self._sample: dict[str, None] = {}
        self._is_unique = True

    def add(self, given: pa.Array) -> None:
        self.rows += len(given)
        self.nulls += given.null_count
        values, types = given.drop_null(), pa.types
        if not len(values):
            return
        if self._is_whole(self._type):
            self._note_range(values)
        elif types.is_timestamp(self._type):
            self._has_fine_times = self._has_fine_times or not _whole_ms(values)
            self._note_unique(values)
        elif types.is_date(self._type):
            self._note_unique(values)
        elif types.is_list(self._type) or types.is_large_list(self._type) or types.is_fixed_size_list(self._type):
            elements = values.flatten()
            self._has_null_elements = self._has_null_elements or elements.null_count > 0
            if types.is_timestamp(elements.type):
                self._has_fine_times = self._has_fine_times or not _whole_ms(elements.drop_null())
            elif self._is_whole(elements.type) and elements.null_count < len(elements):
                self._widen(elements)

    @staticmethod
    def _is_whole(type_: pa.DataType) -> bool:
        return bool(pa.types.is_integer(type_) or (pa.types.is_decimal(type_) and type_.scale == 0))

    def _note_range(self, values: pa.Array) -> None:
        self._widen(values)
        different = self._note_unique(values)
        for value in different[:SAMPLE_VALUES_MAX].to_pylist():
            if len(self._sample) < SAMPLE_VALUES_MAX:
                self._sample[str(int(value))] = None

    def _widen(self, values: pa.Array) -> None:
        found: dict[str, Any] = pc.min_max(values).as_py()
        low, high = int(found["min"]), int(found["max"])
        self._low = low if self._low is None else min(low, self._low)
        self._high = high if self._high is None else max(high, self._high)

    def _note_unique(self, values: pa.Array) -> pa.Array:
        different = pc.unique(values)
        self._is_unique = self._is_unique and len(different) == len(values)
        return different

    def profile(self) -> ColumnProfile:
        scalar, cast, note, is_list, left_out = self._decided()
        is_key_like = self._is_whole(self._type) or pa.types.is_date(self._type) or pa.types.is_timestamp(self._type)
        return ColumnProfile(
            self._name,
            self._position,
            scalar,
            self.rows,
            self.nulls,
            is_list,
            cast,
            sample=tuple(self._sample),
            low=self._low,
            high=self._high,
            may_be_unique=self._is_unique and is_key_like and cast is None,
            note=note,
            left_out=left_out,
        )

    def _decided(self) -> tuple[ScalarType, str | None, str, bool, str]:
        types, type_ = pa.types, self._type
        if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
            element = self._scalar(plain_type(type_.value_type))
            if element is not None and element is not ScalarType.BLOB and not self._has_null_elements:
                return element, None, "", True, ""
            why = "lists with nulls, kept as JSON text" if element is not None else "nested values, kept as JSON text"
            return ScalarType.STRING, TO_JSON, why, False, ""
        if types.is_nested(type_):
            return ScalarType.STRING, TO_JSON, "nested values, kept as JSON text", False, ""
        if types.is_null(type_):
            return ScalarType.STRING, "string", "no value at all", False, ""
        scalar = self._scalar(type_)
        if scalar is not None:
            return scalar, None, "", False, ""
        if types.is_timestamp(type_):
            note = (
                "times finer than a millisecond, which DateTime does not hold; date_trunc('millisecond', …) cuts them"
            )
            return ScalarType.STRING, "string", note, False, ""
        if types.is_decimal(type_):
            return ScalarType.STRING, "string", f"{type_}, more digits than a number keeps", False, ""
        return ScalarType.STRING, None, "", False, f"no property type holds {type_}"

    def _scalar(self, type_: pa.DataType) -> ScalarType | None:
        types = pa.types
        if self._is_whole(type_):
            return narrowest_whole(self._low or 0, self._high or 0)
        if types.is_timestamp(type_):
            return None if self._has_fine_times else ScalarType.DATETIME
        if types.is_decimal(type_):
            return ScalarType.F64 if type_.precision <= _EXACT_PRECISION else None
        if types.is_binary(type_) or types.is_large_binary(type_):
            return ScalarType.BLOB
        if types.is_float32(type_) or types.is_float64(type_):
            return ScalarType.F32 if types.is_float32(type_) else ScalarType.F64
        if types.is_boolean(type_):
            return ScalarType.BOOL
        if types.is_string(type_):
            return ScalarType.STRING
        return ScalarType.DATE if types.is_date32(type_) else None


def _whole_ms(values: pa.Array) -> bool:
    try:
        values.cast(pa.timestamp("ms", values.type.tz), safe=True)
    except pa.ArrowInvalid:
        return False
    return True
