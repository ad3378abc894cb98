"""Every history within a budget of faults, breadth first, so the first violation found has a shortest trace."""

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from .invariants import Checker
from .lease import NOBODY
from .recoverer import RECOVERER_STEPS
from .refresher import REFRESHER_STEPS
from .rules import Rules
from .settle import StepFunction
from .state import (
    Commit,
    Delayed,
    DelayedPublish,
    DelayedSidecar,
    Faults,
    Lock,
    Operation,
    Process,
    State,
    Step,
    Version,
    World,
    act,
    at_rest,
    with_sidecar,
)
from .substrate import append_version, can_land
from .writer import WRITER_STEPS

STEPS: dict[str, dict[str, StepFunction]] = {
    "writer": WRITER_STEPS,
    "recoverer": RECOVERER_STEPS,
    "refresher": REFRESHER_STEPS,
}
ENDED = ("done", "dead", "stuck")
BEFORE_ANYTHING = ("stage", "lock", "idle")


@dataclass(frozen=True)
class Scenario:
    """Who takes part, under which lock, and how much trouble may happen."""

    name: str
    writers: tuple[Operation, ...]
    faults: Faults
    leased: bool = False
    recoveries: int = 1
    refreshes: int = 0

    def world(self, rules: Rules) -> World:
        return World(rules, {f"W{number}": writer for number, writer in enumerate(self.writers)}, self.leased)

    def start(self, world: World) -> State:
        actors = [(name, "writer", "stage", 0) for name in world.operations]
        if self.recoveries:
            actors.append(("R", "recoverer", "idle", self.recoveries))
        if self.refreshes:
            actors.append(("F", "refresher", "idle", self.refreshes))
        base = Version("base", None, ())
        genesis = Commit("genesis", "genesis", "genesis", (0,) * world.tables, 0, ())
        return State(
            tables=((base,),) * world.tables,
            manifest=(genesis,),
            sidecars=(),
            lock=Lock(NOBODY, 0),
            processes=tuple(Process(index, *actor) for index, actor in enumerate(actors)),
            faults=self.faults,
        )


@dataclass(frozen=True)
class Violation:
    promise: str
    trace: tuple[str, ...]  # the history
    recovery: tuple[str, ...]  # the full recovery after it that shows the damage, if one was needed

    def __str__(self) -> str:
        lines = [f"VIOLATION {self.promise}"]
        lines += [f"  {number:2d}. {what}" for number, what in enumerate(self.trace, 1)]
        lines += [f"   +  {what}" for what in self.recovery]
        return "\n".join(lines)


@dataclass
class Exploration:
    """What a run met."""

    states: int = 0
    seconds: float = 0.0
    exhausted: bool = False
    violation: Violation | None = None
    outcomes: set[tuple[str, ...]] = field(default_factory=set)  # of all writers together
    commit_kinds: set[str] = field(default_factory=set)

    def outcomes_of_one(self) -> set[str]:
        return {outcome for together in self.outcomes for outcome in together}


def successors(world: World, state: State) -> Iterator[Step]:
    """Every step that may happen next: a process moves, is killed, or a delayed PUT lands or is dropped."""
    for me in state.processes:
        if me.step in ENDED:
            continue
        yield from STEPS[me.role][me.step](world, state, me)
        if state.faults.crashes and me.step not in BEFORE_ANYTHING and me.role != "refresher":
            freed = not world.leased and state.lock.holder == me.name
            lock = Lock(NOBODY, state.lock.token) if freed else state.lock
            killed = at_rest(me, "dead", "crashed")
            yield act(state, killed, f"KILL -9 at {me.step}", lock=lock, faults=state.faults.spend("crashes"))
    for put in state.in_flight:
        yield from delayed(state, put)


def delayed(state: State, put: Delayed) -> Iterator[Step]:
    rest = tuple(other for other in state.in_flight if other != put)
    yield "network: a delayed PUT is dropped", state._replace(in_flight=rest)
    if isinstance(put, DelayedSidecar):
        sidecars = with_sidecar(state, put.sidecar)
        what = f"network: the delayed sidecar of {put.sidecar.operation} lands"
        yield what, state._replace(sidecars=sidecars, in_flight=rest)
    elif isinstance(put, DelayedPublish):
        if len(state.manifest) - 1 == put.head:
            manifest = (*state.manifest, put.commit)
            what = f"network: the delayed publish of {put.commit.operation} LANDS, pins={put.commit.pins}"
            yield what, state._replace(manifest=manifest, in_flight=rest)
    elif can_land(state.tables, put):
        tables = append_version(state.tables, put.table, put.version)
        what = f"network: a delayed PUT lands as table {put.table} v{put.slot}"
        yield what, state._replace(tables=tables, in_flight=rest)


def explore(scenario: Scenario, rules: Rules, states_max: int = 3_000_000) -> Exploration:
    """All moments reachable in the scenario, up to the first that breaks a promise."""
    began = time.perf_counter()
    world = scenario.world(rules)
    checker = Checker(world)
    writers = len(world.operations)
    start = scenario.start(world)
    before: dict[State, State | None] = {start: None}
    waiting = deque([start])
    run = Exploration()
    while waiting and run.states < states_max and run.violation is None:
        state = waiting.popleft()
        run.states += 1
        run.outcomes.add(tuple([process.outcome for process in state.processes[:writers]]))
        run.commit_kinds.add(state.manifest[-1].kind)
        if broken := checker.broken(state):
            run.violation = Violation(broken[0], trace_to(world, before, state), broken[1])
        for _, after in successors(world, state):
            if after not in before:
                before[after] = state
                waiting.append(after)
    run.exhausted = not waiting
    run.seconds = time.perf_counter() - began
    return run


def trace_to(world: World, before: dict[State, State | None], state: State) -> tuple[str, ...]:
    trace: list[str] = []
    previous = before[state]
    while previous is not None:
        trace.append(next(what for what, after in successors(world, previous) if after == state))
        state, previous = previous, before[previous]
    return tuple(reversed(trace))
