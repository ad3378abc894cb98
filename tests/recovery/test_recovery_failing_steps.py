"""A step that fails while its writer lives: the writer takes everything back itself, or says that it could not."""

from __future__ import annotations

import pytest
from crash_world import EFFECTS, TABLES, heads, pending_files, pins, plan_of, rows_of, seen
from recovery_scene import PERSON, audit_of, foreign_append

from omnigraph.base import failpoints
from omnigraph.base.errors import ExpectedVersionMismatch, Kind, RecoveryRequired, Unavailable
from omnigraph.base.failpoints import FailpointHit
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import WritePlan
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.write.changes import Upsert
from omnigraph.graph import Graph
from omnigraph.storage.apply import commit_staged

pytestmark = pytest.mark.slow


def planned(graph: Graph, effect: str) -> WritePlan:
    return plan_of(graph, EFFECTS[effect], TABLES, new_ulid())


def check_nothing_is_left(graph: Graph, before: dict[str, object]) -> None:
    assert seen(graph) == before
    assert (pending_files(graph.uri), heads(graph)) == ([], pins(graph))
    graph.write({t: Upsert(rows_of(t, ["p0"], "next")) for t in TABLES})
    assert heads(graph) == pins(graph)


@pytest.mark.parametrize("effect", sorted(EFFECTS))
@pytest.mark.parametrize(
    ("window", "skip"), [("mid_phase_b", 0), ("mid_phase_b", 1), ("post_phase_b_pre_manifest_commit", 0)]
)
def test_a_step_that_fails_after_tables_moved_is_undone_by_its_writer(
    graph: Graph, effect: str, window: str, skip: int
) -> None:
    before, plan = seen(graph), planned(graph, effect)
    failpoints.arm(f"{plan.writer.name}.{window}", failpoints.fail, skip)
    with pytest.raises(RecoveryRequired, match="the write was rolled back") as refused:
        commit_plan(graph.context, plan)
    assert refused.value.operation_id == plan.operation_id
    outcome = graph.operation(plan.operation_id)
    assert outcome.status == "rolled_back"
    assert outcome.commit is not None
    assert (outcome.commit.kind, outcome.commit.actor_id) == ("recovery", plan.actor_id)
    assert audit_of(graph, plan.operation_id) is None, "an undo by the writer itself is no recovery"
    check_nothing_is_left(graph, before)


def test_a_failure_before_phase_a_leaves_no_trace(graph: Graph) -> None:
    before, plan, version = seen(graph), planned(graph, "upsert"), graph.snapshot().version
    failpoints.arm("load.pre_phase_a", failpoints.fail)
    with pytest.raises(FailpointHit):
        commit_plan(graph.context, plan)
    assert graph.operation(plan.operation_id).status == "refused"
    assert graph.snapshot().version == version
    check_nothing_is_left(graph, before)


def test_a_failure_right_after_arming_is_taken_back(graph: Graph) -> None:
    before, plan = seen(graph), planned(graph, "upsert")
    failpoints.arm("load.post_phase_a_pre_phase_b", failpoints.fail)
    with pytest.raises(RecoveryRequired, match="the write was rolled back"):
        commit_plan(graph.context, plan)
    assert graph.operation(plan.operation_id).status == "rolled_back"
    check_nothing_is_left(graph, before)


@pytest.mark.parametrize("window", ["post_manifest_commit_pre_phase_d", "post_phase_d"])
def test_a_failure_after_the_publish_takes_nothing_back(graph: Graph, window: str) -> None:
    plan = planned(graph, "upsert")
    failpoints.arm(f"load.{window}", failpoints.fail)
    with pytest.raises(FailpointHit):
        commit_plan(graph.context, plan)
    reopened = Graph.open(graph.uri)
    assert reopened.operation(plan.operation_id).status == "committed"
    assert audit_of(reopened, plan.operation_id) is None
    assert (pending_files(graph.uri), heads(reopened)) == ([], pins(reopened))
    assert all("new p0" in {dict(r)["name"] for r in seen(reopened)[t].rows} for t in TABLES)


