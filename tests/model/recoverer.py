"""A full recovery, as a read-write open or a refresh that got the lock runs it: settle every sidecar, then heal."""

from collections.abc import Iterator

from .lease import lock_answers
from .settle import SETTLE_STEPS, StepFunction
from .state import Process, State, Step, World, act


def start(world: World, state: State, me: Process) -> Iterator[Step]:
    if me.runs:
        for what, lock, faults in lock_answers(world, state, me):
            running = me._replace(step="list", token=lock.token, runs=me.runs - 1)
            yield act(state, running, what, lock=lock, faults=faults)


RECOVERER_STEPS: dict[str, StepFunction] = {**SETTLE_STEPS, "idle": start}
