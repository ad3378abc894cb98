"""Lance and disk failures become our errors here, and nowhere else."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from typing import ClassVar

from lance.commit import CommitConflictError

from omnigraph.base.errors import Conflict, InternalError, OmniError, Unavailable

_CONFLICT_TEXTS = (
    "Too many concurrent writers",
    "Incompatible transaction",
    "Retryable commit conflict",
    "Commit conflict",
    "missing original fragments",
    "must not carry row ids",
)
_DISK_FULL_TEXTS = ("No space left on device", "Disk quota exceeded", "os error 28", "os error 122")
# A read that fails under way reaches us through Arrow, as an error about values.
_IO_TEXTS = ("LanceError(IO)", "External error: Not found")
_READ_ONLY_TEXTS = ("Read-only file system", "Permission denied", "os error 30", "os error 13")


class CommitLost(Conflict):
    """Lance refused a commit because another one came first; nothing of it landed."""

    code: ClassVar[str] = "conflict"


class Unreadable(Conflict):
    """A table version exists and cannot be opened."""

    code: ClassVar[str] = "unreadable"


def translate(error: BaseException, what: str) -> OmniError | None:
    """The error a user should see instead, or None when it is not one of the store's."""
    if isinstance(error, OmniError):
        return error
    text = str(error)
    if isinstance(error, CommitConflictError) or any(t in text for t in _CONFLICT_TEXTS):
        return CommitLost(f"could not {what}: {text.splitlines()[0] if text else 'lost a race'}")
    number = getattr(error, "errno", None)
    if number in (errno.ENOSPC, errno.EDQUOT) or any(t in text for t in _DISK_FULL_TEXTS):
        return Unavailable(f"could not {what}: the disk is full", "Free some space and try again.", what="disk")
    if number in (errno.EROFS, errno.EACCES, errno.EPERM) or any(t in text for t in _READ_ONLY_TEXTS):
        return Unavailable(
            f"could not {what}: no permission to write there",
            "Open read-only, or make the directory writable for this user.",
            what="permissions",
        )
    if type(error).__name__ == "PanicException":
        return InternalError(f"could not {what}: Lance gave up: {text.splitlines()[0] if text else ''}")
    if isinstance(error, OSError) or any(t in text for t in _IO_TEXTS):
        return Unavailable(f"could not {what}: {text.splitlines()[0] if text else error!r}", what="store")
    return None


@contextmanager
def translated(what: str) -> Iterator[None]:
    """Run a storage call; `what` completes the sentence "could not …"."""
    try:
        yield
    except OmniError:
        raise
    except BaseException as error:
        known = translate(error, what)
        if known is None:
            raise
        raise known from error
