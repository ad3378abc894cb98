"""The ids of entities: derived from the key, or fresh.

Holds for every id:
  1. Equal key values have equal texts, whichever engine or statement derived them; different ones have different texts.
  2. A fresh id is a ULID of the present moment.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import reduce
from typing import Any

import numpy as np
import orjson
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.base.clock import now_us
from omnigraph.catalog.catalog import NodeType, Property
from omnigraph.catalog.types import FLOATS, ScalarType

_BASE32 = np.frombuffer(b"0123456789ABCDEFGHJKMNPQRSTVWXYZ", np.uint8)
_ULID_CHARS = 26
_TIME_CHARS = 10
_RANDOM_BYTES = 10
# What JSON writes with a backslash.
_ESCAPED = '["\\\\\\x00-\\x1f]'


def key_texts(table: NodeType, columns: Mapping[str, pa.Array]) -> pa.Array:
    """The id of every row of a keyed type; null where a member is null or not finite."""
    members = table.key_properties
    if len(members) == 1:
        return member_text(members[0], columns[members[0].name])
    quoted = [_quoted(member, columns[member.name]) for member in members]
    joined = reduce(lambda left, right: pc.binary_join_element_wise(left, right, ","), quoted)
    return pc.binary_join_element_wise("[", joined, "]", "")


def member_text(member: Property, column: pa.Array) -> pa.Array:
    """The canonical text of one key member."""
    scalar = member.type.scalar
    if scalar is ScalarType.STRING:
        return column
    if scalar is ScalarType.DATE:
        return column.cast(pa.int32()).cast(pa.string())
    if scalar is ScalarType.DATETIME:
        return column.cast(pa.int64()).cast(pa.string())
    if scalar in FLOATS:
        values = column.to_numpy(zero_copy_only=False)
        return pa.array([_decimal(value) for value in values], pa.string())
    return column.cast(pa.string())


def _decimal(value: np.floating[Any]) -> str | None:
    """The fewest digits that give the number back, without an exponent; both zeros are one value and one id."""
    if not np.isfinite(value):
        return None
    return "0" if value == 0 else np.format_float_positional(value, unique=True, trim="-")


def _quoted(member: Property, column: pa.Array) -> pa.Array:
    text = member_text(member, column)
    plain = pc.binary_join_element_wise('"', text, '"', "")
    if member.type.scalar is not ScalarType.STRING or not pc.any(pc.match_substring_regex(text, _ESCAPED)).as_py():
        return plain
    return pa.array([None if one is None else orjson.dumps(one).decode() for one in text.to_pylist()], pa.string())


def fresh_ids(count: int) -> pa.Array:
    """ULIDs, many at once."""
    if count == 0:
        return pa.array([], pa.string())
    characters = np.empty((count, _ULID_CHARS), np.uint8)
    ms = now_us() // 1000
    characters[:, :_TIME_CHARS] = [(ms >> (5 * place)) & 31 for place in reversed(range(_TIME_CHARS))]
    random = np.frombuffer(os.urandom(count * _RANDOM_BYTES), np.uint8).reshape(count, 2, 5)
    for half in (0, 1):
        characters[:, _TIME_CHARS + 8 * half : _TIME_CHARS + 8 * half + 8] = _groups_of_five(random[:, half])
    text = _BASE32[characters].tobytes()
    offsets = np.arange(0, (count + 1) * _ULID_CHARS, _ULID_CHARS, dtype=np.int32)
    return pa.StringArray.from_buffers(count, pa.py_buffer(offsets), pa.py_buffer(text))


def _groups_of_five(forty_bits: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Eight numbers of five bits each from five bytes."""
    whole = np.zeros(len(forty_bits), np.uint64)
    for byte in range(5):
        whole = (whole << np.uint64(8)) | forty_bits[:, byte]
    shifts = np.arange(35, -1, -5, dtype=np.uint64)
    return (whole[:, None] >> shifts) & np.uint64(31)
