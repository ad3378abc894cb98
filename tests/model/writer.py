"""One write, step by step, as the specification numbers it; settling and undoing are in `settle`.

  stage -> lock -> list ... recheck -> arm -> commit_check -> commit -> read_slot -> ... (phases A and B)
        -> publish_check -> publish_read -> publish_swap -> clear -> answer              (phases C and D)

A table commit whose answer is lost needs no step of its own: the writer always reads the slot, whatever it was told.
"""

from collections.abc import Iterator

from .lease import end, lease_answers, lock_answers
from .settle import SETTLE_STEPS, StepFunction, planned_pins
from .state import (
    Commit,
    Content,
    DelayedPublish,
    DelayedSidecar,
    DelayedVersion,
    Process,
    Sidecar,
    State,
    Step,
    World,
    act,
    is_committed,
    sees_higher_token,
    table_heads,
    with_sidecar,
    without_sidecar,
)
from .substrate import append_version, data_version, slot_holds


def validated(world: World, state: State, me: Process) -> tuple[tuple[int, Content], ...]:
    """What the write saw, when it was staged, in the tables it only reads."""
    pins = state.manifest[me.staged_at].pins
    return tuple((table, state.tables[table][pins[table]].content) for table in world.operations[me.name].reads)


def stage(world: World, state: State, me: Process) -> Iterator[Step]:
    head = len(state.manifest) - 1
    yield act(state, me._replace(step="lock", staged_at=head), f"stages on commit {head}")


def lock(world: World, state: State, me: Process) -> Iterator[Step]:
    for what, taken, faults in lock_answers(world, state, me):
        yield act(state, me._replace(step="list", token=taken.token), what, lock=taken, faults=faults)


def recheck(world: World, state: State, me: Process) -> Iterator[Step]:
    operation = world.operations[me.name]
    head = len(state.manifest) - 1
    staged, current = state.manifest[me.staged_at].pins, state.manifest[head].pins
    heads = table_heads(state.tables)
    if any(staged[table] != current[table] for table in operation.writes + operation.reads):
        yield end(state, me, "refused", "re-check: a recorded version moved, REFUSED")
    elif any(heads[table] != current[table] for table in operation.writes):
        yield end(state, me, "refused", "re-check: a head is not its pin, REFUSED")
    else:
        yield act(state, me._replace(step="arm", parent=head), f"re-check: all as staged, head {head}")


def arm(world: World, state: State, me: Process) -> Iterator[Step]:
    pins, writes = state.manifest[me.parent].pins, world.operations[me.name].writes
    expected = tuple(pin if table in writes else None for table, pin in enumerate(pins))
    sidecar = Sidecar(me.name, expected, me.parent, me.token, validated(world, state, me))
    armed = me._replace(step="commit_check", progress=0)
    yield act(state, armed, "A: arms its sidecar", sidecars=with_sidecar(state, sidecar))
    if not state.faults.lost_answers:
        return
    faults, unsure = state.faults.spend("lost_answers"), me._replace(step="arm_unsure")
    yield act(state, unsure, "A: arms, answer lost", sidecars=with_sidecar(state, sidecar), faults=faults)
    if world.leased:
        in_flight = (*state.in_flight, DelayedSidecar(sidecar))
        yield act(state, unsure, "A: arming times out, PUT in flight", in_flight=in_flight, faults=faults)


def arm_unsure(world: World, state: State, me: Process) -> Iterator[Step]:
    if any(sidecar.operation == me.name for sidecar in state.sidecars):
        yield act(state, me._replace(step="commit_check", progress=0), "A: finds its sidecar")
    else:
        yield end(state, me, "refused", "A: its sidecar is absent, REFUSED")


def check_lease(world: World, state: State, me: Process) -> Iterator[Step]:
    step = "commit" if me.step == "commit_check" else "publish_read"
    for answer in lease_answers(state, me):
        if answer.held:
            yield act(state, me._replace(step=step), f"{answer.what}, before a {step}", faults=answer.faults)
        else:
            yield end(state, me, "in_doubt", f"{answer.what}; IN DOUBT, sidecar left")


def commit(world: World, state: State, me: Process) -> Iterator[Step]:
    operation = world.operations[me.name]
    table, effect = operation.writes[me.progress], (me.name, me.progress)
    slot = operation.slot(state.manifest[me.parent].pins, me.progress)
    version, lands_at = data_version(state.tables[table], effect, slot - 1), len(state.tables[table])
    reading = me._replace(step="read_slot")
    if version is None:
        yield act(state, reading, f"B: commit to table {table} refused by Lance")
        return
    yield act(
        state,
        reading,
        f"B: commit to table {table} lands as v{lands_at}" + (f", REBASED from v{slot}" if lands_at != slot else ""),
        tables=append_version(state.tables, table, version),
    )
    if state.faults.lost_answers:
        faults = state.faults.spend("lost_answers")
        yield act(state, reading, f"B: commit to table {table} fails with an I/O error", faults=faults)
        if world.leased:
            in_flight = (*state.in_flight, DelayedVersion(table, lands_at, version))
            what = f"B: commit to table {table} times out, PUT in flight for v{lands_at}"
            yield act(state, reading, what, in_flight=in_flight, faults=faults)


