"""Gives rows from Spark the exact Arrow types of their table; a value that would change is refused.

Spark has no unsigned integers, no fixed-size lists and no milliseconds, so each arrives as its wider cousin:
signed or decimal numbers, lists, microseconds.
"""

from __future__ import annotations

import pyarrow as pa

from omnigraph.base.errors import BadRequest
from omnigraph.records.fit import Unfit, fit

_HINT = "Nothing was committed. Cast or clean the column in the mapping and run again."


def conform(batch: pa.RecordBatch, schema: pa.Schema, table_key: str) -> pa.RecordBatch:
    """The same rows in exactly `schema`; an absent nullable column is null, an unknown one is refused."""
    unknown = [name for name in batch.schema.names if name not in schema.names]
    if unknown:
        raise BadRequest(f"{table_key} has no property {unknown[0]!r}", _HINT)
    columns = [_column(batch, field, table_key) for field in schema]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(batch: pa.RecordBatch, field: pa.Field, table_key: str) -> pa.Array:
    place = batch.schema.get_field_index(field.name)
    if place < 0:
        column = pa.nulls(batch.num_rows, field.type)
    else:
        try:
            column = fit(batch.column(place), field.type)
        except (Unfit, pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise BadRequest(f"{table_key}.{field.name}: {error}", _HINT) from error
    if not field.nullable and column.null_count:
        raise BadRequest(f"{table_key}: non-nullable property '{field.name}' has null or missing value", _HINT)
    return column
