"""What repair does about each harm: as the damage table says, and nothing else."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from damage_scene import (
    KNOWS,
    PERSON,
    actions,
    append,
    contents,
    copy_of,
    foreign,
    ids,
    insert,
    kinds,
    pinned,
    ref_of,
    reopened,
    repair,
    torn_next,
    verify,
)
from harms import (
    broken_sidecar,
    cut_data_file,
    dangling_edge,
    dead_load,
    dropped_index,
    edited_schema,
    foreign_append,
    foreign_compaction,
    foreign_compaction_of_a_fork,
    foreign_delete,
    late_effect,
    lost_data_file,
    lost_index_file,
    lost_index_folder,
    lost_pin,
    out_of_range,
    pending_sidecar,
    repeated_id,
    stray_folder,
    stray_fork,
    swapped_index,
    torn_manifest,
    torn_manifest_head,
    torn_pin,
    unreadable_history,
    wrong_count,
)

import omnigraph as og
from omnigraph.manifest import layout
from omnigraph.manifest.branches import create_manifest_branch

pytestmark = pytest.mark.slow

Harm = Callable[[og.Graph], None]


def test_a_whole_graph_needs_nothing(graph: og.Graph) -> None:
    before = contents(graph)
    result = repair(graph, confirm=True)
    assert (actions(result), result.failed) == ([], False)
    assert {t.action.value for t in result.tables} == {"no_op"}
    assert {k for k in contents(graph) if "__locks" not in k} == {k for k in before if "__locks" not in k}


def test_force_without_a_confirmation_is_refused(graph: og.Graph) -> None:
    with pytest.raises(og.BadRequest, match="force needs a confirmation"):
        repair(graph, force=True)


def mended(graph: og.Graph, force: bool = False) -> og.RepairResult:
    """Preview, repair, and a graph that is whole and takes writes."""
    told = actions(repair(graph)) if not force else None
    result = repair(graph, confirm=True, force=force)
    if told is not None:
        assert actions(result)[: len(told)] == told
    assert kinds(verify(graph)) == []
    again = repair(graph, confirm=True)
    assert {t.action.value for t in again.tables} == {"no_op"}
    insert(reopened(graph), "written after")
    return result


def test_a_compaction_by_another_tool_becomes_the_pin(anywhere: og.Graph) -> None:
    foreign_compaction(anywhere)
    rows = ids(anywhere, PERSON)
    head = foreign(anywhere, PERSON).version
    result = mended(anywhere)
    assert actions(result) == [(PERSON, "main", "drift_maintenance", "healed")]
    table = next(t for t in result.tables if t.table_key == PERSON)
    assert (table.classification, table.lance_head_version, table.error) == ("verified_maintenance", head, None)
    assert table.operations[-1] == "Rewrite"
    commit = next(c for c in reopened(anywhere).list_commits() if c.kind == "repair")
    assert commit.actor_id == "omnigraph:repair"
    assert sorted([*rows, "written after"]) == ids(reopened(anywhere), PERSON)


@pytest.mark.parametrize("harm", [foreign_append, foreign_delete, unreadable_history])
def test_rows_of_another_tool_are_shown_only_by_force(anywhere: og.Graph, harm: Harm) -> None:
    before = ids(anywhere, PERSON)
    harm(anywhere)
    refused = repair(anywhere, confirm=True)
    assert refused.failed
    assert [a[3] for a in actions(refused)] == ["refused"]
    assert ids(reopened(anywhere, "r"), PERSON) == before
    result = mended(anywhere, force=True)
    assert [a[3] for a in actions(result)] == ["forced"]
    now = reopened(anywhere)
    assert set(before) ^ set(ids(now, PERSON)) >= {"later" if harm is foreign_delete else "alien"}
    commit = next(c for c in now.list_commits() if c.kind == "repair")
    assert commit.actor_id == "omnigraph:repair:force"
    effect = commit.counts[PERSON]
    assert (effect.inserts, effect.deletes) == ((0, 1) if harm is foreign_delete else (effect.inserts, 0))


BREAKING: dict[str, tuple[str, dict[str, list[object]], str]] = {
    "an id twice": (PERSON, {"id": ["p01"], "name": ["p01"]}, "occurs 2 times"),
    "out of range": (PERSON, {"id": ["old"], "name": ["old"], "age": [500]}, "value 500 > max 150"),
    "another id than its key": (PERSON, {"id": ["one"], "name": ["two"]}, "has a key that makes"),
    "no end": (KNOWS, {"id": ["e"], "src": ["p01"], "dst": ["nobody"]}, "'nobody' not found in Person"),
    "two cities": ("edge:Lives", {"id": ["e"], "src": ["p01"], "dst": ["Oslo"]}, "has 2 edges (max 1)"),
    "a value twice": ("node:City", {"id": ["R"], "name": ["R"], "code": ["ro"]}, "held by"),
}


@pytest.mark.parametrize("case", BREAKING)
def test_rows_that_break_a_rule_are_refused_even_by_force(graph: og.Graph, case: str) -> None:
    key, columns, says = BREAKING[case]
    commits = len(graph.list_commits())
    append(graph, key, **columns)
    result = repair(graph, confirm=True, force=True)
    told = next(t for t in result.tables if t.table_key == key)
    assert (told.action.value, result.failed) == ("refused", True)
    assert says in (told.error or "")
    assert len(reopened(graph, "r").list_commits()) == commits
    assert [k[0] for k in kinds(verify(graph))] == ["drift_data"]


def test_nodes_whose_edges_stay_cannot_be_taken_by_force(graph: og.Graph) -> None:
    foreign(graph, PERSON).delete("id = 'p05'")
    result = repair(graph, confirm=True, force=True)
    assert [a[3] for a in actions(result)] == ["refused"]
    assert "not found in Person" in (next(t for t in result.tables if t.finding).error or "")


def test_nodes_and_their_edges_written_together_are_taken_together(graph: og.Graph) -> None:
    append(graph, PERSON, id=["new"], name=["new"])
    append(graph, KNOWS, id=["e"], src=["new"], dst=["p01"])
    commits = len(graph.list_commits())
    result = repair(graph, confirm=True, force=True)
    assert {a[3] for a in actions(result)} == {"forced"}
    assert len(reopened(graph, "r").list_commits()) == commits + 1
    assert kinds(verify(graph)) == []


def test_a_table_that_was_set_back_is_not_taken_by_force(graph: og.Graph) -> None:
    """Rows would come back that no version after the pin wrote, and nobody could tell that they changed."""
    older = pinned(graph, PERSON).version
    graph.mutate('query up() { update Person set { age: 77 } where name = "p03" }')
    before = ids(graph, PERSON)
    foreign(graph, PERSON).checkout_version(older).restore()
    result = repair(graph, confirm=True, force=True)
    told = next(t for t in result.tables if t.finding)
    assert (told.action.value, told.operations) == ("refused", ("Restore",))
    assert "claim to be older" in (told.error or "")
    foreign(graph, PERSON).checkout_version(pinned(graph, PERSON).version).restore()
    assert [a[3] for a in actions(repair(graph, confirm=True, force=True))] == ["forced"]
    assert ids(reopened(graph), PERSON) == before
    assert kinds(verify(graph)) == []


def test_columns_of_another_tool_are_not_taken(graph: og.Graph) -> None:
    foreign(graph, PERSON).add_columns({"extra": "1"})
    result = repair(graph, confirm=True, force=True)
    told = next(t for t in result.tables if t.finding)
    assert (told.action.value, "other columns" in (told.error or "")) == ("refused", True)


def test_late_effects_of_our_own_writers_are_taken_back(anywhere: og.Graph) -> None:
    before = ids(anywhere, PERSON)
    late_effect(anywhere)
    assert actions(mended(anywhere)) == [(PERSON, "main", "late_effects", "restored")]
    assert [i for i in ids(reopened(anywhere), PERSON) if i != "written after"] == before


def test_torn_versions_above_a_pin_are_removed_newest_first(anywhere: og.Graph) -> None:
    before = ids(anywhere, PERSON)
    names = [torn_next(anywhere, PERSON)]
    table = pinned(anywhere, PERSON)
    names.append(table.ref.version_file(table.version + 2))
    anywhere.context.objects.put(names[1], copy_of(anywhere, table.ref.version_file(table.version))[:40])
    assert actions(mended(anywhere)) == [(PERSON, "main", "unreadable_above_pin", "removed")]
    assert [i for i in ids(reopened(anywhere), PERSON) if i != "written after"] == before


@pytest.mark.parametrize("force", [False, True], ids=["confirm", "force"])
def test_below_a_torn_version_what_is_left_is_classified_again(graph: og.Graph, force: bool) -> None:
    foreign_append(graph)
    head = foreign(graph, PERSON).version
    torn = ref_of(graph, PERSON).version_file(head + 1)
    graph.context.objects.put(torn, b"")
    result = repair(graph, confirm=True, force=force)
    assert actions(result) == [
        (PERSON, "main", "unreadable_above_pin", "removed"),
        (PERSON, "main", "drift_data", "forced" if force else "refused"),
    ]
    assert not graph.context.objects.exists(torn)
    assert graph.context.objects.exists(ref_of(graph, PERSON).version_file(head))
    assert ("alien" in ids(reopened(graph), PERSON)) is force


@pytest.mark.parametrize("harm", [lost_index_file, lost_index_folder, dropped_index, swapped_index])
def test_indexes_are_rebuilt(graph: og.Graph, harm: Harm) -> None:
    harm(graph)
    result = mended(graph)
    assert {a[3] for a in actions(result)} == {"rebuilt"}
    found = reopened(graph).query('query one() { match { $p: Person { name: "p07" } } return { $p.age } }')
    assert found.to_json()["rows"][0]["p.age"] == 7


def test_an_index_that_an_adopted_version_dropped_is_rebuilt_in_the_same_run(graph: og.Graph) -> None:
    foreign(graph, PERSON).drop_index("id_btree_idx")
    told = actions(repair(graph, confirm=True))
    assert told == [
        (PERSON, "main", "drift_maintenance", "healed"),
        (PERSON, "main", "missing_index", "rebuilt"),
    ]
    assert "id_btree_idx" in pinned(reopened(graph), PERSON).index_states()
    assert kinds(verify(graph)) == []


def test_indexes_that_an_adopted_compaction_broke_are_rebuilt_in_the_same_run(graph: og.Graph) -> None:
    foreign_compaction_of_a_fork(graph)
    rows = ids(graph, PERSON, "draft")
    told = actions(repair(graph, confirm=True))
    assert told[0] == (PERSON, "draft", "drift_maintenance", "healed")
    assert len(told) > 1
    assert {action for *_, action in told[1:]} == {"rebuilt"}
    assert kinds(verify(graph)) == []
    insert(reopened(graph), "written after", "draft")
    assert ids(reopened(graph), PERSON, "draft") == sorted([*rows, "written after"])


def test_no_writer_adopts_a_compaction_that_broke_indexes(graph: og.Graph) -> None:
    foreign_compaction_of_a_fork(graph)
    rows = ids(graph, PERSON, "draft")
    with pytest.raises(og.Drift) as refused:
        insert(graph, "next", "draft")
    assert "omnigraph repair" in refused.value.hint
    assert ids(reopened(graph), PERSON, "draft") == rows
    assert kinds(verify(graph)) == [("drift_maintenance", "draft", PERSON)]


def test_a_torn_manifest_version_is_removed(anywhere: og.Graph) -> None:
    torn_manifest_head(anywhere)
    assert actions(mended(anywhere)) == [("__manifest", "main", "unreadable_above_pin", "removed")]


HOPELESS = [
    (lost_data_file, "missing_data_file"),
    (cut_data_file, "missing_data_file"),
    (torn_pin, "pin_unreadable"),
    (lost_pin, "pin_unreadable"),
    (torn_manifest, "manifest_unreadable"),
    (wrong_count, "content_mismatch"),
    (repeated_id, "content_mismatch"),
    (dangling_edge, "dangling_edge"),
    (out_of_range, "constraint_violation"),
]


@pytest.mark.parametrize(("harm", "finding"), HOPELESS, ids=[harm.__name__ for harm, _ in HOPELESS])
def test_what_cannot_be_mended_is_named_and_left_as_it_is(graph: og.Graph, harm: Harm, finding: str) -> None:
    harm(graph)
    before = contents(graph)
    result = repair(graph, confirm=True, force=True)
    told = next(t for t in result.tables if t.finding == finding)
    assert (told.action.value, result.failed) == ("unrepairable", True)
    assert told.error
    now = contents(graph)
    assert {name: now[name] for name in before if "__locks" not in name} == {
        name: digest for name, digest in before.items() if "__locks" not in name
    }


@pytest.mark.parametrize("harm", [stray_folder, stray_fork, dead_load])
def test_leftovers_are_left_to_cleanup(graph: og.Graph, harm: Harm) -> None:
    harm(graph)
    result = repair(graph, confirm=True)
    assert ({a[3] for a in actions(result)}, result.failed) == ({"left"}, False)
    assert all("omnigraph cleanup" in (t.error or "") for t in result.tables if t.finding)


@pytest.mark.parametrize("harm", [pending_sidecar, broken_sidecar])
def test_nothing_is_mended_while_a_write_waits_for_recovery(graph: og.Graph, harm: Harm) -> None:
    torn_above_edges(graph)
    harm(graph)
    before = contents(graph)
    result = repair(graph, confirm=True)
    assert {a[3] for a in actions(result)} == {"refused"}
    assert all(
        "recovery pending" in (t.error or "") or t.finding == "recovery_pending" for t in result.tables if t.finding
    )
    assert {k: v for k, v in contents(graph).items() if "__locks" not in k} == {
        k: v for k, v in before.items() if "__locks" not in k
    }


def torn_above_edges(graph: og.Graph) -> None:
    torn_next(graph, KNOWS)


def test_a_broken_schema_is_refused_with_the_text_of_its_contract(graph: og.Graph) -> None:
    foreign_append(graph)
    edited_schema(graph)
    result = repair(graph, confirm=True, force=True)
    told = {t.finding: t for t in result.tables if t.finding}
    assert {t.action.value for t in told.values()} == {"refused"}
    assert all("no longer matches the accepted compiled schema" in (t.error or "") for t in told.values())


def test_a_fork_is_mended_and_main_is_not_touched(graph: og.Graph) -> None:
    graph.branch_create("draft")
    insert(graph, "mine", "draft")
    insert(graph, "more", "draft")
    head = graph.head_commit_id_for_branch()
    foreign(graph, PERSON, "draft").delete("id = 'mine'")
    torn = ref_of(graph, PERSON, "draft").version_file(foreign(graph, PERSON, "draft").version + 1)
    graph.context.objects.put(torn, b"")
    result = repair(graph, confirm=True, force=True)
    assert [a[1:] for a in actions(result)] == [
        ("draft", "unreadable_above_pin", "removed"),
        ("draft", "drift_data", "forced"),
    ]
    now = reopened(graph)
    assert "mine" not in ids(now, PERSON, "draft")
    assert now.head_commit_id_for_branch() == head
    assert kinds(verify(graph)) == []


def test_an_index_that_a_branch_only_inherits_is_rebuilt_on_a_fork_of_its_own(graph: og.Graph) -> None:
    graph.branch_create("draft")
    lost_index_file(graph)
    graph.ensure_indices()
    insert(graph, "on main")
    result = repair(graph, confirm=True)
    assert not result.failed, result
    assert kinds(verify(graph)) == []
    assert ids(reopened(graph), PERSON, "draft") == [i for i in ids(graph, PERSON) if i != "on main"]


def test_an_open_handle_repairs_and_reads_on(graph: og.Graph) -> None:
    query = "query n() { match { $p: Person } return { $p.name } }"
    count = graph.query(query).row_count
    foreign_append(graph)
    assert graph.repair().tables
    assert graph.repair(confirm=True, force=True).failed is False
    assert graph.query(query).row_count == count + 1
    with pytest.raises(og.BadRequest, match="read-only"):
        reopened(graph, "r").repair(confirm=True)


def test_nothing_is_mended_while_a_schema_apply_runs(graph: og.Graph) -> None:
    create_manifest_branch(graph.context.manifest, None, layout.SCHEMA_LOCK_BRANCH)
    with pytest.raises(og.Conflict, match="a schema apply is running"):
        repair(graph, confirm=True)
