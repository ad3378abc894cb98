"""The one place that asks for the time."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

_UNIT_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
DURATION_UNITS = "s, m, h, d or w"


def now_us() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


def iso_us(us: int) -> str:
    """`2024-05-01T10:00:00.000000Z`"""
    return datetime.fromtimestamp(us / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


def duration(text: str) -> timedelta:
    """`2w`, `7d`, `36h`, `90s`, `500ms`, and `90` for seconds; ValueError for anything else."""
    matched = re.fullmatch(r"([0-9]{1,9})\s*(ms|s|m|h|d|w)?", text.strip(), re.ASCII)
    if matched is None:
        raise ValueError(f"expects a duration, for example 7d; the units are {DURATION_UNITS}")
    try:
        return timedelta(milliseconds=int(matched[1]) * _UNIT_MS[matched[2] or "s"])
    except OverflowError:
        raise ValueError("expects a shorter duration") from None
