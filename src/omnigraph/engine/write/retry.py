"""Prepares a write, commits it, and prepares it again when another writer was first and the two commute."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace

from omnigraph.base.errors import Conflict, ExpectedVersionMismatch, Reclaimed, RowLevelCasContention, Unavailable
from omnigraph.commit.context import CommitContext
from omnigraph.commit.forks import fork_tables, inherited
from omnigraph.commit.locks import HeldLock
from omnigraph.commit.plan import Receipt, WritePlan
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.recovery.settle import settle_branch
from omnigraph.engine.evolve.catch_up import catch_up, lags
from omnigraph.engine.view import View
from omnigraph.storage.tables import Table


@dataclass(frozen=True)
class Attempt:
    """One preparation: the branch as it is now, and the branch lock if it is held already."""

    ctx: CommitContext
    view: View
    held: HeldLock | None = None

    def writable(self, table_keys: Iterable[str], actor: str | None = None) -> View:
        """The view, with forks for those of these tables that the branch only inherits."""
        return writable(self.ctx, self.view, table_keys, actor, self.held)


def writable(
    ctx: CommitContext,
    view: View,
    table_keys: Iterable[str],
    actor: str | None = None,
    held: HeldLock | None = None,
) -> View:
    """The view with these tables opened for writing: forked where the branch only inherits them, and with the columns
    of the schema, which main always has."""
    if view.branch is None:
        return view
    entries = {key: view.entry(key) for key in table_keys if key not in view.forks}
    there = {key: entry for key, entry in entries.items() if entry.table_version}
    wanted = inherited(view.branch, there.items())
    forks = fork_tables(ctx, view.branch, wanted, held) if wanted else {}
    own = {key: view.table(key) for key in there if key not in forks}
    opened: dict[str, Table | None] = {key: forks.get(key) or own.get(key) for key in entries}
    lagging = {key: table for key, table in opened.items() if lags(view, key, table)}
    ready = {key: table for key, table in opened.items() if table is not None and key not in lagging}
    view = replace(view, forks={**view.forks, **ready})
    return catch_up(ctx, view, lagging, actor, held) if lagging else view


def commit_with_retries(
    ctx: CommitContext,
    open_view: Callable[[], View],
    prepare: Callable[[Attempt], WritePlan | None],
    *,
    retries: int,
) -> Receipt | None:
    """Prepare and commit; None when there is nothing to do.

    A preparation that lost to another writer is repeated at most `retries` times, from the second on under the branch
    lock, where nobody can be first. Give 0 for writes whose result depends on what they read.
    """
    for number in range(retries + 1):
        view = open_view()
        lock: AbstractContextManager[HeldLock | None] = ctx.locks.hold(view.branch) if number else nullcontext()
        try:
            with lock as held:
                if held is not None:
                    settle_branch(ctx, view.branch, held)
                    view = open_view()
                with told_if_deleted(ctx, view):
                    plan = prepare(Attempt(ctx, view, held))
                    return None if plan is None else commit_plan(ctx, plan, held)
        except (ExpectedVersionMismatch, RowLevelCasContention):
            if number == retries:
                raise
    raise AssertionError("the loop returns or raises")


@contextmanager
def told_if_deleted(ctx: CommitContext, view: View) -> Iterator[None]:
    """A branch that is deleted takes the files of its tables from under a write that is prepared on them: say that."""
    try:
        yield
    except (Unavailable, Reclaimed) as error:
        known = ctx.manifest.branch(view.branch) if view.branch is not None else None
        if view.branch is None or (known is not None and known.incarnation == view.incarnation):
            raise
        told = f"branch '{view.branch}' was deleted while this write was prepared"
        raise Conflict(told, "Nothing was written.") from error