def test_an_undo_that_fails_leaves_the_sidecar_and_says_so(graph: Graph) -> None:
    before, plan = seen(graph), planned(graph, "upsert")
    failpoints.arm("load.post_phase_b_pre_manifest_commit", failpoints.fail)
    failpoints.arm("recovery.mid_phase_b", failpoints.fail, 1)
    with pytest.raises(RecoveryRequired, match="its undo failed") as refused:
        commit_plan(graph.context, plan)
    assert refused.value.kind is Kind.IN_DOUBT
    assert plan.operation_id in str(refused.value)
    assert graph.operation(plan.operation_id).status == "pending"
    assert seen(graph) == before
    reopened = Graph.open(graph.uri)
    assert reopened.operation(plan.operation_id).status == "committed"
    assert pending_files(graph.uri) == []


def test_a_sidecar_that_cannot_be_written_stops_the_write_before_any_table_moves(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    before, plan = seen(graph), planned(graph, "upsert")

    def full(_key: str, _data: bytes) -> None:
        raise Unavailable("could not write: the disk is full", what="disk")

    with monkeypatch.context() as patch:
        patch.setattr(graph.context.objects, "put_if_absent", full)
        with pytest.raises(Unavailable):
            commit_plan(graph.context, plan)
    assert graph.operation(plan.operation_id).status == "refused"
    check_nothing_is_left(graph, before)


def test_a_sidecar_whose_answer_was_lost_counts_when_it_is_there(graph: Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    plan, put = planned(graph, "upsert"), graph.context.objects.put_if_absent

    def answer_lost(key: str, data: bytes) -> None:
        put(key, data)
        raise Unavailable("could not write: no answer", what="store")

    monkeypatch.setattr(graph.context.objects, "put_if_absent", answer_lost)
    receipt = commit_plan(graph.context, plan)
    assert graph.operation(receipt.operation_id).status == "committed"
    assert pending_files(graph.uri) == []


def test_one_operation_id_cannot_be_used_twice(graph: Graph) -> None:
    plan = plan_of(graph, EFFECTS["append"], [PERSON], new_ulid())
    commit_plan(graph.context, plan)
    before = seen(graph)
    with pytest.raises(Exception, match="prepared on"):
        commit_plan(graph.context, plan)
    assert (seen(graph), heads(graph)) == (before, pins(graph))


@pytest.mark.parametrize("effect", ["append", "upsert", "overwrite"])
def test_a_commit_that_finds_its_slot_taken_by_a_late_writer_is_undone_and_refused(graph: Graph, effect: str) -> None:
    """Whether the table refused it or moved it one version further."""
    before, plan = seen(graph), planned(graph, effect)
    (late,) = plan_of(graph, EFFECTS["append"], [PERSON], new_ulid()).effects[0].steps
    failpoints.arm(f"{plan.writer.name}.post_phase_a_pre_phase_b", lambda: commit_staged(late))
    with pytest.raises(ExpectedVersionMismatch):
        commit_plan(graph.context, plan)
    assert graph.operation(plan.operation_id).status == "rolled_back"
    check_nothing_is_left(graph, before)


@pytest.mark.parametrize("effect", ["append", "upsert", "overwrite"])
def test_a_commit_that_finds_its_slot_taken_by_another_tool_is_left_to_recovery(graph: Graph, effect: str) -> None:
    before, plan = seen(graph), planned(graph, effect)
    failpoints.arm(f"{plan.writer.name}.post_phase_a_pre_phase_b", lambda: foreign_append(graph, PERSON))
    with pytest.raises(RecoveryRequired, match="its undo failed"):
        commit_plan(graph.context, plan)
    assert graph.operation(plan.operation_id).status == "pending"
    assert seen(graph) == before
    reopened = Graph.open(graph.uri)
    assert reopened.operation(plan.operation_id).status == "rolled_back"
    check_nothing_is_left(reopened, before)
