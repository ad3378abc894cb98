"""A lock that is broken, deleted or spoiled under its holder, and stale reads: nothing is torn, nobody is misled."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from crash_world import EFFECTS, TABLES, heads, pending_files, pins, plan_of, rows_of, seen
from fault_scene import SETTINGS, WRITTEN, late_effect, write
from recovery_scene import interrupt, write_until_it_lands

from faulty_objects import Fault, FaultyObjects, of_graph, on
from omnigraph.base import failpoints
from omnigraph.base.errors import Conflict, RecoveryRequired, Unavailable
from omnigraph.base.ids import new_ulid
from omnigraph.commit import lease
from omnigraph.commit.lease import LeasedLock
from omnigraph.commit.locks import LockLost
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.opening import open_graph
from omnigraph.engine.write.changes import Upsert
from omnigraph.graph import Graph
from omnigraph.manifest import layout

pytestmark = pytest.mark.slow

LEASE = f"{layout.LOCK_DIR}/{layout.lock_name(None)}.json"
LOOK_MS = 1_000


@pytest.fixture
def skip_ms(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Moves the clock by which a holder decides when to look at its lease again."""
    real, skipped = lease.monotonic_ms, [0]
    monkeypatch.setattr(lease, "monotonic_ms", lambda: real() + skipped[0])

    def skip(ms: int) -> None:
        skipped[0] += ms

    return skip


def leased(path: str) -> tuple[Graph, FaultyObjects]:
    return of_graph(Graph.open(path, "r"), leased=True, settings=SETTINGS)


def names(graph: Graph, table_key: str) -> set[str]:
    return {dict(r)["name"] for r in seen(graph)[table_key].rows}


SPOILS: dict[str, Callable[[Graph, FaultyObjects], object]] = {
    "broken": lambda graph, _: graph.break_lock(),
    "deleted": lambda _, objects: objects.inner.delete(LEASE),
    "garbage": lambda _, objects: objects.inner.put(LEASE, b"\x00"),
}


@pytest.mark.slow
@pytest.mark.parametrize("window", failpoints.WINDOWS)
@pytest.mark.parametrize("rival_writes", [False, True], ids=["alone", "rival"])
@pytest.mark.parametrize("spoil", sorted(SPOILS))
def test_a_holder_that_goes_on_without_its_lock_tears_nothing_and_tells_the_truth(
    path: str, skip_ms: Callable[[int], None], spoil: str, rival_writes: bool, window: str
) -> None:
    (graph, _), (rival, objects) = leased(path), leased(path)
    rivals: list[str] = []

    def lose_it() -> None:
        SPOILS[spoil](rival, objects)
        skip_ms(LOOK_MS)
        if rival_writes:
            receipt = write_until_it_lands(rival, {t: Upsert(rows_of(t, ["rival"], "rival")) for t in WRITTEN})
            rivals.append(receipt.operation_id)

    failpoints.arm(f"load.{window}", lose_it)
    told = write(graph)
    reader = Graph.open(path, "r")
    left = reader.operation(told.operation_id).status
    if told.is_committed:
        assert left == "committed"
    elif not told.is_in_doubt:
        assert left in ("refused", "rolled_back")
    again, _ = leased(path)
    open_graph(again.context, writable=True)
    decided = again.operation(told.operation_id).status
    assert left in (decided, "pending")
    for table in WRITTEN:
        assert ("new p0" in names(again, table)) == (decided == "committed"), "torn between tables"
        assert ("rival rival" in names(again, table)) == rival_writes, "an acknowledged write was lost"
    assert all(again.operation(r).status == "committed" for r in rivals)
    assert (heads(again), pending_files(path)) == (pins(again), [])
    tokens = [c.lock_token for c in again.list_commits() if c.lock_token is not None]
    assert tokens == sorted(tokens, reverse=True), "a token went backwards"
    write_until_it_lands(again, {t: Upsert(rows_of(t, ["later"], "later")) for t in WRITTEN})


def test_a_write_that_loses_its_lock_while_settling_is_refused_with_what_to_do(
    path: str, skip_ms: Callable[[int], None]
) -> None:
    graph, _ = leased(path)
    before = interrupt(graph, "upsert", "mid_phase_b", WRITTEN)
    failpoints.arm("recovery.pre_phase_a", lambda: (leased(path)[0].break_lock(), skip_ms(LOOK_MS)))
    plan = plan_of(graph, EFFECTS["append"], WRITTEN, new_ulid())
    with pytest.raises(LockLost, match="broken") as refused:
        commit_plan(graph.context, plan)
    assert "Nothing was written" in refused.value.hint
    assert graph.operation(plan.operation_id).status == "refused"
    assert graph.operation(before).status == "pending"


def test_an_opening_that_loses_its_lock_in_the_middle_still_opens(path: str, skip_ms: Callable[[int], None]) -> None:
    graph, _ = leased(path)
    waiting = interrupt(graph, "upsert", "post_phase_b_pre_manifest_commit", WRITTEN)
    failpoints.arm("recovery.pre_phase_a", lambda: (leased(path)[0].break_lock(), skip_ms(LOOK_MS)))
    open_graph(graph.context, writable=True)
    assert graph.operation(waiting).status == "pending", "without the lock it may not decide"
    open_graph(graph.context, writable=True)
    assert graph.operation(waiting).status == "committed"


