"""Names that must be unique or stable: ULIDs and FNV-1a hashes."""

from __future__ import annotations

import re

from ulid import ULID

_FNV_BASIS = 14695981039346656037
_FNV_PRIME = 1099511628211
_MASK = (1 << 64) - 1
_ULID = re.compile(r"[0-7][0-9A-HJKMNP-TV-Z]{25}")


def new_ulid() -> str:
    """A fresh 26-character id that sorts by the time it was made."""
    return str(ULID())


def is_ulid(text: str) -> bool:
    return _ULID.fullmatch(text) is not None


def ulid_time_us(text: str) -> int:
    """When an id was made, in microseconds since the epoch, to the millisecond."""
    return ULID.from_str(text).milliseconds * 1000


def fnv1a64(data: bytes) -> int:
    value = _FNV_BASIS
    for byte in data:
        value = ((value ^ byte) * _FNV_PRIME) & _MASK
    return value


def fnv1a64_hex(text: str) -> str:
    """16 lower-case hex digits naming `text` in paths."""
    return f"{fnv1a64(text.encode()):016x}"
