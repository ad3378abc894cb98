"""What one moment of the modelled world consists of.

Everything is an immutable tuple, so a moment can be hashed and compared: two histories that lead to the same moment are
explored once. Versions and commits are numbered by their position; the last one is the head.
"""

from dataclasses import dataclass
from typing import NamedTuple

from .rules import Rules

# One staged transaction, and also its uuid: (operation, step). A version's content is the sorted tuple of all applied.
Effect = tuple[str, int]
Content = tuple[Effect, ...]
Pins = tuple[int, ...]

HEAL = "heal"  # the operation id under which heal publishes


class Version(NamedTuple):
    """One version of a Lance table."""

    kind: str  # base | data | restore
    effect: Effect | None  # the transaction's stamp; a restore carries step -1
    content: Content


Table = tuple[Version, ...]


class Commit(NamedTuple):
    """One row of the manifest."""

    commit_id: str  # a write's own commit id is its operation's name
    operation: str
    kind: str  # genesis | published | rolled_forward | rolled_back | undone | healed
    pins: Pins
    token: int
    validated: tuple[tuple[int, Content], ...]  # ghost: what the write saw in the tables it read


class Sidecar(NamedTuple):
    operation: str
    expected: tuple[int | None, ...]  # E per table, None where the operation does not write
    parent: int  # the head commit its re-check saw
    token: int
    validated: tuple[tuple[int, Content], ...]


class Lock(NamedTuple):
    holder: str
    token: int


class Restore(NamedTuple):
    """A table to set back to its pin; `landed` is the version that did it, -1 before."""

    table: int
    target: int
    landed: int = -1


class DelayedVersion(NamedTuple):
    """A table PUT that timed out at its sender and may still land, if its slot is free by then."""

    table: int
    slot: int
    version: Version


class DelayedSidecar(NamedTuple):
    sidecar: Sidecar


class DelayedPublish(NamedTuple):
    """A publish that timed out at its sender; it lands only if the head it was bound to is still the head."""

    head: int
    commit: Commit


class Faults(NamedTuple):
    """How much trouble is left to happen."""

    crashes: int = 0  # kill -9
    takeovers: int = 0  # a held lease is taken: its holder slept, or clocks differ
    lost_answers: int = 0  # lost or late answers, definite errors, a publisher that gives up
    stale_checks: int = 0  # a lease check answers yes though the lease is gone
    retries: int = 0  # a commit found nowhere is sent once more

    def spend(self, kind: str) -> "Faults":
        return self._replace(**{kind: getattr(self, kind) - 1})


class Process(NamedTuple):
    place: int  # its position among the processes
    name: str  # a writer's name is its operation id
    role: str  # writer | recoverer | refresher
    step: str
    runs: int = 0  # how often a recoverer or refresher may still start
    token: int = 0
    staged_at: int = 0  # the commit whose pins the write was staged from
    parent: int = 0  # Hc, the head commit the re-check saw
    progress: int = 0  # steps committed, tables restored, or tables observed
    head: int = -1  # the head commit observed last: what a publish compares and swaps
    errand: str = ""  # roll_back | undo | heal, while restoring
    restores: tuple[Restore, ...] = ()
    sidecar: Sidecar | None = None  # the sidecar being settled
    seen: tuple[int, ...] = ()  # table heads a refresher observed, one at a time
    outcome: str = ""  # acked | refused | in_doubt | crashed


Delayed = DelayedVersion | DelayedSidecar | DelayedPublish


class State(NamedTuple):
    tables: tuple[Table, ...]
    manifest: tuple[Commit, ...]
    sidecars: tuple[Sidecar, ...]
    lock: Lock
    processes: tuple[Process, ...]
    faults: Faults
    in_flight: tuple[Delayed, ...] = ()


Step = tuple[str, State]


@dataclass(frozen=True)
class Operation:
    """A write: one table per step, in the order they are committed, and the tables it only validates against."""

    writes: tuple[int, ...]
    reads: tuple[int, ...] = ()

    def tables(self) -> tuple[int, ...]:
        return tuple(sorted(set(self.writes)))

    def steps_on(self, table: int) -> int:
        return self.writes.count(table)

    def slot(self, expected: tuple[int | None, ...] | Pins, step: int) -> int:
        """The version that step must land as: E + k."""
        table = self.writes[step]
        base = expected[table]
        assert base is not None
        return base + self.writes[: step + 1].count(table)


@dataclass(frozen=True)
class World:
    """What stays the same during one exploration."""

    rules: Rules
    operations: dict[str, Operation]
    leased: bool  # False: flock, freed by the operating system, never taken over
    tables: int = 2


def table_heads(tables: tuple[Table, ...]) -> Pins:
    return tuple(len(table) - 1 for table in tables)


def is_committed(manifest: tuple[Commit, ...], operation: str) -> bool:
    """Whether the write itself is in the manifest."""
    return any(commit.commit_id == operation for commit in manifest)


def is_settled(manifest: tuple[Commit, ...], operation: str) -> bool:
    """Whether any commit, the write or the record of its roll-back, is stamped with the operation."""
    return any(commit.operation == operation for commit in manifest)


def sees_higher_token(manifest: tuple[Commit, ...], token: int) -> bool:
    return any(commit.token > token for commit in manifest)


def without_sidecar(state: State, operation: str) -> tuple[Sidecar, ...]:
    return tuple(sidecar for sidecar in state.sidecars if sidecar.operation != operation)


def with_sidecar(state: State, sidecar: Sidecar) -> tuple[Sidecar, ...]:
    """Sidecars in name order, as recovery lists them."""
    return tuple(sorted((*without_sidecar(state, sidecar.operation), sidecar), key=lambda each: each.operation))


def act(state: State, me: Process, what: str, **shared: object) -> Step:
    """The step in which a process becomes `me` and the shared parts given change with it."""
    processes = (*state.processes[: me.place], me, *state.processes[me.place + 1 :])
    return f"{me.name}: {what}", state._replace(processes=processes, **shared)  # type: ignore[arg-type]


def at_rest(me: Process, step: str, outcome: str = "") -> Process:
    """The process with everything forgotten that it will not use again, so that equal moments compare equal."""
    return Process(me.place, me.name, me.role, step, me.runs, outcome=outcome)
