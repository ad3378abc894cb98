"""Children that wait, already started, for the one order of their life. Never forked: lance does not survive that."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import Any

DIED_BY = {"exit": 77, "kill": -9}
_PROGRAM = Path(__file__).with_name("crash_child.py")
_LIFE_S_MAX = 120


@dataclass(frozen=True)
class Ended:
    """How a life ended, and what it said before."""

    code: int
    said: dict[str, str]
    stderr: str


class Children:
    """Starts children ahead of need, so that starting one costs no waiting."""

    def __init__(self, ahead: int = 2) -> None:
        self._waiting: deque[subprocess.Popen[str]] = deque()
        self._ahead = ahead

    def start(self) -> subprocess.Popen[str]:
        """A child that waits for its order; another one starts for later."""
        while len(self._waiting) <= self._ahead:
            self._waiting.append(_spawned())
        return self._waiting.popleft()

    def live(self, order: dict[str, Any]) -> Ended:
        """Give a child its order and wait until it has died."""
        child = self.start()
        out, err = child.communicate(json.dumps(order) + "\n", timeout=_LIFE_S_MAX)
        said = dict(line.split(" ", 1) for line in out.splitlines() if " " in line)
        return Ended(child.returncode, said, err)

    def dismiss(self) -> None:
        for child in self._waiting:
            child.kill()
            with contextlib.suppress(OSError):
                child.communicate(timeout=_LIFE_S_MAX)
        self._waiting.clear()


def _spawned() -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, str(_PROGRAM)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "LANCE_LOG": "error"},
    )
