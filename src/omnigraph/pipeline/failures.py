"""Turns what Spark and its gateway raise into our errors; the only place that does.

The decision is made on exception types and Spark's stable condition names, never on message texts.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError, Py4JJavaError, Py4JNetworkError
from pyspark.errors import (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    PySparkException,
    PythonException,
    SparkRuntimeException,
)

from omnigraph.base.errors import BadRequest, InternalError, OmniError, Unavailable

_TEXT_CHARS_MAX = 2000
# Raised instead of a text when the JVM that holds it is gone.
_GONE = (Py4JError, ConnectionError, AssertionError)
_ENDED = "its process ended"
_log = logging.getLogger(__name__)
# The type that the last line of a worker's traceback names when an import failed.
_MISSING = ModuleNotFoundError.__name__
# What a query or its data did wrong; Spark itself is well.
_INPUT_FAULTS = (
    AnalysisException,
    ArithmeticException,
    ArrayIndexOutOfBoundsException,
    DateTimeException,
    IllegalArgumentException,
    SparkRuntimeException,
)


@contextmanager
def spark_failures(doing: str) -> Iterator[None]:
    """Raise our errors for Spark's; `doing` says what was under way, as in "staging node:Person"."""
    try:
        yield
    except (PySparkException, Py4JError, ConnectionError) as error:
        raise translate(error, doing) from error


@contextmanager
def unless_gone() -> Iterator[None]:
    """For what is put back in a session: in one that is gone there is nothing to put back, and why is told already."""
    try:
        yield
    except (PySparkException, *_GONE):
        _log.debug("Spark is gone; nothing was put back", exc_info=True)


def translate(error: Exception, doing: str) -> OmniError:
    """The error of ours that means the same to a caller."""
    match error:
        case PythonException():
            said = _worker_text(error)
            if said.startswith(_MISSING):
                return Unavailable(
                    f"{doing}: a package is missing where Spark's workers run: {said.partition(': ')[2]}",
                    "Nothing was committed. Install omnigraph, in this version, for the Python of the workers.",
                    what="spark",
                )
            return InternalError(
                f"{doing}: a Spark worker failed: {said}",
                "Nothing was committed. If the disk or the store was at fault, mend it and run again.",
            )
        case _ if isinstance(error, _INPUT_FAULTS):
            return BadRequest(
                f"{doing}: Spark refused it: {_first_line(_message(error))}",
                "Nothing was committed. Correct the input or its mapping and run again.",
            )
        case _ if _is_unanswered(error):
            return Unavailable(
                f"{doing}: the Spark server does not answer any more",
                "Nothing was committed. Run again when the server is back.",
                what="spark",
            )
        case _:
            return Unavailable(
                f"{doing}: Spark failed: {_first_line(_message(error))}",
                "Nothing was committed. Run again; if it happens again, look at the memory and disk Spark may use.",
                what="spark",
            )


def raised_by_query(error: OmniError) -> str | None:
    """What a query itself raised, by `raise_error`, to end the job that failed with this error."""
    cause = error.__cause__
    if not isinstance(cause, PySparkException):
        return None
    try:
        return (cause.getMessageParameters() or {}).get("errorMessage")
    except _GONE:
        return None


def _is_unanswered(error: Exception) -> bool:
    """Whether a Connect client gave up on its server. Only Connect has status codes, and may not be installed."""
    status = getattr(error, "getGrpcStatusCode", None)
    return status is not None and getattr(status(), "name", "") == "UNAVAILABLE"


def _message(error: Exception) -> str:
    if isinstance(error, Py4JNetworkError | ConnectionError):
        return _ENDED
    try:
        told = (isinstance(error, PySparkException) and error.getMessage()) or str(error)
    except _GONE:
        return _ENDED
    # The gateway's own line says which of its objects was called; the one after it says what happened.
    return told.partition("\n: ")[2] or told if isinstance(error, Py4JJavaError) else told


def _worker_text(error: PythonException) -> str:
    """The last line of the worker's traceback: the exception it raised."""
    try:
        traceback = (error.getMessageParameters() or {}).get("traceback", "")
    except _GONE:
        traceback = ""
    # A Connect server may send it as part of the message only.
    traceback = traceback or _message(error).partition("Traceback (most recent call last)")[2]
    lines = [line.strip() for line in traceback.partition("JVM stacktrace:")[0].splitlines()]
    lines = [line for line in lines if line and not line.startswith("SQLSTATE:")]
    return lines[-1][:_TEXT_CHARS_MAX] if lines else _first_line(_message(error))


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no message")[:_TEXT_CHARS_MAX]
