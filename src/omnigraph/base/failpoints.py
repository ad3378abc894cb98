"""Named places where a test may stop, kill or delay a process. Nothing happens unless a test arms one.

Names are `<writer>.<window>`; WINDOWS lists the windows of the write path in their order.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable

WINDOWS = (
    "pre_phase_a",
    "post_phase_a_pre_phase_b",
    "mid_phase_b",
    "post_phase_b_pre_manifest_commit",
    "post_manifest_commit_pre_phase_d",
    "post_phase_d",
)

Action = Callable[[], None]
_armed: dict[str, tuple[Action, int]] = {}


class FailpointHit(Exception):
    """Raised by `fail` at an armed point: an error no writer expects."""


def exit_now() -> None:
    """Die without running any clean-up code."""
    os._exit(77)


def kill_now() -> None:
    """Die by SIGKILL."""
    os.kill(os.getpid(), signal.SIGKILL)


def fail() -> None:
    raise FailpointHit("armed failpoint")


def arm(name: str, action: Action, skip: int = 0) -> None:
    """Run `action` when `name` is reached for the `skip + 1`-th time."""
    _armed[name] = (action, skip)


def disarm_all() -> None:
    _armed.clear()


def reach(name: str) -> None:
    """Pass the place called `name`."""
    if not _armed or name not in _armed:
        return
    action, skip = _armed[name]
    if skip > 0:
        _armed[name] = (action, skip - 1)
        return
    del _armed[name]
    action()