def read_slot(world: World, state: State, me: Process) -> Iterator[Step]:
    operation = world.operations[me.name]
    table, effect = operation.writes[me.progress], (me.name, me.progress)
    slot = operation.slot(state.manifest[me.parent].pins, me.progress)
    if slot_holds(state.tables[table], slot, effect):
        step = "commit_check" if me.progress + 1 < len(operation.writes) else "publish_check"
        yield act(state, me._replace(step=step, progress=me.progress + 1), f"B: table {table} v{slot} holds its uuid")
        return
    yield undoing(state, me, f"B: table {table} v{slot} does not hold its uuid")
    found = any(version.effect == effect for version in state.tables[table])
    if state.faults.retries and not found:
        again, faults = me._replace(step="commit_check"), state.faults.spend("retries")
        yield act(state, again, f"B: nowhere in table {table}, sends it again", faults=faults)


def publish_read(world: World, state: State, me: Process) -> Iterator[Step]:
    head = len(state.manifest) - 1
    if is_committed(state.manifest, me.name):
        yield act(state, me._replace(step="clear"), "C: its commit id is there already")
    elif not may_publish_onto(world, state, me, head):
        yield undoing(state, me, f"C: head {head} is not one to publish onto")
    elif sees_higher_token(state.manifest, me.token):
        yield undoing(state, me, "C: a higher token is in the manifest")
    else:
        yield act(state, me._replace(step="publish_swap", head=head), f"C: reads head {head}")
        if state.faults.lost_answers:
            yield undoing(state, me, "C: publisher gives up", faults=state.faults.spend("lost_answers"))


def may_publish_onto(world: World, state: State, me: Process, head: int) -> bool:
    """The head of the re-check; without parent binding, any head with the versions the write expects."""
    if world.rules.parent_binding:
        return head == me.parent
    operation = world.operations[me.name]
    expected, current = state.manifest[me.parent].pins, state.manifest[head].pins
    return all(expected[table] == current[table] for table in operation.writes + operation.reads)


def publish_swap(world: World, state: State, me: Process) -> Iterator[Step]:
    again = me._replace(step="publish_read", head=-1)
    if len(state.manifest) - 1 != me.head:
        yield act(state, again, "C: lost the compare-and-swap, reads again")
        return
    expected, heads = state.manifest[me.parent].pins, table_heads(state.tables)
    pins = planned_pins(world, me.name, expected, state.manifest[-1].pins, heads)
    row = Commit(me.name, me.name, "published", pins, me.token, validated(world, state, me))
    manifest = (*state.manifest, row)
    yield act(state, me._replace(step="clear", head=-1), f"C: publish LANDS, {pins=}", manifest=manifest)
    if state.faults.lost_answers:
        faults = state.faults.spend("lost_answers")
        yield act(state, again, f"C: publish LANDS, {pins=}, answer lost", manifest=manifest, faults=faults)
        if world.leased:
            in_flight = (*state.in_flight, DelayedPublish(me.head, row))
            yield act(state, again, "C: publish times out, PUT in flight", in_flight=in_flight, faults=faults)


def clear(world: World, state: State, me: Process) -> Iterator[Step]:
    yield act(state, me._replace(step="answer"), "D: deletes its sidecar", sidecars=without_sidecar(state, me.name))


def answer(world: World, state: State, me: Process) -> Iterator[Step]:
    yield end(state, me, "acked", "D: ACKED, unlocks")


def undoing(state: State, me: Process, why: str, **shared: object) -> Step:
    undo = me._replace(step="undo", errand="undo", progress=0, head=-1)
    return act(state, undo, f"{why}; undoes", **shared)


WRITER_STEPS: dict[str, StepFunction] = {
    **SETTLE_STEPS,
    "stage": stage,
    "lock": lock,
    "recheck": recheck,
    "arm": arm,
    "arm_unsure": arm_unsure,
    "commit_check": check_lease,
    "commit": commit,
    "read_slot": read_slot,
    "publish_check": check_lease,
    "publish_read": publish_read,
    "publish_swap": publish_swap,
    "clear": clear,
    "answer": answer,
}
