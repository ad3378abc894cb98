"""Settling under the lock: what a recoverer does, a writer before its re-check, and a writer that undoes itself.

  list -> observe -> forward_check -> forward_read -> forward_swap -> delete -> list            roll forward
                  -> restore_check -> restore -> ... -> settle_read -> settle_swap -> delete    roll back
  list -> restore_check -> ... -> settle_swap -> list                                           heal
  undo -> restore_check -> ... -> settle_swap -> delete, refused                                a writer's undo

Effects come first, then the commit, then the deletion of the sidecar. A lost compare-and-swap starts over.
"""

from collections.abc import Callable, Iterator

from .lease import end, lease_answers, released, stop
from .state import (
    HEAL,
    Commit,
    Pins,
    Process,
    Restore,
    Sidecar,
    State,
    Step,
    Table,
    World,
    act,
    at_rest,
    is_committed,
    is_settled,
    sees_higher_token,
    table_heads,
    without_sidecar,
)
from .substrate import append_version, restore_version, slot_holds

COMMIT_KIND = {"roll_back": "rolled_back", "undo": "undone", HEAL: "healed"}


def classify(world: World, tables: tuple[Table, ...], manifest: tuple[Commit, ...], sidecar: Sidecar) -> str:
    """abort, forward or back: what the specification's classification says about a sidecar not yet settled."""
    operation, pins = world.operations[sidecar.operation], manifest[-1].pins
    if any(len(tables[table]) - 1 < pins[table] for table in operation.tables()):
        return "abort"
    if world.rules.parent_binding and len(manifest) - 1 != sidecar.parent:
        return "back"
    if any(sidecar.expected[table] != pins[table] for table in operation.tables()):
        return "back"
    for step, table in enumerate(operation.writes):
        if not slot_holds(tables[table], operation.slot(sidecar.expected, step), (sidecar.operation, step)):
            return "back"
    return "forward"


def planned_pins(world: World, operation_id: str, expected: tuple[int | None, ...], pins: Pins, heads: Pins) -> Pins:
    """The pins of the commit that makes a write visible: exactly those it planned, by the rule of exact pins."""
    operation = world.operations[operation_id]
    planned = list(pins)
    for table in operation.tables():
        base = expected[table]
        assert base is not None
        planned[table] = base + operation.steps_on(table) if world.rules.exact_pins else heads[table]
    return tuple(planned)


def drifted(state: State, tables: tuple[int, ...]) -> tuple[Restore, ...]:
    """A restore to the current pin for each of the tables whose head is above it."""
    pins = state.manifest[-1].pins
    return tuple(Restore(table, pins[table]) for table in tables if len(state.tables[table]) - 1 > pins[table])


def list_sidecars(world: World, state: State, me: Process) -> Iterator[Step]:
    if state.sidecars:
        first = state.sidecars[0]
        yield act(state, me._replace(step="observe", sidecar=first), f"reads the sidecar of {first.operation}")
        return
    scope = world.operations[me.name].tables() if me.role == "writer" else tuple(range(world.tables))
    restores = drifted(state, scope) if world.rules.heal else ()
    if restores:
        healing = me._replace(
            step="restore_check", errand=HEAL, restores=restores, progress=0, head=len(state.manifest) - 1
        )
        yield act(state, healing, f"no sidecar but {describe(restores)} above the pin: heals")
    elif me.role == "writer":
        yield act(state, me._replace(step="recheck"), "nothing to settle")
    else:
        yield act(state, at_rest(me, "idle"), "nothing to settle, unlocks", lock=released(state, me))


def observe(world: World, state: State, me: Process) -> Iterator[Step]:
    sidecar = me.sidecar
    assert sidecar is not None
    head = len(state.manifest) - 1
    if is_settled(state.manifest, sidecar.operation):
        yield act(state, me._replace(step="delete"), f"{sidecar.operation} is settled already")
        return
    decision = classify(world, state.tables, state.manifest, sidecar)
    if decision == "abort":
        yield act(state, me._replace(step="stuck"), "ABORTS: a head is below its pin")
    elif decision == "forward":
        yield act(state, me._replace(step="forward_check", head=head), f"decides to roll {sidecar.operation} forward")
    else:
        restores = drifted(state, world.operations[sidecar.operation].tables())
        step = "restore_check" if restores or world.rules.settle_before_delete else "delete"
        back = me._replace(step=step, errand="roll_back", restores=restores, progress=0, head=head)
        yield act(state, back, f"decides to roll {sidecar.operation} back, {describe(restores)} to restore")


def forward_check(world: World, state: State, me: Process) -> Iterator[Step]:
    for answer in lease_answers(state, me):
        if answer.held:
            yield act(state, me._replace(step="forward_read"), f"{answer.what}, before a publish", faults=answer.faults)
        else:
            yield stop(state, me, answer.what)


def forward_read(world: World, state: State, me: Process) -> Iterator[Step]:
    sidecar = me.sidecar
    assert sidecar is not None
    head = len(state.manifest) - 1
    if head != me.head:
        yield act(state, me._replace(step="observe", head=-1), "roll-forward: the head moved, starts over")
    elif sees_higher_token(state.manifest, me.token):
        yield stop(state, me, "roll-forward: a higher token is in the manifest")
    else:
        yield act(state, me._replace(step="forward_swap"), f"roll-forward: reads head {head}")


