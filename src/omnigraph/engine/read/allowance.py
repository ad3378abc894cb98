"""What one query has left: asked between its parts. A query that passes a limit ends with no result."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from omnigraph.engine.read.limits import ReadLimits


@dataclass
class Allowance:
    limits: ReadLimits
    started: float = field(default_factory=time.monotonic)

    def check(self) -> None:
        timeout_ms = self.limits.timeout_ms
        if timeout_ms and (time.monotonic() - self.started) * 1000 > timeout_ms:
            raise self.limits.too_slow()

    @property
    def left_ms(self) -> int | None:
        """How much longer the read may take; None without a limit."""
        timeout_ms = self.limits.timeout_ms
        return max(0, int(timeout_ms - (time.monotonic() - self.started) * 1000)) if timeout_ms else None

    def reserve(self, nbytes: int) -> None:
        """Told before a part of that size is made."""
        self.check()
        if nbytes > self.limits.memory_bytes:
            raise self.limits.too_large()
