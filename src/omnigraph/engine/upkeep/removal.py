"""Takes leftovers away, each under the lock that keeps its maker out, after another look.

Every function returns None when the thing is gone, or the reason why it stays.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from omnigraph.base.clock import now_us
from omnigraph.commit.context import CommitContext
from omnigraph.commit.fences import raise_fence
from omnigraph.commit.forks import is_usable
from omnigraph.commit.sidecar import pending_sidecars
from omnigraph.commit.staging import Heartbeat, list_heartbeats
from omnigraph.engine.upkeep.decide import StagedFile
from omnigraph.engine.upkeep.seen import live_states, registered
from omnigraph.manifest import layout
from omnigraph.manifest.store import BranchState
from omnigraph.storage.files import owner_of, referenced_units, unit_of
from omnigraph.storage.refs import delete_branch, read_branch, remove_leftovers
from omnigraph.storage.tables import newest_number

_MADE_MEANWHILE = "a branch of this name was made meanwhile"
_PENDING = "recovery pending: {}"


def drop_fork(ctx: CommitContext, location: str, name: str) -> str | None:
    """A fork of a name the manifest does not have. Nobody can make that branch meanwhile."""
    with ctx.locks.hold(layout.BRANCH_CONTROL_LOCK), ctx.locks.hold(name):
        if ctx.manifest.branch(name) is not None:
            return _MADE_MEANWHILE
        return _pending(ctx, name) or _drop(ctx, location, name)


def drop_stale_fork(ctx: CommitContext, location: str, name: str) -> str | None:
    """A fork that its live branch neither records nor can use."""
    with ctx.locks.hold(name):
        if ctx.manifest.branch(name) is None:
            return "its branch was deleted meanwhile; run cleanup again"
        state = ctx.manifest.state(name)
        if records(state, location, name):
            return f"branch '{name}' records it by now"
        if may_use(ctx, state, location, name):
            return f"branch '{name}' can use it"
        return _pending(ctx, name) or _drop(ctx, location, name)


def records(state: BranchState, location: str, name: str) -> bool:
    return any((place, fork) == (location, name) for _, place, fork in state.tables.groups)


def may_use(ctx: CommitContext, state: BranchState, location: str, name: str) -> bool:
    """Whether the next write on the branch would take the fork as it is; a living load may be staging on it."""
    wanted = [entry for entry in state.entries.values() if entry.location == location]
    return any(is_usable(ctx, name, entry) for entry in wanted)


def _drop(ctx: CommitContext, location: str, name: str) -> str | None:
    main, fork = ctx.ref(location, None), ctx.ref(location, name)
    if location != layout.COMMITS:
        # A sleeping writer may still hold handles of it; what it commits late must fit on no later fork.
        raise_fence(ctx.objects, name, {location: newest_number(fork)})
    if read_branch(main, name) is not None:
        delete_branch(main, name)
    remove_leftovers(fork)
    return None


def drop_tree(ctx: CommitContext, location: str, name: str, needed: Collection[str]) -> str | None:
    """What a deleted fork left without a reference."""
    with ctx.locks.hold(layout.BRANCH_CONTROL_LOCK), ctx.locks.hold(name):
        if ctx.manifest.branch(name) is not None:
            return _MADE_MEANWHILE
        if read_branch(ctx.ref(location, None), name) is not None:
            return "it has a reference again; run cleanup again"
        if holds_needed(ctx, location, name, needed):
            return "another fork reads its files"
        return _pending(ctx, name) or _drop(ctx, location, name)


def holds_needed(ctx: CommitContext, location: str, name: str, needed: Collection[str]) -> bool:
    files = ctx.objects.walk(ctx.ref(location, name).path)
    owned = (owner_of(file.key.removeprefix(f"{location}/"), [name]) for file in files)
    return any(branch == name and unit_of(below) in needed for branch, below in owned)


def remove_table(ctx: CommitContext, location: str) -> str | None:
    with ctx.locks.hold(None):
        waits = next(iter(pending_sidecars(ctx.objects)), None)
        if waits is not None:
            return _PENDING.format(waits.key)
        if location in registered(live_states(ctx)):
            return "it was registered meanwhile"
        ctx.objects.remove_tree(location)
    return None


def remove_heartbeat(ctx: CommitContext, heartbeat: Heartbeat) -> str | None:
    """A dead one with its folder; one that was renewed since it was read lives."""
    again = [h for h in list_heartbeats(ctx) if h.operation_id == heartbeat.operation_id]
    if any(h.readable and h.is_alive(now_us()) for h in again):
        return "its load came back to life"
    ctx.objects.remove_tree(heartbeat.folder)
    ctx.objects.delete(heartbeat.key)
    return None


def remove_staged(
    ctx: CommitContext,
    location: str,
    branch: str | None,
    files: Sequence[StagedFile],
    needed: Collection[str],
    known_head: int,
) -> tuple[int, int]:
    """Files no version refers to; how many went, and their bytes. A commit since they were judged is looked at too."""
    with ctx.locks.hold(branch):
        if _pending(ctx, branch) is not None:
            return 0, 0
        ref = ctx.ref(location, branch)
        fresh = needed if newest_number(ref) == known_head else {*needed, *referenced_units(ref)}
        gone = [staged.file for staged in files if staged.unit not in fresh]
        ctx.objects.delete_files([file.key for file in gone])
    return len(gone), sum(file.size for file in gone)


def remove_lock(ctx: CommitContext, name: str) -> str | None:
    """The lease of a name that is no branch, taken first so that nobody else has it."""
    with ctx.locks.hold(layout.BRANCH_CONTROL_LOCK), ctx.locks.try_hold(name) as lock:
        if lock is None:
            return "it is held"
        if ctx.manifest.branch(name) is not None:
            return _MADE_MEANWHILE
        ctx.objects.delete(lease_key(name))
    return None


def lease_key(name: str) -> str:
    return f"{layout.LOCK_DIR}/{layout.lock_name(name)}.json"


def _pending(ctx: CommitContext, branch: str | None) -> str | None:
    key = next((s.key for s in pending_sidecars(ctx.objects) if s.branch == branch), None)
    return _PENDING.format(key) if key is not None else None
