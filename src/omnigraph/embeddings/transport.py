"""Requests to a provider: one connection, retries, a deadline.

Holds for every call:
  1. What may pass by itself is tried again with doubled pauses: a timeout, a lost or refused connection, 429, 5xx.
  2. It ends within the deadline, if there is one, however slowly the provider sends.
  3. No error holds the key, or what the provider repeats of it.
  4. Attempts keep the distance that the pace asks for; waiting for its turn takes nothing from a request's deadline.
"""

from __future__ import annotations

import re
import socket
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from itertools import count
from math import ceil
from time import sleep
from typing import Any
from urllib.parse import urlsplit

import orjson

from omnigraph.base.clock import monotonic_ms
from omnigraph.base.errors import BadRequest, LimitExceeded, OmniError, Unavailable
from omnigraph.embeddings.providers import Active, BadAnswer, Key
from omnigraph.settings import Settings

_ANSWER_BYTES_MAX = 256 << 20
_RETRY_AFTER_MS_MAX = 60_000
_MINUTE_MS = 60_000
_KEY_REFUSED = (401, 402, 403)
_TOLD_MAX = 200


@dataclass(frozen=True)
class Patience:
    """How long and how often a provider is asked; 0 ms is no limit."""

    deadline_ms: int
    timeout_ms: int
    attempts: int
    backoff_ms: int

    @staticmethod
    def of(settings: Settings) -> Patience:
        return Patience(
            settings.embeddings_deadline_ms,
            settings.embeddings_timeout_ms,
            max(1, settings.embeddings_retry_attempts),
            settings.embeddings_retry_backoff_ms,
        )


@dataclass(frozen=True)
class Pace:
    """How far apart attempts begin, and how long the first one waits; 0 ms is as fast as they come."""

    interval_ms: int = 0
    first_ms: int = 0

    @staticmethod
    def of(settings: Settings) -> Pace:
        limit = settings.embeddings_requests_per_minute
        return Pace(ceil(_MINUTE_MS / limit)) if limit else Pace()

    def shared(self, lane: int, lanes: int, is_first: bool) -> Pace:
        """The pace of one of several who keep this one together, in turn; those who follow others wait a turn more."""
        return Pace(self.interval_ms * lanes, self.interval_ms * (lane if is_first else lane + 1))


@dataclass(frozen=True)
class _Answer:
    status: int
    data: bytes = field(repr=False)
    retry_after_ms: int

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    @property
    def is_passing(self) -> bool:
        return self.status == 429 or self.status >= 500


class _Lost(Exception):
    """No answer: a timeout, or a connection that failed."""


