"""Parquet and ORC objects in an S3-compatible store, read by executors with pyarrow.

Types become those that Spark's own readers give: unsigned integers the next wider type, times microseconds. A value
that does not survive this is an error, never rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Literal

import pyarrow as pa
import pyarrow.orc as orc
import pyarrow.parquet as pq

from omnigraph.base.errors import BadRequest
from omnigraph.storage.s3 import S3Access
from omnigraph.storage.s3_files import S3File

Format = Literal["parquet", "orc"]
PART_COLUMNS = "__file string, part bigint, first_row bigint"
_BATCH_ROWS = 8_192


def file_schema(uri: str, format_: Format, access: S3Access) -> pa.Schema:
    """The columns of an object in types that Spark has."""
    stored = _open_parquet(uri, access).schema_arrow if format_ == "parquet" else _open_orc(uri, access).schema
    return pa.schema([pa.field(f.name, _spark_arrow(f.type, f.name, format_), f.nullable) for f in stored])


def list_parts(batches: Iterator[pa.RecordBatch], format_: Format, access: S3Access) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: the row groups of every object named; an ORC object is one part."""
    schema = pa.schema([("__file", pa.string()), ("part", pa.int64()), ("first_row", pa.int64())])
    for batch in batches:
        for uri in batch.column(0).to_pylist():
            firsts = [1]
            if format_ == "parquet":
                metadata = _open_parquet(uri, access).metadata
                counts = [metadata.row_group(i).num_rows for i in range(metadata.num_row_groups)]
                firsts = [1 + sum(counts[:i]) for i in range(len(counts))]
            yield pa.record_batch([[uri] * len(firsts), list(range(len(firsts))), firsts], schema=schema)


def read_parts(
    batches: Iterator[pa.RecordBatch], format_: Format, access: S3Access, schema: pa.Schema
) -> Iterator[pa.RecordBatch]:
    """For mapInArrow: the rows of each part in exactly `schema`, after `__file` and `__row`."""
    for batch in batches:
        for part in batch.to_pylist():
            row = part["first_row"]
            for rows in _batches(part["__file"], part["part"], format_, access, schema):
                count = rows.num_rows
                places = [
                    pa.array([part["__file"]] * count, pa.string()),
                    pa.array(range(row, row + count), pa.int64()),
                ]
                yield pa.RecordBatch.from_arrays([*places, *rows.columns], names=["__file", "__row", *schema.names])
                row += count


def _batches(uri: str, part: int, format_: Format, access: S3Access, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    if format_ == "parquet":
        parquet = _open_parquet(uri, access)
        present = [name for name in schema.names if name in parquet.schema_arrow.names]
        for batch in parquet.iter_batches(_BATCH_ROWS, row_groups=[part], columns=present):
            yield _conformed(batch, schema, uri)
        return
    stored = _open_orc(uri, access)
    present = [name for name in schema.names if name in stored.schema.names]
    for stripe in range(stored.nstripes):
        table = pa.Table.from_batches([stored.read_stripe(stripe, columns=present)])
        for batch in table.to_batches(_BATCH_ROWS):
            yield _conformed(batch, schema, uri)


def _conformed(batch: pa.RecordBatch, schema: pa.Schema, uri: str) -> pa.RecordBatch:
    columns = []
    for field in schema:
        if field.name not in batch.schema.names:
            columns.append(pa.nulls(batch.num_rows, field.type))
            continue
        column = batch.column(field.name)
        try:
            columns.append(column if column.type == field.type else column.cast(field.type, safe=True))
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise ValueError(f"{uri}: column '{field.name}' does not fit {field.type}: {error}") from error
    return pa.RecordBatch.from_arrays(columns, names=schema.names)


def _spark_arrow(type_: pa.DataType, name: str, format_: Format) -> pa.DataType:
    types = pa.types
    if types.is_dictionary(type_):
        return _spark_arrow(type_.value_type, name, format_)
    if types.is_timestamp(type_):
        # ORC keeps no zone; Spark takes such a time in its own zone, which is UTC.
        return pa.timestamp("us", tz="UTC" if type_.tz or format_ == "orc" else None)
    if types.is_list(type_) or types.is_large_list(type_) or types.is_fixed_size_list(type_):
        return pa.list_(_spark_arrow(type_.value_type, name, format_))
    if types.is_struct(type_):
        return pa.struct([pa.field(f.name, _spark_arrow(f.type, name, format_), f.nullable) for f in type_])
    if types.is_map(type_):
        return pa.map_(_spark_arrow(type_.key_type, name, format_), _spark_arrow(type_.item_type, name, format_))
    if type_ in _AS_IN_SPARK:
        return _AS_IN_SPARK[type_]
    if types.is_fixed_size_binary(type_):
        return pa.binary()
    if type_ in _IN_SPARK or (types.is_decimal128(type_) and type_.precision <= 38):
        return type_
    raise BadRequest(
        f"column '{name}' has type {type_}, which Spark has not", "Leave the column out when the file is written."
    )


_IN_SPARK = frozenset(
    {
        *(pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.float32(), pa.float64()),
        *(pa.string(), pa.binary(), pa.bool_(), pa.date32()),
    }
)
_AS_IN_SPARK = {
    pa.uint8(): pa.int16(),
    pa.uint16(): pa.int32(),
    pa.uint32(): pa.int64(),
    pa.uint64(): pa.decimal128(20, 0),
    pa.large_string(): pa.string(),
    pa.large_binary(): pa.binary(),
    pa.date64(): pa.date32(),
}


def _open_parquet(uri: str, access: S3Access) -> Any:
    return pq.ParquetFile(pa.PythonFile(S3File(uri, access).open(), mode="r"))


def _open_orc(uri: str, access: S3Access) -> Any:
    return orc.ORCFile(pa.PythonFile(S3File(uri, access).open(), mode="r"))
