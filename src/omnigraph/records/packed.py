"""Values in a form in which equal means the same stored value, for SQL and for Python alike.

Two values are equal iff a reader could not tell them apart: NULL is not the empty text, lists are equal item by item,
0.0 and -0.0 differ (an export writes them differently), and every NaN is the one NaN.

Floats, days and moments become the integers that store them, vectors the bytes of their numbers: DuckDB would take the
two zeros for equal and has no moments beyond its own calendar. `unpacked` undoes `packed`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_INTEGERS = {pa.float32(): pa.int32(), pa.float64(): pa.int64(), pa.date32(): pa.int32()}


def packed_type(type_: pa.DataType) -> pa.DataType:
    if type_ in _INTEGERS:
        return _INTEGERS[type_]
    if pa.types.is_timestamp(type_):
        return pa.int64()
    if pa.types.is_fixed_size_list(type_) or pa.types.is_large_binary(type_):
        return pa.binary()
    if pa.types.is_list(type_):
        return pa.list_(packed_type(type_.value_type))
    return type_


def packed_name(place: int) -> str:
    """What a column is called in a struct: neither DuckDB nor Spark tells upper from lower case in names."""
    return f"c{place}"


def packed_struct(fields: pa.Schema) -> pa.StructType:
    """The columns in the order of `fields`."""
    return pa.struct([pa.field(packed_name(place), packed_type(field.type)) for place, field in enumerate(fields)])


def packed_rows(batch: pa.RecordBatch, fields: pa.Schema) -> pa.StructArray:
    """The rows of a batch as structs; a column it has not is null in all of them."""
    kind, columns = packed_struct(fields), []
    for field in fields:
        if field.name in batch.schema.names:
            column = batch.column(field.name)
            columns.append(packed(column if column.type == field.type else column.cast(field.type)))
        else:
            columns.append(pa.nulls(batch.num_rows, packed_type(field.type)))
    return pa.StructArray.from_arrays(columns, fields=_fields(kind))


def unpacked_rows(rows: pa.StructArray, fields: pa.Schema) -> pa.RecordBatch:
    """The columns of the structs as they are stored; a struct that is null gives a row of nulls."""
    columns = [unpacked(column, field.type) for column, field in zip(rows.flatten(), fields, strict=True)]
    nullable = pa.schema([field.with_nullable(True) for field in fields])
    return pa.RecordBatch.from_arrays(columns, schema=nullable)


def packed(column: pa.Array) -> pa.Array:
    type_ = column.type
    if pa.types.is_floating(type_):
        return _one_nan(column).view(_INTEGERS[type_])
    if type_ in _INTEGERS or pa.types.is_timestamp(type_):
        return column.view(packed_type(type_))
    if pa.types.is_fixed_size_list(type_):
        return _vector_bytes(column)
    if pa.types.is_large_binary(type_):
        return column.cast(pa.binary())
    if pa.types.is_list(type_):
        return _with_items(column, packed(column.values), packed_type(type_))
    return column


def unpacked(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if type_ in _INTEGERS or pa.types.is_timestamp(type_):
        return column.view(type_)
    if pa.types.is_fixed_size_list(type_):
        return _vectors(column, type_)
    if pa.types.is_list(type_):
        return _with_items(column, unpacked(column.values, type_.value_type), type_)
    return column.cast(type_)


def _fields(kind: pa.StructType) -> list[pa.Field]:
    return [kind.field(i) for i in range(kind.num_fields)]


def _one_nan(column: pa.Array) -> pa.Array:
    numbers = column.to_numpy(zero_copy_only=False)
    strange = np.isnan(numbers)
    if strange.sum() == column.null_count:
        return column
    whole = np.where(strange, np.asarray(np.nan, numbers.dtype), numbers)
    return pa.array(whole, column.type, mask=column.is_null().to_numpy(zero_copy_only=False))


def _vector_bytes(column: pa.Array) -> pa.Array:
    width, missing = column.type.list_size * 4, column.is_null()
    full = column.fill_null(pa.scalar([0.0] * column.type.list_size, column.type)) if column.null_count else column
    numbers = _one_nan(full.flatten().cast(pa.float32())).to_numpy(zero_copy_only=False)
    ends = np.arange(len(column) + 1, dtype=np.int32) * width
    data = pa.py_buffer(np.ascontiguousarray(numbers))
    made = pa.Array.from_buffers(pa.binary(), len(column), [None, pa.py_buffer(ends), data])
    return _masked(made, missing)


def _vectors(column: pa.Array, type_: pa.DataType) -> pa.Array:
    missing = column.is_null()
    full = column.fill_null(b"\x00" * (type_.list_size * 4)) if column.null_count else column
    data = b"".join(value.as_py() for value in full)
    numbers = pa.array(np.frombuffer(data, np.float32), type_.value_type)
    return pa.FixedSizeListArray.from_arrays(numbers, type=type_, mask=missing)


def _masked(column: pa.Array, missing: pa.Array) -> pa.Array:
    return pc.if_else(missing, pa.scalar(None, column.type), column) if missing.true_count else column


def _with_items(column: pa.Array, items: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same lists with other items."""
    buffers: list[Any] = column.buffers()[:2]
    return pa.Array.from_buffers(
        type_, len(column), buffers, null_count=column.null_count, offset=column.offset, children=[items]
    )
