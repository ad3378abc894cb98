"""What cleanup reads before it decides, and what must hold before it may: in this order, so that nothing slips through.

Heartbeats come before branches: a load that starts later writes later files. Sidecars and drift of a living writer are
waited for; those of a dead one are refused.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import TypeVar

from omnigraph.base.clock import monotonic_ms, now_us
from omnigraph.base.errors import Conflict, Drift, OmniError
from omnigraph.commit.context import CommitContext
from omnigraph.commit.sidecar import pending_sidecars
from omnigraph.commit.staging import Heartbeat, list_heartbeats
from omnigraph.engine.upkeep.decide import CLOCK_SLACK_US, ForkUse, dead_heartbeats, staged_before
from omnigraph.manifest import layout
from omnigraph.manifest.store import BranchState, branch_label
from omnigraph.storage.refs import BranchRef
from omnigraph.storage.tables import head_version

_POLL_S = 0.05
T = TypeVar("T")


@dataclass(frozen=True)
class Seen:
    """A graph as cleanup found it. `at_us` is the time before anything else was read."""

    at_us: int
    grace_us: int
    heartbeats: tuple[Heartbeat, ...]
    states: Mapping[str | None, BranchState]

    @cached_property
    def dead(self) -> list[Heartbeat]:
        return dead_heartbeats(self.heartbeats, self.at_us, self.at_us - self.grace_us - CLOCK_SLACK_US)

    @cached_property
    def living(self) -> list[Heartbeat]:
        return [h for h in self.heartbeats if h not in self.dead]

    @cached_property
    def limit_us(self) -> int:
        return staged_before(self.at_us, self.grace_us, self.living)

    @cached_property
    def registered(self) -> dict[str, str]:
        """The table key of every location that a live branch ever registered."""
        return registered(self.states)

    @cached_property
    def use(self) -> ForkUse:
        readers = {
            (location, fork): branch_label(branch)
            for branch, state in self.states.items()
            for _, location, fork in state.tables.groups
            if fork is not None
        }
        return ForkUse(frozenset(b for b in self.states if b is not None), readers)


def registered(states: Mapping[str | None, BranchState]) -> dict[str, str]:
    found = {
        place: key for state in states.values() for key, places in state.tables.locations.items() for place in places
    }
    found |= {place: key for state in states.values() for key, place, _ in state.tables.groups}
    return found


def look(ctx: CommitContext, grace: timedelta) -> Seen:
    """Everything cleanup decides from, or the reason why it may not run now."""
    at_us = now_us()
    heartbeats = tuple(list_heartbeats(ctx))
    refuse_pending(ctx)
    states = live_states(ctx)
    _refuse_drift(ctx)
    return Seen(at_us, grace // timedelta(microseconds=1), heartbeats, states)


def live_states(ctx: CommitContext) -> dict[str | None, BranchState]:
    """Every live branch; all must be readable, for what one of them needs cannot be known otherwise."""
    names = ctx.manifest.branches()
    refuse_schema_apply(ctx, names)
    found = {branch: _live_state(ctx, branch, names.get(branch or "")) for branch in (None, *sorted(names))}
    return {branch: state for branch, state in found.items() if state is not None}


def refuse_schema_apply(ctx: CommitContext, names: Mapping[str, BranchRef] | None = None) -> None:
    if layout.SCHEMA_LOCK_BRANCH in (ctx.manifest.branches() if names is None else names):
        raise Conflict("a schema apply is running", "Nothing was changed. Retry when it is done.")


def _live_state(ctx: CommitContext, branch: str | None, known: BranchRef | None) -> BranchState | None:
    """The branch, or None when it was deleted since it was listed as `known`."""
    try:
        return ctx.manifest.state(branch)
    except OmniError as error:
        now = ctx.manifest.branch(branch) if branch is not None else None
        if branch is not None and now is None:
            return None
        if now is not None and known is not None and now.incarnation != known.incarnation:
            return _live_state(ctx, branch, now)  # made again under its name while it was read
        raise Conflict(
            f"could not classify live branch '{branch_label(branch)}': {error}",
            f"Nothing was removed. {error.hint}".strip(),
        ) from error


def refuse_pending(ctx: CommitContext) -> None:
    """Refuse while an interrupted write waits for recovery. Writes that go on meanwhile are not waited for."""
    first = {s.operation_id: s for s in pending_sidecars(ctx.objects)}
    branches = {s.branch for s in first.values()}
    left = outlasting(
        ctx,
        lambda: {s.operation_id for s in pending_sidecars(ctx.objects)} & first.keys() if first else set(),
        lambda: any(is_held(ctx, b) for b in branches),
    )
    if left:
        raise Conflict(
            f"recovery pending: {first[min(left)].key}",
            "Nothing was changed. Open the graph read-write or refresh to settle it, then retry.",
        )


def _refuse_drift(ctx: CommitContext) -> None:
    left = outlasting(ctx, lambda: _drift(ctx), lambda: is_held(ctx, None))
    if left:
        table_key, pin, head = min(left)
        raise Drift(table_key, "main", pin, head)


def _drift(ctx: CommitContext) -> set[tuple[str, int, int]]:
    """Tables of main whose head is not their pin, with both; a commit between the two looks seems one."""
    pins = [(k, e.table_version, ctx.ref(e.location, e.table_branch)) for k, e in ctx.manifest.state().entries.items()]
    heads = [(key, pin, head_version(ref, pin)) for key, pin, ref in pins]
    return {found for found in heads if found[1] != found[2]}


def is_held(ctx: CommitContext, branch: str | None) -> bool:
    holder = ctx.locks.holder(branch)
    return holder is not None and holder.held and holder.looks != "gone"


def outlasting(ctx: CommitContext, troubles: Callable[[], set[T]], busy: Callable[[], bool]) -> set[T]:
    """The troubles that stay after every living writer had time to end its own."""
    deadline = monotonic_ms() + ctx.settings.write_lock_timeout_ms
    staying = troubles()
    while staying:
        # Asked in this order: a writer ends its trouble before it lets go of its lock. The next writer's is another.
        waiting = busy() and monotonic_ms() < deadline
        staying &= troubles()
        if not waiting:
            break
        time.sleep(_POLL_S)
    return staying
