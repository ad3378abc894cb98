"""The file that makes a table version exist, as bytes: where its bases lie, and the same at another place.

A fork records its bases by absolute paths and Lance has no call that changes them, so its version file is written anew:
the same record with other paths. The record of how the version came about stays behind, for it names places too, and no
reader needs it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from uuid import UUID

from omnigraph.storage.failures import Unreadable
from omnigraph.storage.torn import FOOTER, LENGTH, MAGIC, is_whole, read_varint

_INDEX_SECTION, _TRANSACTION_FILE, _BASE_PATH, _TRANSACTION_SECTION = 6, 12, 18, 23
_PATH_OF_BASE = 4
_INDEX, _UUID_OF_INDEX, _BYTES_OF_UUID = 1, 1, 1
_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5
Field = tuple[int, int | bytes, bytes]
"""Number, value, and the bytes of the whole field."""


def rebased(data: bytes, version: int, place: Callable[[str], str]) -> bytes:
    """The same version with each base at the path that `place` gives for the recorded one."""
    message, major, minor = _message(data, version)
    section, out = b"", bytearray()
    for number, value, raw in _fields(message):
        if number in (_TRANSACTION_FILE, _TRANSACTION_SECTION):
            continue
        if number == _INDEX_SECTION and isinstance(value, int):
            section = _sized_at(data, value)
            out += _varint(number << 3 | _VARINT) + _varint(0)
        elif number == _BASE_PATH and isinstance(value, bytes):
            out += _sized(number, _moved(value, place))
        else:
            out += raw
    made = section + LENGTH.pack(len(out)) + bytes(out) + FOOTER.pack(len(section), major, minor, MAGIC)
    if not is_whole(made, version):
        raise Unreadable(f"version {version} could not be written for another place")
    return made


def index_ids(data: bytes, version: int) -> set[str]:
    """The names of the folders that hold the indexes of a version."""
    message, _, _ = _message(data, version)
    at = next((v for number, v, _ in _fields(message) if number == _INDEX_SECTION), None)
    if not isinstance(at, int):
        return set()
    indexes = [v for number, v, _ in _fields(_sized_at(data, at)[LENGTH.size :]) if number == _INDEX]
    uuids = [_member(_member(v, _UUID_OF_INDEX), _BYTES_OF_UUID) for v in indexes if isinstance(v, bytes)]
    return {str(UUID(bytes=uuid)) for uuid in uuids}


def _message(data: bytes, version: int) -> tuple[bytes, int, int]:
    if not is_whole(data, version):
        raise Unreadable(f"the file of version {version} is not whole")
    at, major, minor, _ = FOOTER.unpack_from(data, len(data) - FOOTER.size)
    return _sized_at(data, at)[LENGTH.size :], major, minor


def _sized_at(data: bytes, at: int) -> bytes:
    """A record that lies at this place of the file, with its length before it."""
    try:
        (length,) = LENGTH.unpack_from(data, at)
    except struct.error as error:
        raise Unreadable(f"a version file ends before its part at {at}") from error
    return data[at : at + LENGTH.size + length]


def _moved(base: bytes, place: Callable[[str], str]) -> bytes:
    out = bytearray()
    for number, value, raw in _fields(base):
        is_path = number == _PATH_OF_BASE and isinstance(value, bytes)
        out += _sized(number, place(value.decode()).encode()) if is_path and isinstance(value, bytes) else raw
    return bytes(out)


def _member(record: bytes, wanted: int) -> bytes:
    found = next((value for number, value, _ in _fields(record) if number == wanted), b"")
    return found if isinstance(found, bytes) else b""


def _fields(record: bytes) -> Iterator[Field]:
    view, at = memoryview(record), 0
    while at < len(record):
        start = at
        tag, at = read_varint(view, at)
        kind = tag & 7
        value: int | bytes = b""
        if kind == _VARINT:
            value, at = read_varint(view, at)
        elif kind == _SIZED:
            size, at = read_varint(view, at)
            value, at = record[at : at + size], at + size
        elif kind in (_EIGHT_BYTES, _FOUR_BYTES):
            at += 8 if kind == _EIGHT_BYTES else 4
        else:
            raise Unreadable("a version file holds a field of no known kind")
        yield tag >> 3, value, record[start:at]


def _sized(number: int, value: bytes) -> bytes:
    return _varint(number << 3 | _SIZED) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
