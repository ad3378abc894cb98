"""What DuckDB says when a statement fails, in our words; the only place that reads its errors."""

from __future__ import annotations

import re
from typing import Any

import orjson

from omnigraph.base.errors import InternalError, OmniError
from omnigraph.engine.read.limits import ReadLimits
from omnigraph.engine.read.sql_check import sql_error
from omnigraph.storage.failures import translate

_SAID = re.compile(r"(?P<kind>[A-Za-z ]+?) Error: (?P<rest>.*)", re.DOTALL)
_HELPFUL = ("Candidate", "Did you mean")


def told(error: Exception, sql: str, limits: ReadLimits) -> OmniError:
    """The error a user should see for what ended a statement."""
    inner: BaseException | None = error
    while inner is not None:
        if isinstance(inner, OmniError):
            return inner
        inner = inner.__cause__
    text = str(error)
    if "LanceError" in text:
        return translate(error, "read a table") or InternalError(f"a table could not be read: {_first_line(text)}")
    said = _SAID.match(text)
    if said is None:
        return InternalError(f"the statement could not be run: {_first_line(text)}")
    if said["kind"] == "Out of Memory":
        return limits.too_large()
    details = _details(said["rest"])
    message = str(details.get("exception_message", said["rest"]))
    if said["kind"] in ("INTERNAL", "Fatal"):
        return InternalError(f"the statement could not be run: {_first_line(message)}")
    position = details.get("position")
    hints = [line for line in message.splitlines()[1:] if line.startswith(_HELPFUL)]
    return sql_error(sql, _first_line(message), " ".join(hints), int(position) if position else None)


def _details(rest: str) -> dict[str, Any]:
    try:
        found = orjson.loads(rest)
    except ValueError:
        return {}
    return found if isinstance(found, dict) else {}


def _first_line(text: str) -> str:
    return text.splitlines()[0].rstrip("!") if text else "no reason given"