def forward_swap(world: World, state: State, me: Process) -> Iterator[Step]:
    sidecar = me.sidecar
    assert sidecar is not None
    who = sidecar.operation
    if len(state.manifest) - 1 != me.head:
        yield act(state, me._replace(step="observe", head=-1), "roll-forward: lost the compare-and-swap, starts over")
        return
    pins = planned_pins(world, who, sidecar.expected, state.manifest[-1].pins, table_heads(state.tables))
    manifest = (*state.manifest, Commit(who, who, "rolled_forward", pins, me.token, sidecar.validated))
    yield act(state, me._replace(step="delete", head=-1), f"roll-forward of {who} LANDS, {pins=}", manifest=manifest)
    if state.faults.lost_answers:
        again = me._replace(step="observe", head=-1)
        faults = state.faults.spend("lost_answers")
        yield act(state, again, f"roll-forward of {who} LANDS, answer lost", manifest=manifest, faults=faults)


def restore_check(world: World, state: State, me: Process) -> Iterator[Step]:
    """The lease is checked before each restore, and before the publish that ends the errand."""
    step = "restore" if me.progress < len(me.restores) else "settle_read"
    for answer in lease_answers(state, me):
        if answer.held:
            yield act(state, me._replace(step=step), f"{answer.what}, before a {step}", faults=answer.faults)
        else:
            yield stop(state, me, answer.what)


def restore(world: World, state: State, me: Process) -> Iterator[Step]:
    planned = me.restores[me.progress]
    version = restore_version(state.tables[planned.table], stamped_as(me), planned.target)
    done = planned._replace(landed=len(state.tables[planned.table]))
    restores = (*me.restores[: me.progress], done, *me.restores[me.progress + 1 :])
    moved = me._replace(step="restore_check", restores=restores, progress=me.progress + 1)
    what = f"restores table {planned.table} to v{planned.target}, as v{done.landed}"
    yield act(state, moved, what, tables=append_version(state.tables, planned.table, version))
    if state.faults.lost_answers:
        faults = state.faults.spend("lost_answers")
        yield stop(state, me, f"restore of table {planned.table} fails with an I/O error", faults=faults)


def settle_read(world: World, state: State, me: Process) -> Iterator[Step]:
    head = len(state.manifest) - 1
    if world.rules.bound_settle and head != me.head:
        yield act(state, started_over(me), f"{me.errand}: the head moved, starts over")
    elif sees_higher_token(state.manifest, me.token):
        yield stop(state, me, f"{me.errand}: a higher token is in the manifest")
    else:
        yield act(state, me._replace(step="settle_swap", head=head), f"{me.errand}: reads head {head}")


def settle_swap(world: World, state: State, me: Process) -> Iterator[Step]:
    if len(state.manifest) - 1 != me.head:
        again = started_over(me) if world.rules.bound_settle else me._replace(step="settle_read")
        yield act(state, again, f"{me.errand}: lost the compare-and-swap, starts over")
        return
    who = stamped_as(me)
    pins = list(state.manifest[-1].pins)
    for each in me.restores:
        pins[each.table] = max(pins[each.table], each.landed)
    kind = COMMIT_KIND[me.errand]
    manifest = (*state.manifest, Commit(f"{kind}:{who}", who, kind, tuple(pins), me.token, ()))
    after = started_over(me) if me.errand == HEAL else me._replace(step="delete", head=-1, restores=(), progress=0)
    yield act(state, after, f"{me.errand} LANDS, pins={tuple(pins)}", manifest=manifest)
    if state.faults.lost_answers:
        faults = state.faults.spend("lost_answers")
        yield act(state, started_over(me), f"{me.errand} LANDS, answer lost", manifest=manifest, faults=faults)


def delete(world: World, state: State, me: Process) -> Iterator[Step]:
    sidecars = without_sidecar(state, stamped_as(me))
    if me.errand == "undo":
        yield end(state, me, "refused", "deletes its sidecar, REFUSED", sidecars=sidecars)
    else:
        yield act(state, started_over(me), f"deletes the sidecar of {stamped_as(me)}", sidecars=sidecars)


def undo(world: World, state: State, me: Process) -> Iterator[Step]:
    """A writer that cannot go on takes its own effects back."""
    if world.rules.own_commit_check and is_committed(state.manifest, me.name):
        yield act(state, me._replace(step="clear", errand=""), "undo: finds itself committed, so it succeeded")
        return
    if world.rules.own_commit_check and is_settled(state.manifest, me.name):
        yield act(state, me._replace(step="delete"), "undo: finds itself recorded as rolled back")
        return
    restores = drifted(state, world.operations[me.name].tables())
    step = "restore_check" if restores or world.rules.settle_before_delete else "delete"
    undoing = me._replace(step=step, restores=restores, progress=0, head=len(state.manifest) - 1)
    yield act(state, undoing, f"undo: {describe(restores)} to restore")


def started_over(me: Process) -> Process:
    """Back to the first observation of the errand."""
    fresh = me._replace(restores=(), progress=0, head=-1, sidecar=None)
    return fresh._replace(step="undo") if me.errand == "undo" else fresh._replace(step="list", errand="")


def stamped_as(me: Process) -> str:
    """The operation id an errand's restores and commit carry."""
    if me.errand == "undo":
        return me.name
    return me.sidecar.operation if me.sidecar else HEAL


def describe(restores: tuple[Restore, ...]) -> str:
    return ", ".join(f"table {each.table}" for each in restores) or "nothing"


StepFunction = Callable[[World, State, Process], Iterator[Step]]

SETTLE_STEPS: dict[str, StepFunction] = {
    "list": list_sidecars,
    "observe": observe,
    "forward_check": forward_check,
    "forward_read": forward_read,
    "forward_swap": forward_swap,
    "restore_check": restore_check,
    "restore": restore,
    "settle_read": settle_read,
    "settle_swap": settle_swap,
    "delete": delete,
    "undo": undo,
}
