"""How our errors pass through Spark, which carries texts only from a Python worker to the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.base.errors import OmniError


class OmniGraphFailure(Exception):
    """One of our errors on its way through Spark, which carries texts only: its code, its words, its hint."""


@contextmanager
def told_to_spark() -> Iterator[None]:
    """Let Spark show our error as its last line, without the trail that led to it."""
    try:
        yield
    except OmniError as error:
        told = f"[{error.code}] {error}"
        raise OmniGraphFailure(f"{told.rstrip('.')}. {error.hint}" if error.hint else told) from None
