"""A table of a branch gets a fork of its own before the branch first writes to it. Nothing is copied, nothing moves.

What is found in a fork's place decides (`_fork`); the manifest alone says whose a fork is.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import nullcontext

from omnigraph.base.errors import Conflict
from omnigraph.base.failpoints import reach
from omnigraph.commit.context import CommitContext
from omnigraph.commit.fences import fence_of
from omnigraph.commit.locks import HeldLock
from omnigraph.commit.recovery.settle import settle_branch
from omnigraph.manifest.snapshot import SubTableEntry, first_moved
from omnigraph.storage.apply import read_slot
from omnigraph.storage.refs import fork_branch_from_state, raise_above, read_branch, remove_leftovers
from omnigraph.storage.tables import Table, newest_number, open_table


def fork_tables(
    ctx: CommitContext, branch: str, entries: dict[str, SubTableEntry], held: HeldLock | None = None
) -> dict[str, Table]:
    """A fork for each of these tables, which the branch only inherits as `entries` say."""
    with ctx.locks.hold(branch) if held is None else nullcontext(held) as lock:
        state = settle_branch(ctx, branch, lock)
        moved = first_moved(state.entries, entries)
        if moved is not None:
            raise moved
        return {key: _fork(ctx, branch, key, entry) for key, entry in sorted(entries.items())}


def fork_anew(ctx: CommitContext, branch: str, table_key: str, entry: SubTableEntry) -> Table:
    """A fork of a table that the branch does not show, to be overwritten. The caller holds the lock of the branch."""
    fork = ctx.ref(entry.location, branch)
    if read_branch(fork.main, branch) is None:
        return _fork(ctx, branch, table_key, entry)
    # One was begun and never shown: what it holds does not count, and nothing prepared on it may land any more.
    return raise_above(fork, newest_number(fork))


def inherited(branch: str | None, entries: Iterable[tuple[str, SubTableEntry]]) -> dict[str, SubTableEntry]:
    """Those tables that a branch reads from the branch it was made of."""
    return {key: entry for key, entry in entries if branch is not None and entry.table_branch != branch}


def _fork(ctx: CommitContext, branch: str, table_key: str, entry: SubTableEntry) -> Table:
    main, fork = ctx.ref(entry.location, None), ctx.ref(entry.location, branch)
    fenced = fence_of(ctx.objects, branch).get(entry.location, 0)
    if read_branch(main, branch) is None:
        above = max(remove_leftovers(fork), fenced)
        made = fork_branch_from_state(main, entry.table_branch, branch, entry.table_version)
        reach("fork.post_create")
        return raise_above(fork, above + 1) if above else made
    if is_usable(ctx, branch, entry):
        head = newest_number(fork)
        # Its maker may have died before it raised it.
        return raise_above(fork, fenced + 1) if fenced and head <= fenced + 1 else open_table(fork, head, table_key)
    raise Conflict(
        f"stale fork of '{branch}' on {table_key}; run omnigraph cleanup",
        "Nothing was written. An earlier branch of this name left it behind.",
    )


def is_usable(ctx: CommitContext, branch: str, entry: SubTableEntry) -> bool:
    """Whether a fork the branch does not record was left by a crash before its first commit, where it is wanted."""
    fork = ctx.ref(entry.location, branch)
    known = read_branch(fork.main, branch)
    if known is None or (known.parent_branch, known.parent_version) != (entry.table_branch, entry.table_version):
        return False
    above_fork = [read_slot(fork, v) for v in range(entry.table_version + 1, newest_number(fork) + 1)]
    return all(s is not None and s.operation == "Restore" and s.operation_id is None for s in above_fork)
