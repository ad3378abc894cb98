"""Durations and ages as users write and read them."""

from __future__ import annotations

from datetime import timedelta

from omnigraph.base.clock import DURATION_UNITS, duration
from omnigraph.base.errors import BadRequest


def duration_of(text: str) -> timedelta:
    """A duration as users write it."""
    try:
        return duration(text)
    except ValueError:
        hint = f"Use a whole number and a unit, {DURATION_UNITS}: 30d, 36h. Without a unit it is seconds."
        raise BadRequest(f"'{text}' is not a duration", hint) from None


def age_text(seconds: float) -> str:
    """`42s`, `7m`, `3h`, `12d`."""
    whole = max(0, int(seconds))
    for unit, size in (("d", 86_400), ("h", 3_600), ("m", 60)):
        if whole >= size:
            return f"{whole // size}{unit}"
    return f"{whole}s"
