"""The lock of a graph branch on an object store: a leased object, taken and renewed by conditional puts.

Holds:
  1. The lease saves work and nothing else: a holder that was taken over may only be asleep, and the manifest's
     compare-and-swap is what stops it.
  2. No clock is compared with another machine's: a lease has run out when its object did not change for a whole
     lifetime by our own clock, or when its holder is a process of this host that is gone.
  3. Every take-over raises the token.
"""

from __future__ import annotations

import os
import random
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import orjson

from omnigraph.base.clock import iso_us, monotonic_ms, now_us
from omnigraph.base.errors import Conflict, OmniError
from omnigraph.base.ids import new_ulid
from omnigraph.commit.locks import Holder, LockLost
from omnigraph.manifest import layout
from omnigraph.storage.objects import ObjectStore, Stored

_POLL_MS_MAX = 500


class LeasedLock:
    """A lease in our hands, renewed by a thread of its own until it is released."""

    def __init__(
        self, objects: ObjectStore, key: str, branch: str | None, token: int, etag: str, times: _Times
    ) -> None:
        self.branch = branch
        self.token = token
        self._objects, self._key, self._times = objects, key, times
        self._etag = etag
        self._renewed_ms = monotonic_ms()
        self._lost = False
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._renew_forever, name="omnigraph-lease", daemon=True)
        self._thread.start()

    def raise_token(self, floor: int) -> None:
        if self.token <= floor:
            self.token = floor + 1
            self._renew()

    def check(self) -> None:
        """LockLost unless the lease certainly still is ours; called before each table commit and each publish."""
        if self._lost or monotonic_ms() - self._renewed_ms >= self._times.lifetime_ms:
            raise LockLost(f"the lease on branch '{self.branch or 'main'}' ran out or was taken over")

    def release(self) -> None:
        """Free the lease; the object stays, for its token."""
        self._stop.set()
        with self._guard:
            if not self._lost:
                self._objects.put_if_match(self._key, _owner(self.branch, self.token, "", self._times), self._etag)

    def _renew_forever(self) -> None:
        while not self._stop.wait(self._times.heartbeat_ms / 1000):
            try:
                self._renew()
            except OmniError:
                continue  # the store may answer again before the lease has run out; `check` watches the time
            if self._lost:
                return

    def _renew(self) -> None:
        with self._guard:
            if self._lost or self._stop.is_set():
                return
            asked_ms = monotonic_ms()
            data = _owner(self.branch, self.token, holder_name(), self._times)
            etag = self._objects.put_if_match(self._key, data, self._etag) or _own_etag(self._objects, self._key, data)
            if etag is None:
                self._lost = True
                return
            self._etag, self._renewed_ms = etag, asked_ms


class _Times:
    def __init__(self, timeout_ms: int, lifetime_ms: int, heartbeat_ms: int) -> None:
        self.timeout_ms, self.lifetime_ms = timeout_ms, lifetime_ms
        self.heartbeat_ms = min(heartbeat_ms, lifetime_ms // 3)


class LeaseLocks:
    """The leases of one graph."""

    def __init__(self, objects: ObjectStore, timeout_ms: int, lifetime_ms: int, heartbeat_ms: int) -> None:
        self._objects = objects
        self._times = _Times(timeout_ms, lifetime_ms, heartbeat_ms)
        self._seen: dict[str, tuple[str, int]] = {}

    @contextmanager
    def hold(self, branch: str | None) -> Iterator[LeasedLock]:
        lock = self._acquire(branch, self._times.timeout_ms)
        if lock is None:
            owner = self.holder(branch)
            raise Conflict(
                f"branch '{branch or 'main'}' is locked by {owner.holder if owner else 'another process'}",
                "Nothing was written. Another write is in progress; retry.",
            )
        try:
            yield lock
        finally:
            _released(lock)

    @contextmanager
    def try_hold(self, branch: str | None) -> Iterator[LeasedLock | None]:
        lock = self._acquire(branch, 0)
        try:
            yield lock
        finally:
            if lock is not None:
                _released(lock)

    def holder(self, branch: str | None) -> Holder | None:
        found = self._objects.get(self._key(branch))
        if found is None:
            return None
        owner = _read(found)
        name = str(owner.get("holder", ""))
        return Holder(branch or "main", bool(name), int(owner.get("token", 0)), name, str(owner.get("since", "")))

    def _key(self, branch: str | None) -> str:
        return f"{layout.LOCK_DIR}/{layout.lock_name(branch)}.json"

    def _acquire(self, branch: str | None, timeout_ms: int) -> LeasedLock | None:
        deadline, pause_ms = monotonic_ms() + timeout_ms, 5.0
        while True:
            lock = self._try(branch)
            if lock is not None or monotonic_ms() >= deadline:
                return lock
            time.sleep(pause_ms * random.uniform(0.5, 1.5) / 1000)
            pause_ms = min(pause_ms * 1.5, _POLL_MS_MAX)

    def _try(self, branch: str | None) -> LeasedLock | None:
        key = self._key(branch)
        found = self._objects.get(key)
        owner = _read(found) if found is not None else {}
        if found is not None and owner.get("holder") and not self._ran_out(key, found, owner):
            return None
        token = int(owner.get("token", 0)) + 1
        data = _owner(branch, token, holder_name(), self._times)
        if found is None:
            etag = self._objects.put_if_absent(key, data)
        else:
            etag = self._objects.put_if_match(key, data, found.etag)
        etag = etag or _own_etag(self._objects, key, data)
        return LeasedLock(self._objects, key, branch, token, etag, self._times) if etag is not None else None

    def _ran_out(self, key: str, found: Stored, owner: dict[str, Any]) -> bool:
        if _is_gone(str(owner["holder"])):
            return True
        etag, since_ms = self._seen.get(key, ("", 0))
        if etag != found.etag:
            self._seen[key] = (found.etag, monotonic_ms())
            return False
        return monotonic_ms() - since_ms >= int(owner.get("lifetime_ms", self._times.lifetime_ms))


def holder_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{_process_start(os.getpid())}"


def _process_start(pid: int) -> str:
    """A mark that tells two processes of the same number apart."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return "0"


def _is_gone(holder: str) -> bool:
    """Whether a holder is a process of this host that has ended."""
    host, _, rest = holder.partition(":")
    pid, _, started = rest.partition(":")
    if host != socket.gethostname() or not pid.isdigit() or not started:
        return False
    return _process_start(int(pid)) != started


def _owner(branch: str | None, token: int, holder: str, times: _Times) -> bytes:
    return orjson.dumps(
        {
            "branch": branch or "main",
            "holder": holder,
            "token": token,
            "since": iso_us(now_us()),
            "expires_at": iso_us(now_us() + times.lifetime_ms * 1000),
            "lifetime_ms": times.lifetime_ms,
            "nonce": new_ulid(),
        }
    )


def _own_etag(objects: ObjectStore, key: str, data: bytes) -> str | None:
    """The tag of our own object, when a put reported as refused had landed and only its answer was lost."""
    found = objects.get(key)
    return found.etag if found is not None and found.data == data else None


def _read(found: Stored) -> dict[str, Any]:
    try:
        owner = orjson.loads(found.data)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def _released(lock: LeasedLock) -> None:
    try:
        lock.release()
    except OmniError:
        return  # the lease runs out by itself