class Transport:
    """Asks one provider; not for several threads at once."""

    def __init__(
        self, active: Active, key: Key, headers: Mapping[str, str], patience: Patience, pace: Pace | None = None
    ) -> None:
        self._active = active
        self._key = key
        self._headers = {"Content-Type": "application/json", "Accept": "application/json", **headers}
        self._patience = patience
        self._pace = pace or Pace()
        self._turn_ms = monotonic_ms() + self._pace.first_ms
        self._base_path, self._connection = _connection_to(active.base_url)

    def close(self) -> None:
        self._connection.close()

    def post(self, path: str, body: Any) -> bytes:
        """The answer's body, once the provider gives one."""
        payload = orjson.dumps(body)
        patience = self._patience
        self._wait_for_turn()
        ends_ms = monotonic_ms() + patience.deadline_ms if patience.deadline_ms else None
        pause_ms = patience.backoff_ms
        for attempt in count(1):
            wait_ms = pause_ms
            try:
                answer = self._attempt(path, payload, ends_ms)
                if answer.is_ok:
                    return answer.data
                if not answer.is_passing:
                    raise self._refusal(answer)
                why, wait_ms = f"HTTP {answer.status}", max(pause_ms, answer.retry_after_ms)
            except _Lost as lost:
                why = str(lost)
            left_ms = None if ends_ms is None else ends_ms - monotonic_ms()
            is_last = attempt >= patience.attempts
            if left_ms is not None and left_ms <= (0 if is_last else wait_ms):
                raise self._too_late(attempt, why)
            if is_last:
                raise self._down(attempt, why)
            sleep(wait_ms / 1000)
            waited_ms = self._wait_for_turn()
            ends_ms = None if ends_ms is None else ends_ms + waited_ms
            pause_ms *= 2
        raise AssertionError("unreachable")

    def _wait_for_turn(self) -> int:
        left_ms = max(self._turn_ms - monotonic_ms(), 0)
        if left_ms:
            sleep(left_ms / 1000)
        return left_ms

    def _attempt(self, path: str, payload: bytes, ends_ms: int | None) -> _Answer:
        self._turn_ms = monotonic_ms() + self._pace.interval_ms
        limits = [self._patience.timeout_ms] if self._patience.timeout_ms else []
        limits += [max(1, ends_ms - monotonic_ms())] if ends_ms is not None else []
        limit_s = min(limits) / 1000 if limits else None
        connection = self._connection
        with _cut_off_after(connection, limit_s) as was_cut:
            try:
                connection.timeout = limit_s
                if connection.sock is None:
                    connection.connect()
                connection.sock.settimeout(limit_s)
                connection.request("POST", f"{self._base_path}{path}", payload, self._headers)
                response = connection.getresponse()
                data = response.read(_ANSWER_BYTES_MAX + 1)
                if len(data) > _ANSWER_BYTES_MAX:
                    connection.close()
                    raise BadAnswer(
                        f"{self._active} answered more than {_ANSWER_BYTES_MAX} bytes",
                        what="embeddings",
                        provider=self._active.provider,
                        model=self._active.model_name,
                    )
                if response.length or was_cut.is_set():
                    raise HTTPException("the answer ended early")
                return _Answer(response.status, data, _retry_after_ms(response.getheader("Retry-After")))
            except (OSError, HTTPException, UnicodeError) as error:
                connection.close()
                timed_out = was_cut.is_set() or isinstance(error, TimeoutError)
                raise _Lost("timeout" if timed_out else _reason(error)) from None

    def _too_late(self, attempts: int, why: str) -> OmniError:
        deadline_ms = self._patience.deadline_ms
        return LimitExceeded(
            f"{self._active} gave no embeddings within {deadline_ms} ms ({_times(attempts)}, last: {why})",
            "Try again, or give it more time with OMNIGRAPH_EMBED_DEADLINE_MS (0: no deadline).",
            limit="embeddings.deadline_ms",
            value=deadline_ms,
        )

    def _down(self, attempts: int, why: str) -> OmniError:
        return Unavailable(
            f"{self._active} gave no embeddings ({_times(attempts)}, last: {why})",
            "Try again later, or look at OMNIGRAPH_EMBED_PROVIDER and OMNIGRAPH_EMBED_BASE_URL.",
            what="embeddings",
        )

    def _refusal(self, answer: _Answer) -> OmniError:
        status = f"(HTTP {answer.status})"
        if answer.status in _KEY_REFUSED:
            # What a provider says about a key may repeat parts of it.
            text = f"{self._active} refused the key of {self._key.variable} {status}"
            return Unavailable(text, "Check the key and what its account may do.", what="embeddings")
        if answer.status < 400:
            text = f"{self._active} sends its callers elsewhere {status}"
            return Unavailable(text, "Set OMNIGRAPH_EMBED_BASE_URL to where it is now.", what="embeddings")
        told = self._told(answer.data)
        text = f"{self._active} refused the request {status}{': ' if told else ''}{told}"
        return BadRequest(text, "Check the model, the dimension and the base URL.")

    def _told(self, data: bytes) -> str:
        """What the provider says is wrong, in one line and without the key."""
        try:
            told: Any = orjson.loads(data)
            told = told["error"]
            told = told["message"] if isinstance(told, dict) else told
        except (ValueError, LookupError, TypeError):
            told = data[: 4 * _TOLD_MAX].decode(errors="replace")
        text = re.sub(r"[\s\x00-\x1f\x7f-\x9f]+", " ", str(told)).strip()
        # Providers shorten keys they repeat: `sk-abc***xyz`.
        text = re.sub(re.escape(self._key.secret[:6]) + r"\S*", "***", text.replace(self._key.secret, "***"))
        return text if len(text) <= _TOLD_MAX else f"{text[:_TOLD_MAX]}…"


def _connection_to(base_url: str) -> tuple[str, HTTPConnection]:
    """The path below which requests go, and a connection that is not open yet."""
    hint = "Set OMNIGRAPH_EMBED_BASE_URL to, for example, http://127.0.0.1:8000/v1."
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    printable = base_url.isascii() and base_url.isprintable() and " " not in base_url
    if host is None or parts.scheme not in ("http", "https") or not printable:
        raise BadRequest("the base URL of the embedding provider is no http or https address", hint)
    if parts.username is not None or parts.query or parts.fragment:
        # A password in a URL would be told wherever the URL is.
        raise BadRequest("the base URL of the embedding provider has more than host, port and path", hint)
    path = parts.path.rstrip("/")
    if parts.scheme == "http":
        return path, HTTPConnection(host, port)
    return path, HTTPSConnection(host, port, context=ssl.create_default_context())


@contextmanager
def _cut_off_after(connection: HTTPConnection, limit_s: float | None) -> Iterator[threading.Event]:
    """A socket's own timeout starts anew with every byte; this one does not."""
    was_cut = threading.Event()
    if limit_s is None:
        yield was_cut
        return

    def cut() -> None:
        was_cut.set()
        opened = connection.sock
        if opened is not None:
            try:
                # Not the TLS socket's own method: that one is not meant for another thread.
                socket.socket.shutdown(opened, socket.SHUT_RDWR)
            except OSError:
                return

    timer = threading.Timer(limit_s, cut)
    timer.daemon = True
    timer.start()
    try:
        yield was_cut
    finally:
        timer.cancel()


def _retry_after_ms(told: str | None) -> int:
    seconds = int(told) if told is not None and re.fullmatch(r"[0-9]{1,9}", told.strip()) else 0
    return min(seconds * 1000, _RETRY_AFTER_MS_MAX)


def _reason(error: Exception) -> str:
    told = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return f"connection failed: {told}"


def _times(attempts: int) -> str:
    return f"{attempts} {'attempt' if attempts == 1 else 'attempts'}"
