"""A schema apply shows the others that it runs: by a lock, and by a branch of the manifest that is there meanwhile.

Holds:
  1. Of two applies one is refused at once: the lock is taken before the branch is made.
  2. No branch is made, deleted or merged while the branch is there; one that was being made is there before it.
  3. The branch of a dead apply goes once nothing of that apply waits for recovery.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from omnigraph.base.errors import Conflict, OmniError
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.locks import HeldLock
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


@contextmanager
def applying(ctx: CommitContext) -> Iterator[None]:
    """Be the one schema apply that runs."""
    with _lock(ctx) as lock:
        if lock is None:
            holder = ctx.locks.holder(_NAME)
            by = f" by {holder.holder}" if holder is not None else ""
            raise Conflict(f"a schema apply is already in progress{by}", "Nothing was written. Retry when it is done.")
        try:
            _make(ctx)
            reach("schema_apply.lock_made")
            yield
        finally:
            _remove_if_settled(ctx)


@contextmanager
def _lock(ctx: CommitContext) -> Iterator[HeldLock | None]:
    """The lock of applies if it is free. A lease that nobody seems to renew is watched until it has run out."""
    with ExitStack() as stack:
        lock = stack.enter_context(ctx.locks.try_hold(_NAME))
        holder = ctx.locks.holder(_NAME) if lock is None else None
        if holder is not None and holder.looks in ("stale", "gone"):
            lock = stack.enter_context(ctx.locks.hold(_NAME))
        yield lock


def _make(ctx: CommitContext) -> None:
    """Whoever makes a branch or a tag looks for ours under the same lock, so that we see theirs."""
    with ctx.locks.hold(layout.BRANCH_CONTROL_LOCK) as control:
        _remove(ctx)
        remove_leftovers(ctx.manifest.ref(_NAME))
        fork_branch_from_state(ctx.manifest.ref(), None, _NAME, ctx.manifest.state().version)
        control.check()


def refuse_while_applying(ctx: CommitContext) -> None:
    """For whoever makes, deletes or merges branches, or tidies up."""
    if _is_there(ctx):
        raise Conflict(
            "a schema apply is running",
            "Nothing was written. Retry when it is done; if its process is gone, open the graph again or refresh.",
        )


def remove_leftover(ctx: CommitContext) -> None:
    """Remove the branch of an apply that died, unless something of it waits for recovery."""
    if _is_there(ctx):
        with _lock(ctx) as lock:
            if lock is not None:
                _remove_if_settled(ctx)


def _remove_if_settled(ctx: CommitContext) -> None:
    try:
        if not any(sidecar.carries_schema for sidecar in pending_sidecars(ctx.objects)):
            _remove(ctx)
    except OmniError as error:
        _log.warning("branch '%s' stays until the graph is opened again: %s", _NAME, error)


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