def test_an_opening_that_loses_its_lock_while_healing_still_opens(
    path: str, skip_ms: Callable[[int], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    graph, _ = leased(path)
    late_effect(graph)
    raise_token = LeasedLock.raise_token

    def broken_meanwhile(lock: LeasedLock, floor: int) -> None:
        raise_token(lock, floor)
        leased(path)[0].break_lock()
        skip_ms(LOOK_MS)

    with monkeypatch.context() as patch:
        patch.setattr(LeasedLock, "raise_token", broken_meanwhile)
        open_graph(graph.context, writable=True)
    assert heads(graph) != pins(graph)
    open_graph(graph.context, writable=True)
    assert heads(graph) == pins(graph)


# ---- tokens


def forget_locks(path: str) -> None:
    for name in os.listdir(f"{path}/{layout.LOCK_DIR}"):
        os.unlink(f"{path}/{layout.LOCK_DIR}/{name}")


@pytest.mark.parametrize("is_leased", [False, True], ids=["flock", "lease"])
def test_tokens_on_a_branch_grow_though_its_lock_was_deleted(path: str, is_leased: bool) -> None:
    graph = leased(path)[0] if is_leased else Graph.open(path)
    tokens = []
    for k in range(4):
        receipt = graph.write({t: Upsert(rows_of(t, ["p0"], f"round {k}")) for t in WRITTEN})
        tokens.append(receipt.commit.lock_token)
        forget_locks(path)
    assert tokens == sorted(set(tokens))


@pytest.mark.parametrize("is_leased", [False, True], ids=["flock", "lease"])
def test_late_effects_are_healed_though_the_lock_was_deleted(path: str, is_leased: bool) -> None:
    graph = leased(path)[0] if is_leased else Graph.open(path)
    for _ in range(3):
        graph.write({t: Upsert(rows_of(t, ["p0"], "round")) for t in WRITTEN})
    before = seen(graph)
    late_effect(graph)
    forget_locks(path)
    open_graph(graph.context, writable=True)
    assert (heads(graph), seen(graph)) == (pins(graph), before)
    tokens = [c.lock_token for c in graph.list_commits() if c.lock_token is not None]
    assert tokens == sorted(set(tokens), reverse=True)


# ---- stale reads


@pytest.mark.parametrize("stale", [("list",), ("get",), ("list", "get")], ids="-".join)
@pytest.mark.parametrize("window", ["mid_phase_b", "post_phase_b_pre_manifest_commit"])
def test_a_sidecar_that_a_writer_does_not_see_yet_is_settled_whole_later(
    path: str, window: str, stale: tuple[str, ...]
) -> None:
    graph, objects = leased(path)
    objects.remember(layout.RECOVERY_DIR)
    waiting = interrupt(graph, "upsert", window, WRITTEN)
    objects.when(Fault.STALE, on(*stale, key=layout.RECOVERY_DIR), times=None)
    later = write_until_it_lands(graph, {t: Upsert(rows_of(t, ["later"], "later")) for t in TABLES})
    objects.heal()
    again = Graph.open(path)
    decided = again.operation(waiting).status
    assert decided in ("committed", "rolled_back")
    for table in WRITTEN:
        assert ("new p0" in names(again, table)) == (decided == "committed")
        assert "later later" in names(again, table)
    assert again.operation(later.operation_id).status == "committed"
    assert (heads(again), pending_files(path)) == (pins(again), [])


def test_a_sidecar_that_is_seen_again_after_it_was_settled_changes_nothing(path: str) -> None:
    graph, objects = leased(path)
    waiting = interrupt(graph, "upsert", "post_phase_b_pre_manifest_commit", WRITTEN)
    objects.remember(layout.RECOVERY_DIR)
    open_graph(graph.context, writable=True)
    shown, commits = seen(graph), len(graph.list_commits())
    objects.when(Fault.STALE, on("list", "get", key=layout.RECOVERY_DIR), times=None)
    open_graph(graph.context, writable=True)
    graph.refresh()
    assert (seen(graph), len(graph.list_commits())) == (shown, commits)
    assert graph.operation(waiting).status == "committed"
    assert len(graph.recoveries().records) == 1


def test_a_sidecar_whose_answer_was_lost_and_that_is_not_seen_yet_is_refused_and_never_comes_true(path: str) -> None:
    graph, objects = leased(path)
    before = seen(graph)
    objects.remember(layout.RECOVERY_DIR)
    objects.when(Fault.LOST, on("put_if_absent", key=layout.RECOVERY_DIR))
    objects.when(Fault.STALE, on("get", key=layout.RECOVERY_DIR))
    told = write(graph)
    assert isinstance(told.error, Unavailable)
    again = Graph.open(path)
    assert (again.operation(told.operation_id).status, seen(again)) == ("rolled_back", before)
    assert (heads(again), pending_files(path)) == (pins(again), [])


def test_a_sidecar_of_which_nothing_can_be_learned_is_in_doubt(path: str) -> None:
    graph, objects = leased(path)
    objects.when(Fault.LOST, on("put_if_absent", key=layout.RECOVERY_DIR))
    objects.when(Fault.BEFORE, on("get", key=layout.RECOVERY_DIR))
    told = write(graph)
    assert isinstance(told.error, RecoveryRequired)
    assert told.error.operation_id == told.operation_id
    assert Graph.open(path).operation(told.operation_id).status == "rolled_back"


def test_a_lease_seen_free_while_it_is_held_is_not_taken(path: str, tmp_path: Path) -> None:
    graph, objects = leased(path)
    graph.write({t: Upsert(rows_of(t, ["p0"], "first")) for t in WRITTEN})
    objects.remember(layout.LOCK_DIR)
    with leased(path)[0].context.locks.hold(None) as lock:
        objects.when(Fault.STALE, on("get", key=layout.LOCK_DIR), times=None)
        told = write(graph)
        assert isinstance(told.error, Conflict)
        assert "is locked" in str(told.error)
        lock.check()
    objects.heal()
    assert graph.operation(told.operation_id).status == "refused"
    assert write(graph).is_committed
