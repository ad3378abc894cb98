"""The columns of a table with the numbers Lance knows them by.

Holds at every return:
  1. A column that goes on keeps its number, and so its data and its field metadata, under any name.
  2. A new column gets a number that no data file of the table has ever used: data of a dropped one never comes back.
Lance makes such a schema only from its own messages, so those are read and written here, field by field.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa
from lance.schema import LanceSchema

from omnigraph.storage.failures import Unreadable

_NAME, _ID, _PARENT = 2, 3, 4
_VARINT, _BYTES = 0, 2
_TOP = (1 << 64) - 1  # -1, the parent of a column that is not part of another one


@dataclass(frozen=True)
class Member:
    """One entry of a message: its number, how it is written, and what it says."""

    number: int
    wire: int
    value: int | bytes


@dataclass(frozen=True)
class _Field:
    """A column or a part of one, as Lance's message tells it."""

    members: tuple[Member, ...]

    def whole(self, number: int) -> int:
        """A number that is zero is left out of a message."""
        return next((int(m.value) for m in self.members if m.number == number), 0)

    @property
    def name(self) -> str:
        found = next((m.value for m in self.members if m.number == _NAME), b"")
        return found.decode() if isinstance(found, bytes) else ""

    def with_member(self, number: int, wire: int, value: int | bytes) -> _Field:
        others = [m for m in self.members if m.number != number]
        return _Field(tuple(sorted([*others, Member(number, wire, value)], key=lambda m: m.number)))

    def renamed(self, name: str) -> _Field:
        return self.with_member(_NAME, _BYTES, name.encode())

    def moved(self, by: int) -> _Field:
        moved = self.with_member(_ID, _VARINT, self.whole(_ID) + by)
        parent = self.whole(_PARENT)
        return moved if parent == _TOP else moved.with_member(_PARENT, _VARINT, parent + by)


@dataclass(frozen=True)
class Columns:
    """A table's columns in order; each is its own field and those of its parts."""

    metadata: str
    fields: tuple[tuple[_Field, ...], ...]

    @staticmethod
    def of(schema: Any) -> Columns:
        _, (metadata, *messages) = schema.__reduce__()[:2]
        grouped: list[tuple[_Field, ...]] = []
        for message in messages:
            field = _Field(tuple(read_message(message)))
            if field.whole(_PARENT) == _TOP:
                grouped.append((field,))
            else:
                grouped[-1] = (*grouped[-1], field)
        return Columns(metadata, tuple(grouped))

    @property
    def numbers(self) -> set[int]:
        return {field.whole(_ID) for column in self.fields for field in column}

    def number_of(self, name: str) -> int:
        return next(column[0].whole(_ID) for column in self.fields if column[0].name == name)

    def reshaped(self, wanted: pa.Schema, continues: Mapping[str, str], used: Iterable[int]) -> Columns:
        """The columns of `wanted`, in its order.

        `continues` says which stored column a wanted one goes on with; one that is not there is new. `used`: numbers
        that data files have, whether a column still goes by them or not.
        """
        stored = {column[0].name: column for column in self.fields}
        fresh = pa.schema([field for field in wanted if field.name not in continues])
        first_free = max([*self.numbers, *used], default=-1) + 1
        added = {column[0].name: column for column in Columns.of(LanceSchema.from_pyarrow(fresh)).fields}
        columns = []
        for name in wanted.names:
            if name in continues:
                whole, *parts = stored[continues[name]]
                columns.append((whole.renamed(name), *parts))
            else:
                columns.append(tuple(field.moved(first_free) for field in added[name]))
        return replace(self, fields=tuple(columns))

    def to_lance(self) -> Any:
        messages = [write_message(field.members) for column in self.fields for field in column]
        return LanceSchema._from_protos(self.metadata, *messages)


def read_message(data: bytes) -> Iterator[Member]:
    """The entries of a protobuf message, in order."""
    at = 0
    while at < len(data):
        key, at = _read_varint(data, at)
        number, wire = key >> 3, key & 7
        if wire == _VARINT:
            value, at = _read_varint(data, at)
            yield Member(number, wire, value)
        elif wire == _BYTES:
            size, at = _read_varint(data, at)
            yield Member(number, wire, data[at : at + size])
            at += size
        else:
            raise Unreadable(f"this release of Lance describes columns in a way that is not known here ({wire})")


def write_message(members: Iterable[Member]) -> bytes:
    written = bytearray()
    for member in members:
        written += _varint(member.number << 3 | member.wire)
        if isinstance(member.value, bytes):
            written += _varint(len(member.value)) + member.value
        else:
            written += _varint(member.value)
    return bytes(written)


def _read_varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7


def _varint(value: int) -> bytes:
    written = bytearray()
    while value > 0x7F:
        written.append(value & 0x7F | 0x80)
        value >>= 7
    written.append(value)
    return bytes(written)
