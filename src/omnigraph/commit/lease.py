"""The lock of a graph branch on an object store: a leased object, taken and renewed by conditional puts.

Holds:
  1. The lease saves work and nothing else: a holder that was taken over may only be asleep, and the manifest's
     compare-and-swap is what stops it.
  2. No clock is compared with another machine's: a lease has run out when its object did not change for a whole
     lifetime by our own clock, or when its holder is a process of this host that is gone.
  3. Every take-over, and every breaking, raises the token.
  4. An object that is ours is known by its nonce, so a put whose answer was lost is neither lost nor done twice.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import orjson

from omnigraph.base.clock import iso_us, monotonic_ms, now_us
from omnigraph.base.errors import Conflict, OmniError
from omnigraph.base.ids import new_ulid
from omnigraph.commit.locks import Holder, LockLost, Looks, holder_name, is_gone
from omnigraph.manifest import layout
from omnigraph.storage.objects import ObjectStore, Stored

_POLL_MS_MAX = 500
_LOOK_MS_MAX = 1_000
_BREAK_TRIES = 8
_LIFETIME_MS_MAX = 86_400_000
# Leases of this process that nobody renews any more: giving them back failed, or taking them was never confirmed.
_abandoned: set[str] = set()


@dataclass(frozen=True)
class Lease:
    """What a lease object says; an empty holder means free. `nonce` is the same from taking to release."""

    branch: str
    holder: str
    token: int
    nonce: str
    since: str
    renewed_at: str
    lifetime_ms: int
    renewals: int = 0

    def encode(self) -> bytes:
        expires_at = iso_us(now_us() + self.lifetime_ms * 1000)
        return orjson.dumps({**vars(self), "expires_at": expires_at})


@dataclass(frozen=True)
class LeaseTimes:
    """How long to wait for a lease, how long it lives, how often it is renewed and looked at."""

    timeout_ms: int
    lifetime_ms: int
    heartbeat_ms: int

    @property
    def look_ms(self) -> int:
        return min(_LOOK_MS_MAX, self.heartbeat_ms)


class LeasedLock:
    """A lease in our hands, renewed by a thread of its own until it is released."""

    def __init__(
        self, objects: ObjectStore, key: str, branch: str | None, lease: Lease, etag: str, times: LeaseTimes
    ) -> None:
        self.branch = branch
        self.token = lease.token
        self._objects, self._key, self._times = objects, key, times
        self._lease, self._etag = lease, etag
        self._renewed_ms = self._looked_ms = monotonic_ms()
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
        """LockLost unless the lease still is ours; called before each table commit and each publish."""
        if monotonic_ms() - self._looked_ms >= self._times.look_ms:
            self._look()
        if self._lost or monotonic_ms() - self._renewed_ms >= self._times.lifetime_ms:
            raise LockLost(
                f"the lease on branch '{self.branch or 'main'}' ran out, was taken over or was broken",
                "Nothing was written. Another writer may have the branch now; retry.",
            )

    def release(self) -> None:
        """Free the lease; the object stays, for its token."""
        self._stop.set()
        with self._guard:
            if not self._lost:
                self._put(replace(self._lease, holder="", token=self.token))

    def abandon(self) -> None:
        """Let this process take the lease again at once, though the store does not know that it is free."""
        _abandoned.add(self._lease.nonce)

    def _look(self) -> None:
        """Whether somebody else took or broke the lease; a store that does not answer tells nothing."""
        asked_ms = monotonic_ms()
        try:
            found = self._objects.get(self._key)
        except OmniError:
            return
        if not _is_of(found, self._lease.nonce):
            self._lost = True
        self._looked_ms = asked_ms

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
            self._lease = replace(
                self._lease, token=self.token, renewed_at=iso_us(now_us()), renewals=self._lease.renewals + 1
            )
            if self._put(self._lease):
                self._renewed_ms = self._looked_ms = asked_ms
            else:
                self._lost = True

    def _put(self, lease: Lease) -> bool:
        """Replace our object, also when an earlier put had landed and only its answer was lost."""
        data = lease.encode()
        etag = self._objects.put_if_match(self._key, data, self._etag)
        if etag is None:
            found = self._objects.get(self._key)
            if found is not None and found.data == data:
                etag = found.etag
            elif found is not None and _is_of(found, lease.nonce):
                etag = self._objects.put_if_match(self._key, data, found.etag)
        self._etag = etag or self._etag
        return etag is not None


class LeaseLocks:
    """The leases of one graph."""

    can_break = True

    def __init__(self, objects: ObjectStore, timeout_ms: int, lifetime_ms: int, heartbeat_ms: int) -> None:
        self._objects = objects
        self._times = LeaseTimes(timeout_ms, lifetime_ms, min(heartbeat_ms, lifetime_ms // 3))
        self._seen: dict[str, tuple[str, int]] = {}

    @contextmanager
    def hold(self, branch: str | None) -> Iterator[LeasedLock]:
        lock = self._acquire(branch, self._times.timeout_ms)
        if lock is None:
            owner = self.holder(branch)
            raise Conflict(
                f"branch '{branch or 'main'}' is locked by {owner.holder if owner else 'another process'}",
                "Nothing was written. Another write is in progress; retry. "
                "If its process is gone for good, omnigraph lock break frees the branch.",
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
        return self._told(branch, _read(found, self._times.lifetime_ms)) if found is not None else None

    def break_lock(self, branch: str | None) -> Holder | None:
        """Free the lease whoever has it; None when it is free.

        The former holder finds out when it next looks; if it goes on before, its publish is bound to the head it saw.
        """
        key, nonce = self._key(branch), new_ulid()
        for _ in range(_BREAK_TRIES):
            found = self._objects.get(key)
            lease = _read(found, self._times.lifetime_ms) if found is not None else None
            if found is None or lease is None or not lease.holder:
                return None
            free = replace(lease, branch=branch or "main", holder="", token=lease.token + 1, nonce=nonce)
            if self._landed(key, free, found) is not None:
                return self._told(branch, lease)
        raise Conflict(
            f"the lease on branch '{branch or 'main'}' changed during every attempt to break it",
            "Its holder is alive and at work; wait for it, or end its process.",
        )

    def _told(self, branch: str | None, lease: Lease) -> Holder:
        looks = _looks(lease)
        return Holder(
            branch or "main", bool(lease.holder), lease.token, lease.holder, lease.since, lease.renewed_at, looks
        )

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
        held = _read(found, self._times.lifetime_ms) if found is not None else None
        if found is not None and held is not None and held.holder and not self._ran_out(key, found, held):
            return None
        now = iso_us(now_us())
        token = (held.token if held is not None else 0) + 1
        lease = Lease(branch or "main", holder_name(), token, new_ulid(), now, now, self._times.lifetime_ms)
        etag = self._landed(key, lease, found)
        return LeasedLock(self._objects, key, branch, lease, etag, self._times) if etag is not None else None

    def _landed(self, key: str, lease: Lease, found: Stored | None) -> str | None:
        """The tag of `lease` once it stands where `found` stood; None when somebody else was first."""
        data, failed = lease.encode(), None
        try:
            if found is None:
                etag = self._objects.put_if_absent(key, data)
            else:
                etag = self._objects.put_if_match(key, data, found.etag)
            if etag is not None:
                return etag
        except OmniError as error:
            failed = error
        # A put reported as refused or failed may have landed: only the object tells.
        try:
            there = self._objects.get(key)
        except OmniError:
            _abandoned.add(lease.nonce)
            raise
        if there is not None and there.data == data:
            return there.etag
        if failed is not None:
            _abandoned.add(lease.nonce)
            raise failed
        return None

    def _ran_out(self, key: str, found: Stored, lease: Lease) -> bool:
        if lease.nonce in _abandoned or is_gone(lease.holder):
            return True
        etag, since_ms = self._seen.get(key, ("", 0))
        if etag != found.etag:
            self._seen[key] = (found.etag, monotonic_ms())
            return False
        return monotonic_ms() - since_ms >= lease.lifetime_ms


def _looks(lease: Lease) -> Looks:
    """What one look tells an operator. The age is by two clocks, so it is a hint and decides nothing."""
    if not lease.holder:
        return "free"
    if is_gone(lease.holder):
        return "gone"
    try:
        renewed_us = int(datetime.fromisoformat(lease.renewed_at).timestamp() * 1_000_000)
    except (ValueError, OverflowError):
        return "unknown"
    return "stale" if now_us() - renewed_us >= lease.lifetime_ms * 1000 else "alive"


def _is_of(found: Stored | None, nonce: str) -> bool:
    lease = _read(found, 0) if found is not None else None
    return lease is not None and lease.nonce == nonce and bool(lease.holder)


def _read(found: Stored, lifetime_ms: int) -> Lease:
    """The lease in an object. One that cannot be understood is nobody's; its token is raised by the next commit."""
    try:
        members = orjson.loads(found.data)
    except ValueError:
        members = None
    if not isinstance(members, dict):
        members = {}
    lived = _whole(members, "lifetime_ms")
    return Lease(
        _text(members, "branch"),
        _text(members, "holder"),
        _whole(members, "token"),
        _text(members, "nonce"),
        _text(members, "since"),
        _text(members, "renewed_at"),
        lived if 0 < lived <= _LIFETIME_MS_MAX else lifetime_ms,
        _whole(members, "renewals"),
    )


def _text(members: dict[str, Any], name: str) -> str:
    value = members.get(name)
    return value if isinstance(value, str) else ""


def _whole(members: dict[str, Any], name: str) -> int:
    value = members.get(name)
    return value if type(value) is int and 0 <= value < 1 << 62 else 0


def _released(lock: LeasedLock) -> None:
    try:
        lock.release()
    except OmniError:
        lock.abandon()  # the lease runs out by itself
