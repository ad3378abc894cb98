"""Packed rows in types that Spark has, and back: equal here is equal there, and what returns is what was sent.

Spark has no unsigned numbers: 32 bits are widened, 64 bits are sent as the signed number of the same bits.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from omnigraph.records.packed import packed_rows, packed_struct


def shipped_struct(fields: pa.Schema) -> pa.StructType:
    return pa.struct([pa.field(field.name, _shipped_type(field.type)) for field in packed_struct(fields)])


def shipped_rows(batch: pa.RecordBatch, fields: pa.Schema) -> pa.StructArray:
    """The rows of a table as structs for Spark."""
    columns = [_shipped(column) for column in packed_rows(batch, fields).flatten()]
    return pa.StructArray.from_arrays(columns, fields=list(shipped_struct(fields)))


def landed_rows(rows: pa.StructArray, fields: pa.Schema) -> pa.StructArray:
    """What Spark gave back, packed; a struct that is null stays null."""
    packed = packed_struct(fields)
    columns = [_landed(column, field.type) for column, field in zip(rows.flatten(), packed, strict=True)]
    return pa.StructArray.from_arrays(columns, fields=list(packed), mask=rows.is_null())


def _shipped_type(type_: pa.DataType) -> pa.DataType:
    if pa.types.is_unsigned_integer(type_):
        return pa.int64()
    return pa.list_(_shipped_type(type_.value_type)) if pa.types.is_list(type_) else type_


def _shipped(column: pa.Array) -> pa.Array:
    if pa.types.is_uint64(column.type):
        return column.view(pa.int64())
    if pa.types.is_list(column.type):
        return _with_items(column, _shipped(column.values), _shipped_type(column.type))
    return column.cast(_shipped_type(column.type))


def _landed(column: pa.Array, type_: pa.DataType) -> pa.Array:
    # Spark may name the items of lists otherwise, and hold texts with wide offsets.
    column = column.cast(_shipped_type(type_))
    if pa.types.is_uint64(type_):
        return column.view(type_)
    if pa.types.is_list(type_):
        return _with_items(column, _landed(column.values, type_.value_type), type_)
    return column.cast(type_)


def _with_items(column: pa.Array, items: pa.Array, type_: pa.DataType) -> pa.Array:
    """The same lists with other items."""
    buffers: list[Any] = column.buffers()[:2]
    return pa.Array.from_buffers(
        type_, len(column), buffers, null_count=column.null_count, offset=column.offset, children=[items]
    )
