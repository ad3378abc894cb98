"""The lock of a graph branch: it keeps writers from wasting work; the publish is what keeps them safe.

Holds while a lock is held:
  1. Nobody else holds the same one: the locked file is still the one its path names.
  2. Its token is higher than every token stamped on the branch before.
The file is never unlinked while the graph exists, and the system frees the lock when its holder dies.
"""

from __future__ import annotations

import fcntl
import os
import random
import socket
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Literal, Protocol

import orjson

from omnigraph.base.clock import iso_us, monotonic_ms, now_us
from omnigraph.base.errors import Conflict
from omnigraph.manifest import layout
from omnigraph.storage.failures import translated

_POLL_S_MAX = 0.02
Looks = Literal["free", "alive", "gone", "stale", "unknown"]


class LockLost(Conflict):
    """The lock is not ours any more; whoever has it now decides."""


class HeldLock(Protocol):
    """A branch lock in our hands, of either kind."""

    branch: str | None
    token: int

    def raise_token(self, floor: int) -> None:
        """Make the token exceed `floor`, the highest one stamped on the branch."""

    def check(self) -> None:
        """LockLost unless the lock certainly still is ours."""


@dataclass
class FileLock:
    """A flock in our hands; the system keeps it ours until we close it."""

    branch: str | None
    fd: int
    token: int

    def raise_token(self, floor: int) -> None:
        if self.token <= floor:
            self.token = floor + 1
            _write_owner(self.fd, self.branch, self.token)

    def check(self) -> None:
        return


@dataclass(frozen=True)
class Holder:
    """Who took the lock last, and whether it is held now.

    `looks`: alive; gone, a process of this host that has ended; stale, not renewed for a lifetime by this machine's
    clock; unknown.
    """

    branch: str
    held: bool
    token: int
    holder: str
    since: str
    renewed_at: str = ""
    looks: Looks = "unknown"


class BranchLocks(Protocol):
    """The locks of one graph, one per branch. `can_break`: whether a lock can be taken from a living holder."""

    can_break: bool

    def hold(self, branch: str | None) -> AbstractContextManager[HeldLock]:
        """The lock of `branch`; waits, then raises a retryable Conflict that names the holder."""

    def try_hold(self, branch: str | None) -> AbstractContextManager[HeldLock | None]:
        """The lock of `branch` if it is free right now, else None."""

    def holder(self, branch: str | None) -> Holder | None:
        """Who has the lock, or had it last."""

    def break_lock(self, branch: str | None) -> Holder | None:
        """Free a lock that its holder does not give back; who had it, or None when it was free."""


class FileLocks:
    """Advisory locks on a local file system."""

    can_break = False

    def __init__(self, root: str, timeout_ms: int) -> None:
        self._directory = os.path.join(root, layout.LOCK_DIR)
        self._timeout_ms = timeout_ms

    @contextmanager
    def hold(self, branch: str | None) -> Iterator[FileLock]:
        with self._taken(branch, self._timeout_ms) as lock:
            if lock is None:
                owner = self.holder(branch)
                raise Conflict(
                    f"branch '{branch or 'main'}' is locked by {owner.holder if owner else 'another process'}",
                    "Nothing was written. Another write is in progress; retry.",
                )
            yield lock

    @contextmanager
    def try_hold(self, branch: str | None) -> Iterator[FileLock | None]:
        with self._taken(branch, 0) as lock:
            yield lock

    def holder(self, branch: str | None) -> Holder | None:
        path = self._path(branch)
        try:
            fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return None
        try:
            owner = _read_owner(fd)
            held, name = not _try_flock(fd, fcntl.LOCK_SH), str(owner.get("holder", "unknown"))
            looks: Looks = "free" if not held else "gone" if is_gone(name) else "alive"
            return Holder(branch or "main", held, _token(owner), name, str(owner.get("since", "")), looks=looks)
        finally:
            os.close(fd)

    def break_lock(self, branch: str | None) -> Holder | None:
        """None: the system freed it when its holder ended. A lock that is held has a living holder and is refused."""
        owner = self.holder(branch)
        if owner is None or not owner.held:
            return None
        host, _, pid = owner.holder.partition(":")
        if owner.looks == "gone":
            text = f"process {pid}, which has ended; another process inherited its open file"
            hint = f"Find that process (fuser {self._path(branch)}) and end it; the system then frees the lock."
        else:
            text = f"process {pid} on {host}, which is running"
            hint = f"Wait for it, or end process {pid} there; the system frees the lock when it ends."
        raise Conflict(f"the lock of branch '{branch or 'main'}' is held by {text}", f"Nothing was broken. {hint}")

    def _path(self, branch: str | None) -> str:
        return os.path.join(self._directory, layout.lock_name(branch))

    @contextmanager
    def _taken(self, branch: str | None, timeout_ms: int) -> Iterator[FileLock | None]:
        fd = self._acquire(self._path(branch), timeout_ms)
        if fd is None:
            yield None
            return
        try:
            token = _token(_read_owner(fd)) + 1
            _write_owner(fd, branch, token)
            yield FileLock(branch, fd, token)
        finally:
            os.close(fd)

    def _acquire(self, path: str, timeout_ms: int) -> int | None:
        deadline = monotonic_ms() + timeout_ms
        pause = 0.0005
        with translated("lock the branch"):
            os.makedirs(self._directory, exist_ok=True)
            while True:
                fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
                if _try_flock(fd, fcntl.LOCK_EX):
                    if _is_current(fd, path):
                        return fd
                    os.close(fd)
                    continue
                os.close(fd)
                if monotonic_ms() >= deadline:
                    return None
                time.sleep(pause * random.uniform(0.5, 1.5))
                pause = min(pause * 1.5, _POLL_S_MAX)


def _try_flock(fd: int, mode: int) -> bool:
    try:
        fcntl.flock(fd, mode | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_current(fd: int, path: str) -> bool:
    try:
        there, here = os.stat(path), os.fstat(fd)
    except FileNotFoundError:
        return False
    return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)


def _read_owner(fd: int) -> dict[str, object]:
    data = os.pread(fd, 4096, 0)
    try:
        owner = orjson.loads(data)
    except ValueError:
        return {}
    return owner if isinstance(owner, dict) else {}


def holder_name() -> str:
    """This process among all that may ever hold a lock: its host, its number, and when it started."""
    return f"{socket.gethostname()}:{os.getpid()}:{_process_start(os.getpid())}"


def is_gone(holder: str) -> bool:
    """Whether a holder is a process of this host that has ended; without the mark of its start, by its number only."""
    host, _, rest = holder.partition(":")
    pid, _, started = rest.partition(":")
    if host != socket.gethostname() or not (pid.isascii() and pid.isdigit()):
        return False
    if started:
        return _process_start(int(pid)) != started
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        return False
    return False


def _process_start(pid: int) -> str:
    """A mark that tells two processes of the same number apart."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as file:
            return file.read().rsplit(")", 1)[1].split()[19]
    except (OSError, IndexError):
        return "0"


def _write_owner(fd: int, branch: str | None, token: int) -> None:
    holder = f"{socket.gethostname()}:{os.getpid()}"
    owner = {"branch": branch or "main", "holder": holder, "token": token, "since": iso_us(now_us())}
    data = orjson.dumps(owner)
    with translated("lock the branch"):
        os.pwrite(fd, data, 0)
        os.ftruncate(fd, len(data))


def _token(owner: dict[str, object]) -> int:
    token = owner.get("token", 0)
    return token if isinstance(token, int) else 0
