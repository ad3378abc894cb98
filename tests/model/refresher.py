"""A refresh while somebody else holds the lock: it may roll forward, never restore, and it reads tables one by one."""

from collections.abc import Iterator

from .settle import StepFunction, classify, planned_pins
from .state import (
    Commit,
    Process,
    State,
    Step,
    World,
    act,
    at_rest,
    is_settled,
    sees_higher_token,
    without_sidecar,
)


def start(world: World, state: State, me: Process) -> Iterator[Step]:
    if me.runs:
        for sidecar in state.sidecars:
            looking = me._replace(step="look", sidecar=sidecar, runs=me.runs - 1)
            yield act(state, looking, f"reads the sidecar of {sidecar.operation}, without the lock")


def look(world: World, state: State, me: Process) -> Iterator[Step]:
    if me.progress < world.tables:
        head = len(state.tables[me.progress]) - 1
        seen = me._replace(progress=me.progress + 1, seen=(*me.seen, head))
        yield act(state, seen, f"sees table {me.progress} at v{head}")
    else:
        yield decide(world, state, me)


def decide(world: World, state: State, me: Process) -> Step:
    sidecar = me.sidecar
    assert sidecar is not None
    head = len(state.manifest) - 1
    if is_settled(state.manifest, sidecar.operation):
        return act(state, me._replace(step="delete"), f"{sidecar.operation} is settled already")
    tables = tuple(table[: last + 1] for table, last in zip(state.tables, me.seen, strict=True))
    decision = classify(world, tables, state.manifest, sidecar)
    if decision != "forward" or sees_higher_token(state.manifest, sidecar.token):
        return act(state, at_rest(me, "idle"), f"{sidecar.operation} is not to be rolled forward, leaves it")
    rolling = me._replace(step="swap", head=head)
    return act(state, rolling, f"decides to roll {sidecar.operation} forward on head {head}")


def swap(world: World, state: State, me: Process) -> Iterator[Step]:
    sidecar = me.sidecar
    assert sidecar is not None
    who = sidecar.operation
    if len(state.manifest) - 1 != me.head:
        yield act(state, at_rest(me, "idle"), "roll-forward: lost the compare-and-swap, leaves it")
        return
    pins = planned_pins(world, who, sidecar.expected, state.manifest[-1].pins, me.seen)
    commit = Commit(who, who, "rolled_forward", pins, sidecar.token, sidecar.validated)
    deleting = me._replace(step="delete", seen=(), head=-1)
    yield act(state, deleting, f"roll-forward of {who} LANDS, {pins=}", manifest=(*state.manifest, commit))


def delete(world: World, state: State, me: Process) -> Iterator[Step]:
    assert me.sidecar is not None
    who = me.sidecar.operation
    yield act(state, at_rest(me, "idle"), f"deletes the sidecar of {who}", sidecars=without_sidecar(state, who))


REFRESHER_STEPS: dict[str, StepFunction] = {"idle": start, "look": look, "swap": swap, "delete": delete}
