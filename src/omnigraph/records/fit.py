"""Columns of any origin in the exact Arrow type of a property; a value that would change is refused.

Spark has no unsigned integers, no fixed-size lists and no milliseconds, so each arrives as its wider cousin:
signed or decimal numbers, lists, microseconds.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


class Unfit(ValueError):
    """A column cannot take the type; the text says why."""


def fit(array: pa.Array, to: pa.DataType) -> pa.Array:
    """The array as `to`, value for value."""
    if pa.types.is_null(array.type):
        return pa.nulls(len(array), to)
    if pa.types.is_fixed_size_list(to):
        return _fit_vector(array, to)
    if pa.types.is_list(to):
        return _fit_list(array, to)
    if array.type == to:
        return array
    if not _may_become(array.type, to):
        raise Unfit(f"a column of type {array.type} cannot be stored as {to}")
    if pa.types.is_float32(to):
        return _fit_float32(array)
    return array.cast(to, safe=True)


def _may_become(given: pa.DataType, to: pa.DataType) -> bool:
    """Whether some values of the given type are values of the other, so that only the values can be at fault."""
    types = pa.types
    whole = types.is_integer(given) or types.is_decimal(given)
    number = whole or types.is_floating(given)
    text = types.is_string(given) or types.is_large_string(given)
    octets = types.is_binary(given) or types.is_large_binary(given)
    answers = (
        types.is_integer(to) and whole,
        types.is_floating(to) and number,
        (types.is_string(to) or types.is_large_string(to)) and text,
        (types.is_binary(to) or types.is_large_binary(to)) and octets,
        types.is_timestamp(to) and types.is_timestamp(given),
    )
    return any(answers)


def _fit_float32(array: pa.Array) -> pa.Array:
    wide = array.cast(pa.float64(), safe=True)
    narrow = wide.cast(pa.float32(), safe=False)
    overflowed = pc.and_(pc.is_finite(wide), pc.invert(pc.is_finite(narrow)))
    if pc.any(overflowed).as_py():
        raise Unfit("a value exceeds F32 range")
    return narrow


def _elements(array: pa.Array, element: pa.DataType, to: pa.DataType) -> pa.Array:
    """The elements of all non-null lists, end to end, as the new element type."""
    if not (
        pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type)
    ):
        raise Unfit(f"a column of type {array.type} cannot be stored as {to}")
    flat = array.flatten()
    if flat.null_count:
        raise Unfit("a list has a null element")
    return fit(flat, element)


def _fit_list(array: pa.Array, to: pa.DataType) -> pa.Array:
    flat = _elements(array, to.value_type, to)
    lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False)
    offsets = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64)))
    mask = array.is_null() if array.null_count else None
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), flat, type=to, mask=mask)


def _fit_vector(array: pa.Array, to: pa.DataType) -> pa.Array:
    # Not `cast`: pyarrow crashes on an all-null chunk that was read from a stream.
    flat = _elements(array, to.value_type, to)
    lengths = pc.list_value_length(array.drop_null())
    wrong = pc.filter(lengths, pc.not_equal(lengths, to.list_size))
    if len(wrong):
        raise Unfit(f"expects {to.list_size} dimensions, got {wrong[0]}")
    dense = pa.FixedSizeListArray.from_arrays(flat, type=to)
    if not array.null_count:
        return dense
    valid = array.is_valid().to_numpy(zero_copy_only=False)
    return dense.take(pa.array(np.cumsum(valid) - 1, pa.int64(), mask=~valid))
