"""Times as users write them."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from omnigraph.base.clock import duration
from omnigraph.base.errors import BadRequest

_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HINT = "Use 2026-05-01T10:00:00Z, a date (its start in UTC), or microseconds since 1970."


def time_us(text: str) -> int:
    """Microseconds since the epoch of an RFC 3339 time, a date or a whole number."""
    words = text.strip()
    if words.isascii() and words.isdigit():
        return int(words)
    try:
        if _DATE.fullmatch(words):
            moment = datetime.fromisoformat(words).replace(tzinfo=UTC)
        elif _RFC_3339.fullmatch(words):
            moment = datetime.fromisoformat(words.upper().replace(" ", "T"))
        else:
            raise ValueError
    except ValueError:
        raise BadRequest(f"'{text}' is not a time", _HINT) from None
    return (moment - _EPOCH) // timedelta(microseconds=1)


def duration_of(text: str) -> timedelta:
    """A duration as users write it."""
    try:
        return duration(text)
    except ValueError:
        raise BadRequest(f"'{text}' is not a duration", "Use a number and a unit: 30d, 36h, 15m, 90s.") from None


def age_text(seconds: float) -> str:
    """`42s`, `7m`, `3h`, `12d`."""
    whole = max(0, int(seconds))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"
