"""Reads one partition of a graph type on an executor and gives its rows the Arrow types that Spark takes.

Spark has no unsigned integers, no fixed-size lists and no milliseconds; every value that leaves here is equal to the
stored one, and one that Spark cannot hold is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.errors import BadRequest
from omnigraph.pipeline.told import told_to_spark
from omnigraph.pipeline.worker.settle import settle
from omnigraph.storage.scans import Part, scan_part
from omnigraph.storage.shapes import Shape

# Microseconds in 64 bits end here, in both directions.
_MOMENT_MS_MAX = (2**63 - 1) // 1000


@dataclass(frozen=True)
class ReadTarget:
    """A table at one version, the columns in the types of Spark, and which rows; the same for every partition."""

    table_key: str
    dataset_uri: str
    version: int
    schema: pa.Schema
    where: str | None = None
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    shape: Shape | None = None


def read_parts(
    batches: Iterator[pa.RecordBatch], target: ReadTarget, parts: Sequence[Part], stride: int
) -> Iterator[pa.RecordBatch]:
    """The rows of the parts whose numbers, times `stride`, are among the rows. For `DataFrame.mapInArrow`."""
    with told_to_spark():
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from read_part(target, parts[number // stride])


def read_part(target: ReadTarget, part: Part) -> Iterator[pa.RecordBatch]:
    """The rows of one partition."""
    options = target.storage_options
    names = target.schema.names
    for batch in scan_part(target.dataset_uri, target.version, part, names, target.where, options, target.shape):
        if batch.num_rows:
            columns = [_column(batch.column(wanted.name), wanted, target.table_key) for wanted in target.schema]
            yield pa.RecordBatch.from_arrays(columns, schema=target.schema)
    settle()


def _column(stored: pa.Array, wanted: pa.Field, table_key: str) -> pa.Array:
    try:
        return as_spark(stored, wanted.type)
    except pa.ArrowInvalid as error:
        raise BadRequest(
            f"{table_key}.{wanted.name} holds a value that Spark cannot: {error}",
            "Leave the column out with the option 'columns', or the rows with the option 'filter'.",
        ) from error


def as_spark(stored: pa.Array, wanted: pa.DataType) -> pa.Array:
    """The same values as `wanted`."""
    if stored.type == wanted:
        return stored
    if pa.types.is_fixed_size_list(stored.type):
        return _vectors(stored, wanted)
    if pa.types.is_list(stored.type):
        return _lists(stored, wanted)
    if pa.types.is_timestamp(stored.type):
        return _moments(stored, wanted)
    return stored.cast(wanted, safe=True)


def _moments(stored: pa.Array, wanted: pa.DataType) -> pa.Array:
    try:
        return stored.cast(wanted, safe=True)
    except pa.ArrowInvalid:
        ms = stored.cast(pa.int64())
        beyond = pc.or_(pc.greater(ms, _MOMENT_MS_MAX), pc.less(ms, -_MOMENT_MS_MAX))
        first = ms.filter(beyond)[0].as_py()
        raise pa.ArrowInvalid(
            f"{first} ms since 1970 is beyond the years -290308 to 294247 of Spark's timestamps"
        ) from None


def _vectors(stored: pa.Array, wanted: pa.DataType) -> pa.Array:
    size = stored.type.list_size
    # Only the elements of non-null vectors, end to end.
    elements = as_spark(stored.flatten(), wanted.value_type)
    if not stored.null_count:
        offsets = np.arange(0, (len(stored) + 1) * size, size, dtype=np.int32) if size else None
        return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, type=wanted)
    valid = stored.is_valid().to_numpy(zero_copy_only=False)
    return _from_lengths(valid * size, elements, wanted, ~valid)


def _lists(stored: pa.Array, wanted: pa.DataType) -> pa.Array:
    elements = as_spark(stored.flatten(), wanted.value_type)
    lengths = pc.fill_null(pc.list_value_length(stored), 0).to_numpy(zero_copy_only=False)
    absent = stored.is_null().to_numpy(zero_copy_only=False) if stored.null_count else None
    return _from_lengths(lengths, elements, wanted, absent)


def _from_lengths(
    lengths: np.ndarray[tuple[int], np.dtype[np.int64]],
    elements: pa.Array,
    wanted: pa.DataType,
    absent: np.ndarray[tuple[int], np.dtype[np.bool_]] | None,
) -> pa.Array:
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    mask = None if absent is None else pa.array(absent)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), elements, type=wanted, mask=mask)
