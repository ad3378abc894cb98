"""Versions above a pin: torn, foreign, or maintenance; and what readers and operators get to see of it."""

from __future__ import annotations

import dataclasses
import os

import lance
import pytest
from crash_world import EFFECTS, TABLES, heads, listing, pending_files, pins, plan_of, rows_of, seen
from recovery_scene import (
    COMPANY,
    KNOWS,
    PERSON,
    audit_of,
    foreign_append,
    interrupt,
    ref_of,
    tear,
    write_until_it_lands,
)

from omnigraph.base.errors import Drift, Kind
from omnigraph.base.ids import new_ulid
from omnigraph.commit.recovery.settle import RecoveryAborted
from omnigraph.commit.sidecar import encode, sidecar_of
from omnigraph.engine.write.changes import Append, Upsert
from omnigraph.graph import Graph, OpenMode
from omnigraph.manifest import layout
from omnigraph.manifest.branches import create_manifest_branch
from omnigraph.storage.refs import delete_branch

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("torn", [PERSON, KNOWS])
def test_a_torn_version_of_an_interrupted_write_is_rolled_back(graph: Graph, torn: str) -> None:
    before, pin = seen(graph), pins(graph)[torn]
    operation = interrupt(graph, "upsert", "post_phase_b_pre_manifest_commit")
    tear(graph, torn, pin + 1)

    recovered = Graph.open(graph.uri)
    assert seen(recovered) == before
    assert heads(recovered) == pins(recovered)
    assert recovered.operation(operation).status == "rolled_back"
    audit = audit_of(recovered, operation)
    assert audit is not None
    assert {o.table_key: (o.from_version, o.to_version) for o in audit.per_table_outcomes}[torn] == (pin + 1, pin)
    recovered.write({t: Upsert(rows_of(t, ["p0"], "next")) for t in TABLES})
    assert heads(recovered) == pins(recovered)


def test_a_torn_version_that_no_sidecar_explains_is_drift(graph: Graph) -> None:
    before, pin = seen(graph), pins(graph)[PERSON]
    tear(graph, PERSON, pin + 1)
    reopened = Graph.open(graph.uri)
    assert seen(reopened) == before
    with pytest.raises(Drift, match=f"node:Person on branch 'main' has head {pin + 1} ahead of its pin {pin}"):
        reopened.write({PERSON: Append(rows_of(PERSON, ["next"], "next"))})
    assert seen(reopened) == before


def test_a_head_below_its_pin_aborts_recovery_loudly_and_keeps_the_sidecar(graph: Graph) -> None:
    operation = interrupt(graph, "upsert", "post_phase_a_pre_phase_b")
    pin = pins(graph)[PERSON]
    os.unlink(f"{graph.uri}/{ref_of(graph, PERSON).version_file(pin)}")
    left = {k: v for k, v in listing(graph.uri).items() if not k.startswith(layout.LOCK_DIR)}

    with pytest.raises(RecoveryAborted, match=f"node:Person has head {pin - 1} below its pin {pin}") as aborted:
        Graph.open(graph.uri)
    assert layout.sidecar_key(operation) in str(aborted.value)
    assert aborted.value.hint
    assert {k: v for k, v in listing(graph.uri).items() if not k.startswith(layout.LOCK_DIR)} == left
    with pytest.raises(RecoveryAborted):
        graph.write({COMPANY: Append(rows_of(COMPANY, ["next"], "next"))})
    assert Graph.open(graph.uri, "r").operation(operation).status == "pending"


@pytest.mark.parametrize("created_again", [False, True], ids=["deleted", "created-again"])
def test_the_sidecar_of_a_branch_that_is_gone_is_discarded_and_audited(graph: Graph, created_again: bool) -> None:
    manifest, objects = graph.context.manifest, graph.context.objects
    incarnation = create_manifest_branch(manifest, None, "feature")
    plan = plan_of(graph, EFFECTS["append"], [PERSON], new_ulid())
    plan = dataclasses.replace(plan, branch="feature", branch_incarnation=incarnation)
    sidecar = sidecar_of(plan, graph.head_commit_id_for_branch(), 1)
    assert objects.put_if_absent(sidecar.key, encode(sidecar)) is not None
    delete_branch(manifest.ref(), "feature")
    if created_again:
        create_manifest_branch(manifest, None, "feature")
    before, commits = seen(graph), len(graph.list_commits())

    recovered = Graph.open(graph.uri)
    assert pending_files(graph.uri) == []
    audit = audit_of(recovered, plan.operation_id)
    assert audit is not None
    assert (audit.recovery_kind, audit.graph_commit_id) == ("OrphanedBranchDiscarded", None)
    assert recovered.operation(plan.operation_id).status == "rolled_back"
    assert (seen(recovered), len(recovered.list_commits())) == (before, commits)


