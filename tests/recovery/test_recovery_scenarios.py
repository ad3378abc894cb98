"""The scenarios of the write path, each under its own name."""

from __future__ import annotations

from pathlib import Path

import lance
import pytest
from crash_world import EFFECTS, TABLES, heads, pending_files, pins, plan_of, rows_of, seen
from recovery_scene import COMPANY, KNOWS, PERSON, audit_of, interrupt, ref_of, rival_of, write_until_it_lands

from omnigraph.base import failpoints
from omnigraph.base.errors import RecoveryRequired
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import MUTATION
from omnigraph.commit.protocol import commit_plan
from omnigraph.commit.recovery.settle import sweep
from omnigraph.engine.write.changes import Annotations, Append, Delete, Overwrite, Upsert, plan_changes
from omnigraph.graph import Graph
from omnigraph.manifest.publisher import Precondition
from omnigraph.storage.apply import commit_staged, landed, restore
from omnigraph.storage.failures import CommitLost
from omnigraph.storage.stage import RESTORE_STEP, StagedWrite, Stamp, stage_append

pytestmark = pytest.mark.slow


def staged_append(graph: Graph, *ids: str) -> StagedWrite:
    table = graph.view().table(PERSON)
    rows = rows_of(PERSON, ids, "late").select(table.schema.names).cast(table.schema)
    return stage_append(table, rows, Stamp(new_ulid(), PERSON, "0"))


def test_lance_restore_loses_to_concurrent_append_via_orphaning(graph: Graph) -> None:
    ref, pin = ref_of(graph, PERSON), pins(graph)[PERSON]
    first, second = staged_append(graph, "first"), staged_append(graph, "second")
    base = lance.dataset(ref.uri, version=pin)

    assert landed(first, pin, commit_staged(first))
    undoing = lance.Transaction(pin, lance.LanceOperation.Restore(pin))
    restored = lance.LanceDataset.commit(base, undoing, max_retries=20)
    assert "first" not in restored.to_table(["id"])["id"].to_pylist(), "an append committed before is silently undone"

    restore(ref, pin, Stamp(new_ulid(), PERSON, RESTORE_STEP))
    answer = commit_staged(second)
    assert isinstance(answer.error, CommitLost), "an append prepared before and committed after is refused"
    assert not landed(second, pin, answer)
    assert "second" not in lance.dataset(ref.uri).to_table(["id"])["id"].to_pylist()


@pytest.mark.parametrize("ids", [["p0", "x"], []], ids=["rows", "empty"])
def test_stage_overwrite_preserves_stable_row_ids(graph: Graph, ids: list[str]) -> None:
    graph.write({PERSON: Overwrite(rows_of(PERSON, ids, "over"))})
    graph.write({PERSON: Append(rows_of(PERSON, ["after"], "over"))})
    table = graph.view().table(PERSON)
    assert table.has_stable_row_ids
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    rows = table.read(columns).to_pylist()
    assert sorted(r["id"] for r in rows) == sorted([*ids, "after"])
    assert len({r["_rowid"] for r in rows}) == len(rows)
    assert {r["_row_created_at_version"] for r in rows if r["id"] == "after"} == {table.version}


def test_recovery_roll_back_converges(graph: Graph) -> None:
    before, version = seen(graph), graph.snapshot().version
    operation = interrupt(graph, "upsert", "mid_phase_b", skip=1)

    recovered = Graph.open(graph.uri)
    assert seen(recovered) == before
    assert heads(recovered) == pins(recovered)
    assert recovered.operation(operation).status == "rolled_back"
    settled = recovered.snapshot().version, heads(recovered)
    assert settled[0] > version

    for _ in range(3):
        again = Graph.open(graph.uri)
        assert (again.snapshot().version, heads(again)) == settled
    graph.write({t: Upsert(rows_of(t, ["p0"], "next")) for t in TABLES})
    assert heads(graph) == pins(graph)


def test_late_commit_of_a_sleeping_writer_is_healed(graph: Graph, tmp_path: Path) -> None:
    plan = plan_of(graph, EFFECTS["append"], [PERSON], new_ulid())
    rival = rival_of(graph, tmp_path / "locks")
    (staged,) = plan.effects[0].steps

    def sleep() -> None:
        """Meanwhile another settles our sidecar and commits elsewhere; then our table commit lands all the same."""
        sweep(rival.context)
        rival.write({COMPANY: Delete(("p0",))}, writer=MUTATION)
        assert commit_staged(staged).error is None
        failpoints.fail()

    failpoints.arm("mutation.post_phase_a_pre_phase_b", sleep)
    with pytest.raises(RecoveryRequired, match="the write was rolled back"):
        commit_plan(graph.context, plan)
    shown = seen(rival)
    assert pending_files(graph.uri) == []
    assert heads(graph)[PERSON] == pins(graph)[PERSON] + 1

    next_one = Graph.open(graph.uri)
    write_until_it_lands(next_one, {PERSON: Append(rows_of(PERSON, ["next"], "next"))})
    assert next_one.operation(plan.operation_id).status == "rolled_back"
    assert heads(next_one) == pins(next_one)
    now = seen(next_one)
    assert {t: now[t] for t in (COMPANY, KNOWS)} == {t: shown[t] for t in (COMPANY, KNOWS)}
    assert [r for r in now[PERSON].rows if ("id", "next") not in r] == list(shown[PERSON].rows)


