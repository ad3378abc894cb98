"""The branch lock: who may take it, what a holder learns when it checks.

flock: waits until the holder ends; the operating system frees it when the holder is killed.
lease: may be taken over at any moment, which stands for every pause, expiry and clock difference. A check is only as
good as its moment, and may even be wrong (a stale check).
"""

from collections.abc import Iterator
from typing import NamedTuple

from .state import Faults, Lock, Process, State, Step, World, act, at_rest

NOBODY = ""


def lock_answers(world: World, state: State, me: Process) -> Iterator[tuple[str, Lock, Faults]]:
    """The ways in which the process can get the lock now; none while it has to wait."""
    mine = Lock(me.name, state.lock.token + 1)
    if state.lock.holder == NOBODY:
        yield f"locks the branch, token {mine.token}", mine, state.faults
    elif world.leased and state.faults.takeovers:
        what = f"TAKES OVER the lease of {state.lock.holder}, token {mine.token}"
        yield what, mine, state.faults.spend("takeovers")


def holds_lock(state: State, me: Process) -> bool:
    return state.lock == (me.name, me.token)


def released(state: State, me: Process) -> Lock:
    return Lock(NOBODY, state.lock.token) if holds_lock(state, me) else state.lock


class LeaseAnswer(NamedTuple):
    held: bool
    what: str
    faults: Faults


def lease_answers(state: State, me: Process) -> Iterator[LeaseAnswer]:
    """What a lease check may answer: the truth, or a stale yes."""
    if holds_lock(state, me):
        yield LeaseAnswer(True, "lease check: held", state.faults)
        return
    yield LeaseAnswer(False, "lease check: LOST", state.faults)
    if state.faults.stale_checks:
        yield LeaseAnswer(True, "lease check: held (STALE, it is lost)", state.faults.spend("stale_checks"))


def end(state: State, me: Process, outcome: str, what: str, **shared: object) -> Step:
    """The writer answers its client and unlocks."""
    return act(state, at_rest(me, "done", outcome), what, lock=released(state, me), **shared)


def stop(state: State, me: Process, why: str, **shared: object) -> Step:
    """Lock lost, or a step of settling failed: leave everything as it is for the next lock holder."""
    if me.role == "recoverer":
        return act(state, at_rest(me, "idle"), f"{why}; stops", lock=released(state, me), **shared)
    if me.errand == "undo":
        return end(state, me, "in_doubt", f"{why}; IN DOUBT, sidecar left", **shared)
    return end(state, me, "refused", f"{why}; REFUSED before arming", **shared)
