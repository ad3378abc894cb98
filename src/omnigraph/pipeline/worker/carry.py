"""Values on their way through Spark, which has no unsigned integers and fewer dates than we have.

Spark only compares them for equality, so each travels as a type with the same bits and comes back as what it was.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import InternalError

_DDL = {
    pa.string(): "string",
    pa.bool_(): "boolean",
    pa.int8(): "tinyint",
    pa.int32(): "int",
    pa.int64(): "bigint",
    pa.float32(): "float",
    pa.float64(): "double",
    pa.binary(): "binary",
}


def carrier(type_: pa.DataType) -> pa.DataType:
    """The type a value of `type_` travels as."""
    if type_ == pa.uint32() or type_ == pa.uint64() or pa.types.is_timestamp(type_):
        return pa.int64()
    if type_ == pa.date32():
        return pa.int32()
    if type_ not in _DDL:
        raise InternalError(f"a column of type {type_} cannot be compared on Spark")
    return type_


def columns_ddl(schema: pa.Schema) -> str:
    """The columns in Spark's words."""
    return ", ".join(f"`{field.name}` {_DDL[carrier(field.type)]}" for field in schema)


def pack(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The rows as they travel."""
    columns = [_packed(column) for column in batch.columns]
    return pa.RecordBatch.from_arrays(columns, names=batch.schema.names)


def _packed(column: pa.Array) -> pa.Array:
    to = carrier(column.type)
    if column.type == to:
        return column
    return column.view(to) if column.type == pa.uint64() else column.cast(to)


def unpack(columns: Sequence[pa.Array], schema: pa.Schema) -> pa.RecordBatch:
    """The rows as they were."""
    return pa.RecordBatch.from_arrays(
        [_unpacked(column, field.type) for column, field in zip(columns, schema, strict=True)], schema=schema
    )


def _unpacked(column: pa.Array, type_: pa.DataType) -> pa.Array:
    if column.type == type_:
        return column
    if type_ == pa.uint64():
        whole = pa.concat_arrays([column])
        return whole.view(type_)
    return column.cast(type_)


def as_unsigned(column: pa.Array) -> np.ndarray[tuple[int], np.dtype[np.uint64]]:
    """Row ids and row addresses, which travel as signed numbers of the same bits."""
    return np.asarray(column.to_numpy(zero_copy_only=False), np.int64).view(np.uint64)