@pytest.mark.parametrize(
    "point", ["recovery.pre_phase_a", "recovery.post_phase_a_pre_phase_b", "recovery.post_phase_b_pre_manifest_commit"]
)
def test_roll_back_never_undoes_an_acknowledged_commit(graph: Graph, tmp_path: Path, point: str) -> None:
    operation = interrupt(graph, "upsert", "mid_phase_b", skip=1)
    rival = rival_of(graph, tmp_path / "locks")
    acknowledged = []

    def overtake() -> None:
        sweep(rival.context)
        acknowledged.append(rival.write({t: Upsert(rows_of(t, ["p0"], "acknowledged")) for t in TABLES}))

    failpoints.arm(point, overtake)
    recovered = Graph.open(graph.uri)
    (receipt,) = acknowledged
    assert recovered.operation(receipt.operation_id).status == "committed"
    assert recovered.operation(operation).status == "rolled_back"
    assert audit_of(recovered, operation) is not None
    # Only the healing of the restore that came too late may follow the acknowledged commit.
    newer = recovered.list_commits()[
        : [c.graph_commit_id for c in recovered.list_commits()].index(receipt.graph_commit_id)
    ]
    assert all("healed" in c.metadata["omnigraph"] for c in newer)
    assert {dict(r)["name"] for t in TABLES for r in seen(recovered)[t].rows if ("id", "p0") in r} == {
        "acknowledged p0"
    }
    write_until_it_lands(recovered, {t: Upsert(rows_of(t, ["q0"], "next")) for t in TABLES})
    assert heads(recovered) == pins(recovered)
    assert {dict(r)["name"] for t in TABLES for r in seen(recovered)[t].rows if ("id", "p0") in r} == {
        "acknowledged p0"
    }


def test_undo_that_finds_itself_published_answers_success(graph: Graph, tmp_path: Path) -> None:
    rival = rival_of(graph, tmp_path / "locks")
    plan = plan_of(graph, EFFECTS["upsert"], TABLES, new_ulid())

    def published_by_another() -> None:
        sweep(rival.context)
        failpoints.fail()

    failpoints.arm("load.post_phase_b_pre_manifest_commit", published_by_another)
    receipt = commit_plan(graph.context, plan)
    assert receipt.graph_commit_id == plan.graph_commit_id
    assert (receipt.commit.kind, receipt.commit.actor_id) == ("recovery", "omnigraph:recovery")
    assert graph.operation(plan.operation_id).status == "committed"
    assert (pending_files(graph.uri), heads(graph)) == ([], pins(graph))
    assert [c.operation_id for c in graph.list_commits()].count(plan.operation_id) == 1
    assert all("new p0" in {dict(r)["name"] for r in seen(graph)[t].rows} for t in TABLES)


def test_roll_forward_requires_the_parent_it_was_validated_against(graph: Graph) -> None:
    edges = interrupt(graph, "append", "mid_phase_b", tables=[KNOWS])
    notes, before = Annotations(), seen(graph)
    node_delete = plan_changes(graph.view(), {PERSON: Delete(("p0",))}, MUTATION, notes)
    for effect in node_delete.effects:
        assert commit_staged(effect.steps[0]).error is None
    head = graph.head_commit_id_for_branch()
    graph.context.publisher.publish(
        None, node_delete.changes, {}, node_delete.intent(None), Precondition(parent=head, bind_parent=True)
    )

    recovered = Graph.open(graph.uri)
    assert recovered.operation(edges).status == "rolled_back"
    assert seen(recovered)[KNOWS] == before[KNOWS], "an edge appeared whose node is gone"
    assert "p0" not in {dict(r)["id"] for r in seen(recovered)[PERSON].rows}
    assert heads(recovered) == pins(recovered)


@pytest.mark.parametrize("effect", ["compaction", "compaction_then_index"])
def test_crash_between_compaction_and_publish_rolls_forward(graph: Graph, effect: str) -> None:
    """One of the tables carries an index, which the compaction remaps."""
    before = seen(graph)
    operation = interrupt(graph, effect, "post_phase_b_pre_manifest_commit")
    recovered = Graph.open(graph.uri)
    now = seen(recovered)
    assert {t: now[t].rows for t in TABLES} == {t: before[t].rows for t in TABLES}
    assert {t: now[t].fragments for t in TABLES} == dict.fromkeys(TABLES, 1)
    assert now[COMPANY].indexes == (("n_btree_idx", "name_btree_idx") if "index" in effect else ("n_btree_idx",))
    assert heads(recovered) == pins(recovered)
    audit = audit_of(recovered, operation)
    assert audit is not None
    assert (audit.recovery_kind, audit.sidecar_writer_kind) == ("RolledForward", "Optimize")
    recovered.write({t: Upsert(rows_of(t, ["p0"], "next")) for t in TABLES})
