"""The one place that asks for the time."""

from __future__ import annotations

import time
from datetime import UTC, datetime


def now_us() -> int:
    """Microseconds since the epoch."""
    return time.time_ns() // 1000


def iso_us(us: int) -> str:
    """`2024-05-01T10:00:00.000000Z`"""
    return datetime.fromtimestamp(us / 1_000_000, UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
