"""Ctrl-C and SIGTERM wait while a write is between arming its sidecar and clearing it.

Only the main thread receives signals, so only there is anything to defer. An edge that prints an outcome wraps the
whole call in `held_until_reported`, so that the outcome is told before the signal takes effect.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

_DEFERRED = (signal.SIGINT, signal.SIGTERM)
_log = logging.getLogger("omnigraph.commit")
_noted: list[int] = []
_reporting = 0


@contextmanager
def deferred_signals() -> Iterator[None]:
    """Note signals instead of obeying them; they take effect afterwards."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {s: signal.getsignal(s) for s in _DEFERRED}
    if any(handler is _note for handler in before.values()):
        yield
        return
    for number in _DEFERRED:
        signal.signal(number, _note)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler if handler is not None else signal.SIG_DFL)
        if not _reporting:
            redeliver()


@contextmanager
def held_until_reported() -> Iterator[None]:
    """Signals noted by a write inside take effect only when this block ends."""
    global _reporting
    _reporting += 1
    try:
        yield
    finally:
        _reporting -= 1
        if not _reporting:
            redeliver()


def redeliver() -> None:
    """Send the noted signals to ourselves, now that nothing is in between."""
    while _noted:
        number = _noted.pop(0)
        _noted[:] = [n for n in _noted if n != number]
        os.kill(os.getpid(), number)


def _note(number: int, _frame: FrameType | None) -> None:
    _log.warning("%s waits until the write in progress has ended", signal.Signals(number).name)
    _noted.append(number)