def test_rows_another_tool_appended_are_drift_on_the_next_write_and_never_shown(graph: Graph) -> None:
    before, pin = seen(graph), pins(graph)[PERSON]
    foreign_append(graph, PERSON)
    reopened = Graph.open(graph.uri)
    assert seen(reopened) == before
    with pytest.raises(Drift) as refused:
        reopened.write({t: Append(rows_of(t, ["next"], "next")) for t in TABLES})
    assert refused.value.details() == {"table_key": PERSON, "branch": "main", "pinned": pin, "head": pin + 1}
    assert refused.value.kind is Kind.CONFLICT
    assert "omnigraph repair" in refused.value.hint
    assert seen(reopened) == before
    reopened.write({COMPANY: Append(rows_of(COMPANY, ["next"], "next"))})


def test_foreign_rows_beneath_a_late_commit_of_ours_are_drift_too(graph: Graph) -> None:
    before = seen(graph)
    foreign_append(graph, PERSON)
    lance.dataset(ref_of(graph, PERSON).uri).optimize.compact_files()
    with pytest.raises(Drift):
        graph.write({PERSON: Append(rows_of(PERSON, ["next"], "next"))})
    assert seen(graph) == before


def test_rows_appended_by_another_tool_during_an_interrupted_write_are_removed_by_its_roll_back(graph: Graph) -> None:
    before = seen(graph)
    operation = interrupt(graph, "upsert", "mid_phase_b")
    foreign_append(graph, KNOWS)
    recovered = Graph.open(graph.uri)
    assert recovered.operation(operation).status == "rolled_back"
    assert seen(recovered) == before
    assert heads(recovered) == pins(recovered)


@pytest.mark.parametrize("table", [PERSON, COMPANY], ids=["plain", "indexed"])
def test_a_compaction_by_another_tool_is_adopted_by_the_next_write(graph: Graph, table: str) -> None:
    before = seen(graph)
    lance.dataset(ref_of(graph, table).uri).optimize.compact_files()
    assert heads(graph)[table] > pins(graph)[table]
    write_until_it_lands(graph, {table: Append(rows_of(table, ["next"], "next"))})
    now = seen(graph)
    assert [r for r in now[table].rows if ("id", "next") not in r] == list(before[table].rows)
    assert now[table].fragments == 2
    assert heads(graph) == pins(graph)
    healed = [c.metadata["omnigraph"]["healed"] for c in graph.list_commits() if "healed" in str(c.metadata)]
    assert healed == [{table: "adopted"}]


@pytest.mark.parametrize("window", ["post_phase_a_pre_phase_b", "mid_phase_b", "post_phase_b_pre_manifest_commit"])
def test_a_read_only_open_beside_a_pending_sidecar_sees_the_old_state_and_changes_nothing(
    graph: Graph, window: str
) -> None:
    before, version = seen(graph), graph.snapshot().version
    operation = interrupt(graph, "upsert", window)
    left = listing(graph.uri)

    reader = Graph.open(graph.uri, OpenMode.READ_ONLY)
    assert (seen(reader), reader.snapshot().version) == (before, version)
    assert reader.operation(operation).status == "pending"
    assert [s.operation_id for s in reader.recoveries().pending] == [operation]
    reader.refresh()
    reader.status()
    reader.close()
    assert listing(graph.uri) == left


def test_every_sidecar_of_a_branch_is_settled_before_a_write_begins(graph: Graph) -> None:
    """Also one whose tables the write does not touch."""
    operation = interrupt(graph, "upsert", "post_phase_b_pre_manifest_commit", tables=[KNOWS])
    graph.write({PERSON: Append(rows_of(PERSON, ["next"], "next"))})
    assert graph.operation(operation).status == "committed"
    assert pending_files(graph.uri) == []
    assert heads(graph) == pins(graph)
