"""Writes on a store and on tables that go wrong: what the caller was told, held against what is true afterwards."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import lance
import pytest
from crash_world import EFFECTS, heads, pending_files, pins, plan_of, rows_of, seen

from faulty_objects import Call, Fault, FaultyObjects, of_graph
from omnigraph.base.errors import OmniError, RecoveryRequired
from omnigraph.base.ids import new_ulid
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.opening import open_graph
from omnigraph.engine.write.changes import Upsert
from omnigraph.graph import Graph
from omnigraph.settings import Settings
from omnigraph.storage.apply import commit_staged

WRITTEN = ("edge:Knows", "node:Person")
# Patient enough to outlast no fault: a lock that is not free at once is told to the caller.
SETTINGS = Settings(storage_durability="os", write_lock_timeout_ms=0)


@dataclass(frozen=True)
class Before:
    """A graph before a write, and what readers see when the same write goes well."""

    template: Path
    before: dict[str, Any]
    after: dict[str, Any]

    def copy(self, to: Path) -> str:
        shutil.rmtree(to, ignore_errors=True)
        return str(shutil.copytree(self.template, to))


@dataclass
class Told:
    """What the caller of a write was told; `operation_id` is what it may ask for later."""

    operation_id: str
    error: OmniError | None = None

    @property
    def is_committed(self) -> bool:
        return self.error is None

    @property
    def is_in_doubt(self) -> bool:
        return isinstance(self.error, RecoveryRequired)


def write(graph: Graph, effect: str = "upsert") -> Told:
    """Prepare and commit a write; whatever comes back must be a receipt or one of our errors."""
    operation_id = new_ulid()
    try:
        receipt = commit_plan(graph.context, plan_of(graph, EFFECTS[effect], WRITTEN, operation_id))
    except OmniError as error:
        assert error.describe()
        return Told(operation_id, error)
    assert receipt.operation_id == operation_id
    return Told(operation_id)


def check_told_the_truth(told: Told, path: str, known: Before, where: str) -> str:
    """Hold what was told against the graph: as it is left, after a read-write open, and for the next write."""
    reader = Graph.open(path, "r", settings=SETTINGS)
    left, shown = reader.operation(told.operation_id).status, seen(reader)
    assert shown in (known.before, known.after), f"{where}: readers see something in between"
    if told.is_committed:
        assert (left, shown == known.after) == ("committed", True), f"{where}: told committed, is {left}"
    elif told.is_in_doubt:
        assert isinstance(told.error, RecoveryRequired)
        assert told.error.operation_id == told.operation_id
        assert told.error.hint
        if "rolled back" in told.error.reason and "undo failed" not in told.error.reason:
            assert left == "rolled_back", f"{where}: told rolled back, is {left}"
    else:
        assert left in ("refused", "rolled_back", "pending"), f"{where}: told {told.error}, is {left}"
        assert shown == known.before, f"{where}: told {told.error}, and it is visible"
    decided = check_settled(told.operation_id, path, known, where)
    assert left in ("pending", decided), f"{where}: the answer changed from {left} to {decided}"
    assert not told.is_committed or decided == "committed", f"{where}: an acknowledged write was lost"
    if not told.is_committed and not told.is_in_doubt:
        assert decided != "committed", f"{where}: told {told.error}, and it came true later"
    return decided


def check_settled(operation_id: str, path: str, known: Before, where: str) -> str:
    """Open the graph read-write: it is whole, at rest, knows the operation, and takes the next write."""
    graph = Graph.open(path, settings=SETTINGS)
    decided, shown = graph.operation(operation_id).status, seen(graph)
    assert decided in ("committed", "rolled_back", "refused"), f"{where}: still {decided}"
    assert shown == (known.after if decided == "committed" else known.before), f"{where}: {decided}, but not so"
    assert (heads(graph), pending_files(path)) == (pins(graph), []), f"{where}: not at rest"
    next_one = graph.write({t: Upsert(rows_of(t, ["later"], "later")) for t in WRITTEN})
    assert graph.operation(next_one.operation_id).status == "committed"
    assert heads(graph) == pins(graph)
    for table in WRITTEN:
        rest = [r for r in seen(graph)[table].rows if ("id", "later") not in r]
        assert rest == list(shown[table].rows), f"{where}: the next write changed other rows"
    return decided


@dataclass(frozen=True)
class Wrong:
    """How one call goes wrong: before its work or after it, and what becomes of the calls that follow."""

    fault: Fault
    then: str

    def __str__(self) -> str:
        return f"{self.fault.name.lower()}-{self.then}"


# once: the next try succeeds; again: every later call like it fails too; down: nothing answers any more.
WRONGS = [Wrong(fault, then) for fault in (Fault.BEFORE, Fault.LOST) for then in ("once", "again", "down")]


def each_object_call(
    known: Before, folder: Path, wrong: Wrong, act: Callable[[Graph], Told], leased: bool = False
) -> Iterator[tuple[Told, str, str]]:
    """Run `act` on a fresh copy once for each object call it makes, with that call going wrong."""
    for number in count():
        path = known.copy(folder)
        graph, faulty = of_graph(Graph.open(path, "r"), leased=leased, settings=SETTINGS)
        rule = faulty.when(wrong.fault, from_call(faulty, number, wrong), times=1 if wrong.then == "once" else None)
        told = act(graph)
        faulty.heal()
        if not rule.fired:
            return
        yield told, path, f"{wrong} at {rule.fired[0]}"


def from_call(faulty: FaultyObjects, number: int, wrong: Wrong) -> Callable[[Call], bool]:
    """The call of this number, and those of the later ones that go wrong with it."""

    def matches(call: Call) -> bool:
        if call.number < number:
            return False
        first = faulty.calls[number]
        return wrong.then == "down" or (call.verb, call.key) == (first.verb, first.key)

    return matches


@dataclass
class LanceCalls:
    """The calls into Lance that open, write or commit; the one of number `fails` goes wrong."""

    fails: int
    wrong: Wrong
    made: list[str] = field(default_factory=list)
    fired: list[str] = field(default_factory=list)

    def around(self, name: str, function: Callable[..., Any], error: type[Exception]) -> Callable[..., Any]:
        def called(*args: Any, **named: Any) -> Any:
            self.made.append(f"{name} {_place(args)}")
            if not self._goes_wrong():
                return function(*args, **named)
            self.fired.append(self.made[-1])
            if self.wrong.fault is Fault.LOST:
                function(*args, **named)
            raise error(f"LanceError(IO): Generic error: connection reset during {name}")

        return called

    def _goes_wrong(self) -> bool:
        number = len(self.made) - 1
        if number <= self.fails or self.wrong.then == "once":
            return number == self.fails
        return self.wrong.then == "down" or self.made[-1] == self.made[self.fails]


def each_lance_call(
    known: Before, folder: Path, wrong: Wrong, act: Callable[[Graph], Told], patch: pytest.MonkeyPatch
) -> Iterator[tuple[Told, str, str]]:
    """The same for each call into Lance."""
    for number in count():
        path = known.copy(folder)
        graph, _ = of_graph(Graph.open(path, "r"), settings=SETTINGS)
        with lance_going_wrong(patch, LanceCalls(number, wrong)) as calls:
            told = act(graph)
        if not calls.fired:
            return
        yield told, path, f"{wrong} at {number} {calls.fired[0]}"


def _place(args: tuple[Any, ...]) -> str:
    first = args[0] if args else ""
    uri = first if isinstance(first, str) else getattr(first, "uri", "")
    return "/".join(str(uri).rstrip("/").split("/")[-2:])


@contextmanager
def lance_going_wrong(patch: pytest.MonkeyPatch, calls: LanceCalls) -> Iterator[LanceCalls]:
    """Every open, write and commit of a table passes through `calls`; a failing open is a ValueError, as in Lance."""
    with patch.context() as patched:
        for module in ("omnigraph.storage.apply", "omnigraph.storage.ledger"):
            patched.setattr(f"{module}._commit", calls.around("commit", lance.LanceDataset.commit, OSError))
        writing = calls.around("write", lance.fragment.write_fragments, OSError)
        patched.setattr("omnigraph.storage.ledger.write_fragments", writing)
        patched.setattr(lance, "dataset", calls.around("open", lance.dataset, ValueError))
        yield calls


def open_for_writing(operation_id: str) -> Callable[[Graph], Told]:
    """Open the graph of a handle read-write: settle, heal, catch up."""

    def act(graph: Graph) -> Told:
        try:
            open_graph(graph.context, writable=True)
        except OmniError as error:
            assert error.describe()
            return Told(operation_id, error)
        return Told(operation_id)

    return act


def late_effect(graph: Graph) -> str:
    """A table commit of a writer that nobody waits for any more, landed above the pin without a sidecar."""
    plan = plan_of(graph, EFFECTS["upsert"], WRITTEN, new_ulid())
    for effect in plan.effects:
        assert commit_staged(effect.steps[0]).error is None
    return plan.operation_id
