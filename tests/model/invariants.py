"""What the protocol promises, checked at every moment of every history.

1. No partial read: every commit shows all of a write or nothing of it.
2. No acknowledged write is lost, nor any write once committed.
3. A refused write has no effect.
4. Convergence: if everybody stops now, one full recovery leaves head == pin on every table and no sidecar, and the
   other promises still hold.
5. No write is applied twice.
6. A resumed writer does no harm: a commit shows its own write and nothing else that is new; a roll-back, undo or heal
   shows nothing new; no pin goes back.
7. No write skew: what a write read is unchanged when it is committed.
8. Nothing is committed after it was recorded as rolled back.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

from .lease import NOBODY
from .recoverer import RECOVERER_STEPS
from .state import Commit, Content, Faults, Lock, Process, Sidecar, State, Table, World, table_heads

Storage = tuple[tuple[Table, ...], tuple[Commit, ...]]
RECOVERY_STEPS_MAX = 200


@dataclass(frozen=True)
class Verdict:
    """What a manifest and its tables show: which writes are visible at the head, and the first promise broken."""

    visible: frozenset[str]
    broken: str | None


@dataclass(frozen=True)
class Recovered:
    verdict: Verdict
    trace: tuple[str, ...]


@dataclass
class Checker:
    """Checks moments of one world; remembers verdicts, since many moments share the same storage."""

    world: World
    verdicts: dict[Storage, Verdict] = field(default_factory=dict)
    recoveries: dict[tuple[Storage, tuple[Sidecar, ...]], Recovered] = field(default_factory=dict)

    def broken(self, state: State) -> tuple[str, tuple[str, ...]] | None:
        """The first promise this moment breaks, with the steps of the recovery that showed it, if one did."""
        verdict = self.verdict((state.tables, state.manifest))
        problem = verdict.broken or broken_answer(state, verdict) or stuck(state)
        if problem:
            return problem, ()
        recovered = self.recovered(state)
        problem = recovered.verdict.broken or broken_answer(state, recovered.verdict)
        return (f"after one full recovery: {problem}", recovered.trace) if problem else None

    def verdict(self, storage: Storage) -> Verdict:
        known = self.verdicts.get(storage)
        if known is None:
            problem = next(broken_commits(self.world, *storage), None)
            known = self.verdicts[storage] = Verdict(visible_at_head(*storage), problem)
        return known

    def recovered(self, state: State) -> Recovered:
        """The storage after everybody stopped and one full recovery ran alone, without faults."""
        key = ((state.tables, state.manifest), state.sidecars)
        known = self.recoveries.get(key)
        if known is None:
            known = self.recoveries[key] = self.recover(state)
        return known

    def recover(self, state: State) -> Recovered:
        token = max(state.lock.token, *(commit.token for commit in state.manifest))
        last = Process(0, "FINAL", "recoverer", "idle", runs=1)
        now = State(state.tables, state.manifest, state.sidecars, Lock(NOBODY, token), (last,), Faults())
        trace: list[str] = []
        while step := next(RECOVERER_STEPS[now.processes[0].step](self.world, now, now.processes[0]), None):
            what, now = step
            trace.append(what)
            if now.processes[0].step == "stuck" or len(trace) > RECOVERY_STEPS_MAX:
                return Recovered(Verdict(frozenset(), f"4 recovery ends at {trace[-1]!r}"), tuple(trace))
        verdict = self.verdict((now.tables, now.manifest))
        if now.sidecars:
            verdict = Verdict(verdict.visible, f"4 the sidecar of {now.sidecars[0].operation} is left")
        elif table_heads(now.tables) != now.manifest[-1].pins:
            heads, pins = table_heads(now.tables), now.manifest[-1].pins
            verdict = Verdict(verdict.visible, f"4 {heads=} differ from {pins=}, and no sidecar is left")
        return Recovered(verdict, tuple(trace))


def shown(tables: tuple[Table, ...], commit: Commit) -> tuple[Content, ...]:
    """What a reader of the commit finds in each table."""
    return tuple(table[pin].content for table, pin in zip(tables, commit.pins, strict=True))


def visible_at_head(tables: tuple[Table, ...], manifest: tuple[Commit, ...]) -> frozenset[str]:
    """The writes of which a reader of the head finds at least a part."""
    contents = shown(tables, manifest[-1])
    return frozenset(name for content in contents for name, _ in content)


def broken_commits(world: World, tables: tuple[Table, ...], manifest: tuple[Commit, ...]) -> Iterator[str]:
    committed: list[str] = []
    rolled_back: set[str] = set()
    for before, commit in zip((None, *manifest), manifest, strict=False):
        yield from broken_content(world, tables, commit)
        if commit.kind in ("published", "rolled_forward"):
            if commit.commit_id in committed:
                yield f"5 {commit.operation} is committed twice"
            if commit.operation in rolled_back:
                yield f"8 {commit.operation} is committed after it was recorded as rolled back"
            committed.append(commit.commit_id)
        elif commit.kind in ("rolled_back", "undone"):
            rolled_back.add(commit.operation)
        if before is not None:
            yield from broken_change(tables, before, commit)
    visible = visible_at_head(tables, manifest)
    for name in committed:
        if name not in visible:
            yield f"2 {name} was committed and is lost"


def broken_content(world: World, tables: tuple[Table, ...], commit: Commit) -> Iterator[str]:
    contents = shown(tables, commit)
    for name, operation in world.operations.items():
        counts = {contents[table].count((name, step)) for step, table in enumerate(operation.writes)}
        if len(counts) > 1:
            yield f"1 commit {commit.commit_id} with pins {commit.pins} shows a part of {name}"
        if max(counts) > 1:
            yield f"5 commit {commit.commit_id} with pins {commit.pins} shows {name} applied twice"


def broken_change(tables: tuple[Table, ...], before: Commit, commit: Commit) -> Iterator[str]:
    old, new = shown(tables, before), shown(tables, commit)
    for table, seen in commit.validated:
        if old[table] != seen:
            yield f"7 {commit.operation} is committed though table {table}, which it read, changed (write skew)"
    gained = {name for was, now in zip(old, new, strict=True) for name in surplus(now, was)}
    gone = {name for was, now in zip(old, new, strict=True) for name in surplus(was, now)}
    own = {commit.operation} if commit.kind in ("published", "rolled_forward") else set()
    for name in sorted(gone):
        yield f"2 commit {commit.commit_id} loses {name}"
    for name in sorted(gained - own):
        yield f"6 commit {commit.commit_id} shows {name}, which it did not commit"
    if own - gained:
        yield f"1 commit {commit.commit_id} shows nothing of its write"
    if any(pin < was for was, pin in zip(before.pins, commit.pins, strict=True)):
        yield f"6 commit {commit.commit_id} moves a pin back"


def surplus(content: Content, other: Content) -> set[str]:
    """The writes with an effect that one content holds more often than the other."""
    return {effect[0] for effect in content if content.count(effect) > other.count(effect)}


def broken_answer(state: State, verdict: Verdict) -> str | None:
    """Whether some client was told otherwise than what is visible."""
    for process in state.processes:
        if process.outcome == "acked" and process.name not in verdict.visible:
            return f"2 {process.name} was acknowledged and is lost"
        if process.outcome == "refused" and process.name in verdict.visible:
            return f"3 {process.name} was refused and is visible"
    return None


def stuck(state: State) -> str | None:
    return next((f"4 {each.name} found a head below its pin" for each in state.processes if each.step == "stuck"), None)
