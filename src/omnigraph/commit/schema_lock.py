"""A schema apply shows the others that it runs: by a lock, and by a branch of the manifest that is there meanwhile.

Holds:
  1. Of two applies one is refused at once: the lock is taken before the branch is made.
  2. No branch is made, deleted or merged while the branch is there; one that was being made is there before it.
  3. The branch of a dead apply goes once nothing of that apply waits for recovery.
  4. An apply whose lease ran out while it slept removes no branch but its own. A store deletes without a condition, so
     it may still be too late; hence on leased stores the lease of a living holder counts as the branch does.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from omnigraph.base.errors import Conflict, OmniError
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import HeldLock, LockLost
from omnigraph.commit.sidecar import pending_sidecars
from omnigraph.manifest import layout
from omnigraph.storage.failures import Unreadable
from omnigraph.storage.refs import (
    delete_branch,
    fork_branch_from_state,
    read_branch,
    reference_key,
    remove_leftovers,
)

_log = logging.getLogger("omnigraph.schema")
_NAME = layout.SCHEMA_LOCK_BRANCH


@dataclass(frozen=True)
class Turn:
    """The right to be the one schema apply, and the branch that shows it."""

    ctx: CommitContext
    lock: HeldLock
    incarnation: str

    def check(self) -> None:
        """LockLost unless nobody else can have made or removed branches since the turn began."""
        self.lock.check()
        if not _is_of(self.ctx, self.incarnation):
            raise LockLost("another schema apply took over", "Nothing was written. Retry when it is done.")


@contextmanager
def applying(ctx: CommitContext) -> Iterator[Turn]:
    """Be the one schema apply that runs."""
    with _lock(ctx) as lock:
        if lock is None:
            holder = ctx.locks.holder(_NAME)
            by = f" by {holder.holder}" if holder is not None else ""
            raise Conflict(f"a schema apply is already in progress{by}", "Nothing was written. Retry when it is done.")
        incarnation = None
        try:
            incarnation = _make(ctx, lock)
            reach("schema_apply.lock_made")
            yield Turn(ctx, lock, incarnation)
        finally:
            _remove_if_settled(ctx, lock, incarnation)


@contextmanager
def _lock(ctx: CommitContext) -> Iterator[HeldLock | None]:
    """The lock of applies if it is free. A lease that nobody seems to renew is watched until it has run out."""
    with ExitStack() as stack:
        lock = stack.enter_context(ctx.locks.try_hold(_NAME))
        holder = ctx.locks.holder(_NAME) if lock is None else None
        if holder is not None and holder.looks in ("stale", "gone"):
            lock = stack.enter_context(ctx.locks.hold(_NAME))
        yield lock


def _make(ctx: CommitContext, lock: HeldLock) -> str:
    """Whoever makes a branch or a tag looks for ours under the same lock, so that we see theirs. Its incarnation."""
    main = ctx.manifest.ref()
    with ctx.locks.hold(layout.BRANCH_CONTROL_LOCK) as control:
        lock.check()
        _remove(ctx)
        remove_leftovers(ctx.manifest.ref(_NAME))
        fork_branch_from_state(main, None, _NAME, ctx.manifest.state().version)
        made = read_branch(main, _NAME)
        control.check()
        if made is None:
            raise LockLost("another schema apply took over", "Nothing was written. Retry when it is done.")
        return made.incarnation


def refuse_while_applying(ctx: CommitContext) -> None:
    """For whoever makes, deletes or merges branches, or tidies up."""
    if _is_there(ctx) or _lease_is_alive(ctx):
        raise Conflict(
            "a schema apply is running",
            "Nothing was written. Retry when it is done; if its process is gone, open the graph again or refresh.",
        )


def remove_leftover(ctx: CommitContext) -> None:
    """Remove the branch of an apply that died, unless something of it waits for recovery."""
    if _is_there(ctx):
        with _lock(ctx) as lock:
            if lock is not None:
                _remove_if_settled(ctx, lock, None)


def _remove_if_settled(ctx: CommitContext, lock: HeldLock, incarnation: str | None) -> None:
    """`incarnation`: of the branch that may be removed; None: of the one that is there, for its maker has no lock."""
    try:
        if any(sidecar.carries_schema for sidecar in pending_sidecars(ctx.objects)):
            return
        if incarnation is None or _is_of(ctx, incarnation):
            lock.check()
            _remove(ctx)
    except OmniError as error:
        _log.warning("branch '%s' stays until the graph is opened again: %s", _NAME, error)


def _lease_is_alive(ctx: CommitContext) -> bool:
    """Only a lease can be lost by somebody who still acts, and only he can remove a branch that is not his."""
    holder = ctx.locks.holder(_NAME) if ctx.locks.can_break else None
    return holder is not None and holder.held and holder.looks == "alive"


def _is_of(ctx: CommitContext, incarnation: str) -> bool:
    try:
        found = read_branch(ctx.manifest.ref(), _NAME)
    except Unreadable:
        return False
    return found is not None and found.incarnation == incarnation


def _is_there(ctx: CommitContext) -> bool:
    """Whether it has a reference, be it one that a power cut tore."""
    return ctx.objects.exists(reference_key(ctx.manifest.ref(), _NAME))


def _remove(ctx: CommitContext) -> None:
    if not _is_there(ctx):
        return
    main = ctx.manifest.ref()
    try:
        is_whole = read_branch(main, _NAME) is not None
    except Unreadable:
        is_whole = False
    if is_whole:
        delete_branch(main, _NAME)
    else:
        ctx.objects.delete(reference_key(main, _NAME))
        remove_leftovers(ctx.manifest.ref(_NAME))
