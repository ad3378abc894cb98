"""Driver processes seen from the test: started ahead of need, given orders, killed."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

_PROGRAM = Path(__file__).with_name("bulk_driver.py")
_LIFE_S_MAX = 180


class Driver:
    """One process. Its words go to `log`, its answers to us."""

    def __init__(self, log: Path, more: dict[str, str]) -> None:
        self._log = log
        with log.open("ab") as errors:
            self.process = subprocess.Popen(
                [sys.executable, str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, "PYSPARK_PYTHON": sys.executable, "LANCE_LOG": "error", **more},
            )

    def order(self, **order: Any) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(order) + "\n")
        self.process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """What it says next; the sign that it is ready does not count."""
        assert self.process.stdout is not None
        while line := self.process.stdout.readline():
            told = json.loads(line)
            if "ready" not in told:
                return told
        raise AssertionError(f"the driver ended: {self._log.read_text()[-4000:]}")

    def load(self, **order: Any) -> dict[str, Any]:
        self.order(**order)
        return self.answer()

    def died(self) -> int:
        """Its exit code, once it has died."""
        out, _ = self.process.communicate(timeout=_LIFE_S_MAX)
        assert not [line for line in out.splitlines() if "ready" not in line], out
        return self.process.returncode

    def kill(self) -> None:
        self.process.kill()
        with contextlib.suppress(OSError):
            self.process.communicate(timeout=_LIFE_S_MAX)


class Drivers:
    """Drivers that share a Spark which outlives them; the next ones start while one works."""

    def __init__(self, folder: Path, environment: dict[str, str], ahead: int = 1) -> None:
        self._folder, self._environment, self._ahead = folder, environment, ahead
        self._waiting: list[Driver] = []
        self._out: list[Driver] = []

    def take(self) -> Driver:
        while len(self._waiting) <= self._ahead:
            self._waiting.append(Driver(self._folder / "drivers.log", self._environment))
        self._out.append(self._waiting.pop(0))
        return self._out[-1]

    def dismiss(self) -> None:
        for driver in (*self._waiting, *self._out):
            driver.kill()
