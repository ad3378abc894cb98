"""Branches are made and removed here. The manifest's own branch comes first and goes first: it alone says what exists.

Holds at every return:
  1. A name is a branch iff the manifest has a branch of that name; what else carries the name is its or an orphan.
  2. No two live names are path ancestors of each other: creation and deletion hold one lock for the whole graph.
  3. A writer of the branch is done or refused before it goes, and nothing prepared on it fits on a later one.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager

from omnigraph.base.errors import BadRequest, Conflict, NotFound
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.fences import fence_of, raise_fence
from omnigraph.commit.locks import HeldLock
from omnigraph.commit.schema_lock import refuse_while_applying
from omnigraph.commit.sidecar import pending_sidecars
from omnigraph.commit.tags import refuse_tag_name, tags_that_need
from omnigraph.manifest import layout
from omnigraph.manifest.branches import checked_name, create_manifest_branch
from omnigraph.manifest.store import BranchState, branch_label, branch_name, refuse_internal
from omnigraph.storage.refs import (
    BranchRef,
    delete_branch,
    fork_branch_from_state,
    raise_above,
    read_branch,
    remove_leftovers,
)
from omnigraph.storage.tables import TableRef, newest_number, table_exists

_log = logging.getLogger("omnigraph.branches")


@contextmanager
def _control(ctx: CommitContext, name: str) -> Iterator[HeldLock]:
    """Nobody else makes or removes branches or tags, and nobody writes on this branch."""
    with ctx.locks.hold(layout.BRANCH_CONTROL_LOCK) as lock, ctx.locks.hold(name):
        yield lock


def make_branch(ctx: CommitContext, source: str | None, name: str) -> None:
    """A new branch at the head of `source`; no table is copied, no commit made."""
    name = checked_name(name)
    if branch_name(name) is None:
        raise BadRequest("cannot create branch 'main'", "It always exists.")
    refuse_internal(source)
    with _control(ctx, name) as lock:
        refuse_while_applying(ctx)
        refuse_tag_name(ctx, name)
        above = fence_of(ctx.objects, name).get(layout.MANIFEST, 0)
        if read_branch(ctx.manifest.ref(), name) is None:
            above = max(above, remove_leftovers(ctx.manifest.ref(name)))
        create_manifest_branch(ctx.manifest, source, name)
        reach("branch_create.post_manifest")
        try:
            lock.check()  # else a tag of this name may have been made meanwhile
            if above:
                raise_above(ctx.manifest.ref(name), above + 1)
            fork_commit_table(ctx, source, name)
        except Exception:
            delete_branch(ctx.manifest.ref(), name)
            raise
        finally:
            ctx.manifest.forget(name)


def fork_commit_table(ctx: CommitContext, source: str | None, name: str) -> None:
    """The derived branch. One found beforehand is a leftover of an incomplete delete."""
    table, fork = ctx.ref(layout.COMMITS, None), ctx.ref(layout.COMMITS, name)
    if not table_exists(table):
        return
    if read_branch(table, name) is not None:
        delete_branch(table, name)
    remove_leftovers(fork)
    origin = ctx.ref(layout.COMMITS, source)
    if not table_exists(origin):
        source, origin = None, table
    fork_branch_from_state(table, source, name, newest_number(origin))


def remove_branch(ctx: CommitContext, name: str, current: str | None) -> None:
    """Remove a branch nobody depends on. Its forks are reclaimed best-effort; what stays is for cleanup."""
    if branch_name(name) is None:
        raise BadRequest("cannot delete branch 'main'", "main always exists.")
    refuse_internal(name)
    if name == current:
        raise Conflict(f"'{name}' is the currently active branch", "Switch to another branch first.")
    with _control(ctx, name) as lock:
        refuse_while_applying(ctx)
        refs = ctx.manifest.branches()
        if name not in refs:
            raise NotFound(f"branch '{name}' not found", "See omnigraph branch list.")
        state = ctx.manifest.state(name)
        _refuse_dependants(ctx, name, refs, state)
        _refuse_pending(ctx, name)
        owned = _owned(ctx, state)
        heads = {ref.location: newest_number(ref) for ref in owned}
        raise_fence(ctx.objects, name, {**heads, layout.MANIFEST: newest_number(ctx.manifest.ref(name))})
        reach("branch_delete.pre_manifest")
        lock.check()  # else a tag may have been put on it meanwhile
        delete_branch(ctx.manifest.ref(), name)
        ctx.manifest.forget(name)
        reach("branch_delete.post_manifest")
        for ref in (*owned, ctx.ref(layout.COMMITS, name)):
            _reclaim(ref)


def _owned(ctx: CommitContext, state: BranchState) -> list[TableRef]:
    """The forks of a branch, those it made and never recorded included."""
    every = [ctx.ref(e.location, state.branch) for e in state.entries.values()]
    return [ref for ref in every if read_branch(ref.main, state.branch or "") is not None]


def _refuse_dependants(ctx: CommitContext, name: str, refs: dict[str, BranchRef], state: BranchState) -> None:
    children = sorted(child for child, ref in refs.items() if ref.parent_branch == name)
    others = [None, *sorted(n for n in refs if n != name and n != layout.SCHEMA_LOCK_BRANCH)]
    readers = [] if children else [b for b in others if _reads_from(ctx, b, name)]
    tags = tags_that_need(ctx, state)
    branches = [f"branch '{branch}'" for branch in (*children, *map(branch_label, readers))]
    if dependants := [*branches, *(f"tag '{tag}'" for tag in tags)]:
        raise Conflict(
            f"branch '{name}' cannot be deleted: {', '.join(dependants)} still depends on it",
            f"See omnigraph tag delete {tags[0]}." if tags and not branches else "Delete what depends on it first.",
        )


def _reads_from(ctx: CommitContext, branch: str | None, owner: str) -> bool:
    return any(e.table_branch == owner for e in ctx.manifest.state(branch).entries.values())


def _refuse_pending(ctx: CommitContext, name: str) -> None:
    pending = [s.key for s in pending_sidecars(ctx.objects) if s.branch == name]
    if pending:
        raise Conflict(
            f"recovery pending: {pending[0]}", "Open the graph read-write or refresh to settle it, then retry."
        )


def _reclaim(ref: TableRef) -> None:
    assert ref.branch is not None
    try:
        if table_exists(ref.main) and read_branch(ref.main, ref.branch) is not None:
            delete_branch(ref.main, ref.branch)
    except Exception as error:
        _log.warning("the fork '%s' of %s stays until cleanup: %s", ref.branch, ref.location, error)
