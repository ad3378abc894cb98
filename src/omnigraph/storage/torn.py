"""Whether the file of a table version is whole. A power cut may leave one that is empty, cut short or full of zeros.

Only a file whose own bytes say so is torn. That a version cannot be opened proves nothing: a store that does not
answer, or a process without file handles, cannot open whole versions either, and those must never be passed over.
"""

from __future__ import annotations

import struct

FOOTER = struct.Struct("<QHH4s")
LENGTH = struct.Struct("<I")
MAGIC = b"LANC"
_VERSION_FIELD = 3
_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5


def is_whole(data: bytes, version: int) -> bool:
    """Whether `data` ends as Lance ends a version file and holds a complete record of exactly this version."""
    try:
        at, _, _, magic = FOOTER.unpack_from(data, len(data) - FOOTER.size)
        (length,) = LENGTH.unpack_from(data, at)
    except (struct.error, OverflowError):
        return False
    start = at + LENGTH.size
    if magic != MAGIC or start + length > len(data) - FOOTER.size:
        return False
    try:
        return _version_in(memoryview(data)[start : start + length]) == version
    except (IndexError, ValueError):
        return False


def _version_in(record: memoryview) -> int | None:
    """The version number in a protobuf record; ValueError when its bytes are no record."""
    at, version = 0, None
    while at < len(record):
        tag, at = read_varint(record, at)
        field, kind = tag >> 3, tag & 7
        if field == 0:
            raise ValueError("a field without a number")
        if kind == _VARINT:
            value, at = read_varint(record, at)
            version = value if field == _VERSION_FIELD else version
        elif kind == _SIZED:
            size, at = read_varint(record, at)
            at += size
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            at += 8 if kind == _EIGHT_BYTES else 4
        else:
            raise ValueError("a field of no known kind")
    if at != len(record):
        raise ValueError("the record ends in the middle of a field")
    return version


def read_varint(record: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = record[at]
        value |= (byte & 0x7F) << shift
        at, shift = at + 1, shift + 7
        if byte < 0x80:
            return value, at
