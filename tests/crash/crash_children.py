"""Children that live until they have carried out one order or died of it."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from crash_child import live

from processes import FORKED

DIED_BY = {"exit": 77, "kill": -9}
_LIFE_S_MAX = 120


@dataclass(frozen=True)
class Ended:
    """How a life ended, and what it said before."""

    code: int
    said: dict[str, str]
    stderr: str


class Child:
    """One process at its order. What it said can be read when it is dead, too."""

    def __init__(self, order: dict[str, Any], complaints: Path) -> None:
        self._complaints = complaints
        reader, writer = FORKED.Pipe(duplex=False)
        self._process = FORKED.Process(target=live, args=(order, writer, str(complaints)), daemon=True)
        self._process.start()
        writer.close()
        # Only its own end is open now, so its words end when it does.
        self.out: TextIO = os.fdopen(os.dup(reader.fileno()), encoding="utf-8")
        reader.close()

    def kill(self) -> None:
        self._process.kill()

    def ended(self) -> Ended:
        """How it ended, once it has."""
        self._process.join(_LIFE_S_MAX)
        code = self._process.exitcode
        if code is None:
            self.kill()
            raise AssertionError(f"it lives after {_LIFE_S_MAX} s: {self._complaints.read_text()}")
        with self.out:
            said = dict(line.rstrip("\n").split(" ", 1) for line in self.out if " " in line)
        return Ended(code, said, self._complaints.read_text() if self._complaints.exists() else "")


class Children:
    """Starts children and keeps what they complain of."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="crash-")
        self._count = 0

    def start(self, order: dict[str, Any]) -> Child:
        self._count += 1
        return Child(order, Path(self._folder.name, f"{self._count}.err"))

    def live(self, order: dict[str, Any]) -> Ended:
        """Give a child its order and wait until it has died."""
        return self.start(order).ended()

    def dismiss(self) -> None:
        self._folder.cleanup()
