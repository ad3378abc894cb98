"""Moments as users name them: one reading of them, wherever they are given."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta

from omnigraph.base.errors import BadRequest

Moment = str | int | datetime
"""RFC 3339, a date (its start in UTC), or microseconds since 1970 as a number or its digits."""

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_RFC_3339 = re.compile(r"\d{4}-\d\d-\d\d[Tt ]\d\d:\d\d:\d\d(\.\d+)?([Zz]|[+-]\d\d:\d\d)", re.ASCII)
_MICROSECONDS = re.compile(r"[0-9]{1,18}")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_HINT = "Use 2026-05-01T10:00:00Z (seconds and the zone are needed), a date, or microseconds since 1970."


def time_us(moment: Moment) -> int:
    """Microseconds since the epoch."""
    if isinstance(moment, bool) or not isinstance(moment, str | int | datetime):
        raise BadRequest(f"{moment!r} is not a time", _HINT)
    if isinstance(moment, int):
        return moment
    if isinstance(moment, datetime):
        if moment.tzinfo is None:
            raise BadRequest(f"{moment!r} has no time zone", "Give it one: datetime(…, tzinfo=UTC).")
        return (moment - _EPOCH) // timedelta(microseconds=1)
    words = moment.strip()
    if _MICROSECONDS.fullmatch(words):
        return int(words)
    try:
        if _DATE.fullmatch(words):
            found = datetime.fromisoformat(words).replace(tzinfo=UTC)
        elif _RFC_3339.fullmatch(words):
            found = datetime.fromisoformat(words.upper().replace(" ", "T"))
        else:
            raise ValueError
    except ValueError:
        raise BadRequest(f"'{moment}' is not a time", _HINT) from None
    return (found - _EPOCH) // timedelta(microseconds=1)
