"""Errors and lost answers on every kind of call: the outcome is committed, refused or in doubt, and the id resolves it.

Each test runs an act once for every call that the act makes, with that call going wrong, until no call is left.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pyarrow as pa
import pytest
from crash_world import seen
from fault_scene import (
    SETTINGS,
    WRITTEN,
    WRONGS,
    Before,
    LanceCalls,
    Told,
    Wrong,
    check_settled,
    check_told_the_truth,
    each_lance_call,
    each_object_call,
    from_call,
    lance_going_wrong,
    late_effect,
    open_for_writing,
    write,
)
from recovery_scene import interrupt

from faulty_objects import faulty_context
from omnigraph.base import failpoints
from omnigraph.base.errors import Conflict, NotFound, OmniError
from omnigraph.base.ids import new_ulid
from omnigraph.catalog.contract import accept
from omnigraph.commit.context import CommitContext
from omnigraph.engine.opening import open_graph
from omnigraph.engine.write.changes import Append
from omnigraph.graph import Graph
from omnigraph.manifest.genesis import init_graph
from omnigraph.storage.places import open_root

pytestmark = pytest.mark.slow
FULL = pytest.mark.full
LOCKS = pytest.mark.parametrize("leased", [pytest.param(False, marks=FULL, id="flock"), pytest.param(True, id="lease")])
# What is tried again at once and fails again lies between failing once and not answering any more.
EACH_WRONG = pytest.mark.parametrize(
    "wrong", [pytest.param(w, id=str(w), marks=FULL if w.then == "again" else ()) for w in WRONGS]
)
LOST_ONCE = pytest.mark.parametrize(
    "wrong", [pytest.param(w, id=str(w), marks=() if str(w) == "lost-once" else FULL) for w in WRONGS]
)


@pytest.fixture(scope="session")
def known(template: Path, tmp_path_factory: pytest.TempPathFactory) -> Before:
    """The graph before a write, and as it is when nothing goes wrong."""
    path = tmp_path_factory.mktemp("known") / "graph"
    graph = Graph.open(Before(template, {}, {}).copy(path), settings=SETTINGS)
    before = seen(graph)
    assert write(graph).is_committed
    return Before(template, before, seen(graph))


def write_that_must_be_undone(graph: Graph) -> Told:
    failpoints.arm("load.post_phase_b_pre_manifest_commit", failpoints.fail)
    try:
        return write(graph)
    finally:
        failpoints.disarm_all()


WRITES = pytest.mark.parametrize("act", [write, write_that_must_be_undone], ids=["write", "undo"])


@LOCKS
@EACH_WRONG
@WRITES
def test_whichever_object_call_of_a_write_goes_wrong_the_caller_is_told_the_truth(
    known: Before, tmp_path: Path, act: Callable[[Graph], Told], wrong: Wrong, leased: bool
) -> None:
    outcomes: Counter[str] = Counter()
    for told, path, where in each_object_call(known, tmp_path / "g", wrong, act, leased):
        outcomes[check_told_the_truth(told, path, known, where)] += 1
    assert sum(outcomes.values()) >= 11
    assert len(outcomes) > 1, "the calls before and after arming end differently"


@EACH_WRONG
@WRITES
def test_whichever_lance_call_of_a_write_goes_wrong_the_caller_is_told_the_truth(
    known: Before, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, act: Callable[[Graph], Told], wrong: Wrong
) -> None:
    outcomes: Counter[str] = Counter()
    for told, path, where in each_lance_call(known, tmp_path / "g", wrong, act, monkeypatch):
        outcomes[check_told_the_truth(told, path, known, where)] += 1
    assert sum(outcomes.values()) >= 7
    assert len(outcomes) > 1


# ---- recovery and healing under faults

PENDING = {"forward": "post_phase_b_pre_manifest_commit", "back": "mid_phase_b"}
DECIDED = {"forward": "committed", "back": "rolled_back", "heal": "refused"}


@pytest.fixture(scope="session")
def left_behind(known: Before, tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Before, str]]:
    """Graphs that wait for recovery or healing, each with the operation that is to be decided."""
    found = {}
    for way in DECIDED:
        path = known.copy(tmp_path_factory.mktemp(way) / "graph")
        graph = Graph.open(path, settings=SETTINGS)
        operation_id = late_effect(graph) if way == "heal" else interrupt(graph, "upsert", PENDING[way], WRITTEN)
        found[way] = (Before(Path(path), known.before, known.after), operation_id)
    return found


@pytest.mark.parametrize("seam", [pytest.param("objects-flock", marks=FULL), "objects-lease", "lance"])
@LOST_ONCE
@pytest.mark.parametrize("way", sorted(DECIDED))
def test_whichever_call_of_an_opening_goes_wrong_the_next_one_ends_as_it_would_have(
    left_behind: dict[str, tuple[Before, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    way: str,
    wrong: Wrong,
    seam: str,
) -> None:
    known, operation_id = left_behind[way]
    act, runs = open_for_writing(operation_id), 0
    if seam == "lance":
        calls = each_lance_call(known, tmp_path / "g", wrong, act, monkeypatch)
    else:
        calls = each_object_call(known, tmp_path / "g", wrong, act, leased=seam == "objects-lease")
    for _told, path, where in calls:
        reader = Graph.open(path, "r")
        assert seen(reader) in (known.before, known.after), f"{where}: readers see something in between"
        decided = check_settled(operation_id, path, known, where)
        assert decided == DECIDED[way], f"{where}: {decided}"
        runs += 1
    assert runs >= 5


# ---- init

INIT_SCHEMA = "node Person { name: String? }\nedge Knows: Person -> Person"


def init_on(context: CommitContext) -> OmniError | None:
    try:
        init_graph(context.manifest, accept(INIT_SCHEMA, new_ulid()), force=False)
        open_graph(context, writable=True)
    except OmniError as error:
        assert error.describe()
        return error
    return None


def check_init(path: str, error: OmniError | None, where: str) -> None:
    """There is a whole graph, or none and `init --force` makes one; a success was one."""
    try:
        graph = Graph.open(path, settings=SETTINGS)
    except (NotFound, Conflict):
        assert error is not None, f"{where}: told that there is a graph"
        graph = Graph.init(path, INIT_SCHEMA, force=True, settings=SETTINGS)
    else:
        with pytest.raises(Conflict, match="already initialized"):
            Graph.init(path, INIT_SCHEMA, force=True, settings=SETTINGS)
    assert {k: e.row_count for k, e in graph.snapshot().tables.items()} == {"edge:Knows": 0, "node:Person": 0}, where
    assert [c.kind for c in graph.list_commits()] == ["init"], where
    row = pa.table({"id": ["ana"], "name": ["ana"]})
    graph.write({"node:Person": Append(row)})
    assert not os.path.exists(f"{path}/__init_claim.json"), where


@EACH_WRONG
@pytest.mark.parametrize("seam", ["objects", "lance"])
def test_whichever_call_of_an_init_goes_wrong_there_is_a_whole_graph_or_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seam: str, wrong: Wrong
) -> None:
    for number in count():
        path = str(tmp_path / f"{number}")
        context, faulty = faulty_context(open_root(path, syncs=False), SETTINGS)
        if seam == "objects":
            rule = faulty.when(wrong.fault, from_call(faulty, number, wrong), times=1 if wrong.then == "once" else None)
            error, fired = init_on(context), rule.fired
            faulty.heal()
        else:
            with lance_going_wrong(monkeypatch, LanceCalls(number, wrong)) as calls:
                error, fired = init_on(context), calls.fired
        if not fired:
            break
        check_init(path, error, f"{wrong} at {fired[0]}")
    assert number >= 5
