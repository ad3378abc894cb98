"""How much one read may take; what it says when it takes more."""

from __future__ import annotations

from dataclasses import dataclass

from omnigraph.base.errors import BadRequest, LimitExceeded
from omnigraph.settings import Settings

_NO_PART = "No part of the result was returned."


@dataclass(frozen=True)
class ReadLimits:
    """0 means no limit, except for memory."""

    timeout_ms: int
    memory_bytes: int
    result_rows: int

    @staticmethod
    def of(settings: Settings, timeout_ms: int | None = None) -> ReadLimits:
        """The settings' limits; a timeout given for this read wins."""
        chosen = settings.limits_query_timeout_ms if timeout_ms is None else timeout_ms
        if chosen < 0:
            raise BadRequest(f"a timeout of {chosen} ms is not possible", "Use 0 for none.")
        return ReadLimits(chosen, settings.limits_query_memory_bytes, settings.limits_result_rows)

    def too_slow(self) -> LimitExceeded:
        return LimitExceeded(
            f"the read took longer than {self.timeout_ms} ms",
            f"{_NO_PART} Raise the timeout (--timeout, limits.query_timeout_ms, OMNIGRAPH_QUERY_TIMEOUT_MS).",
            limit="limits.query_timeout_ms",
            value=self.timeout_ms,
        )

    def too_large(self) -> LimitExceeded:
        return LimitExceeded(
            f"the read needs more memory than {self.memory_bytes} bytes",
            f"{_NO_PART} Read less, or raise limits.query_memory_bytes (OMNIGRAPH_QUERY_MEMORY_BYTES).",
            limit="limits.query_memory_bytes",
            value=self.memory_bytes,
        )

    def too_many_rows(self) -> LimitExceeded:
        return LimitExceeded(
            f"the result has more than {self.result_rows} rows",
            f"{_NO_PART} Add a LIMIT, or raise limits.result_rows (OMNIGRAPH_RESULT_ROWS).",
            limit="limits.result_rows",
            value=self.result_rows,
        )
