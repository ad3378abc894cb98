"""Across a commit of repair all that tells states apart tells the truth: diffs, history, feed, merges, images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import lance
import pyarrow as pa
import pytest
from damage_scene import PERSON, append, foreign, insert, kinds, pinned, ref_of, reopened, repair, rows_like, verify
from harms import foreign_compaction

import omnigraph as og
from omnigraph.storage.tables import open_table

pytestmark = pytest.mark.slow

NAMES = "query n() { match { $p: Person } return { $p.name, $p.age } order { $p.name } }"
Rows = dict[str, dict[str, Any]]


def updated(graph: og.Graph) -> None:
    foreign(graph, PERSON).update({"age": "99"}, where="id IN ('p03', 'later')")


def deleted(graph: og.Graph) -> None:
    foreign(graph, PERSON).delete("id = 'later'")


def appended(graph: og.Graph) -> None:
    append(graph, PERSON, id=["new1", "new2"], name=["new1", "new2"])


def upserted(graph: og.Graph) -> None:
    rows = rows_like(graph, PERSON, id=["p04", "fresh"], name=["p04", "fresh"], age=[44, 45])
    foreign(graph, PERSON).merge_insert("id").when_matched_update_all().when_not_matched_insert_all().execute(rows)


def replaced(graph: og.Graph) -> None:
    rows = foreign(graph, PERSON).to_table()
    ages = pa.array(
        [None if i == "p05" else a for i, a in zip(rows["id"].to_pylist(), rows["age"].to_pylist(), strict=True)]
    )
    rows = rows.set_column(rows.schema.get_field_index("age"), rows.schema.field("age"), ages.cast(pa.int32()))
    lance.write_dataset(rows, ref_of(graph, PERSON).uri, mode="overwrite")


def replaced_row(graph: og.Graph) -> None:
    """Deleted and written again: the same id in another row."""
    foreign(graph, PERSON).delete("id = 'p06'")
    append(graph, PERSON, id=["p06"], name=["p06"], age=[66])


def everything(graph: og.Graph) -> None:
    updated(graph)
    appended(graph)
    foreign(graph, PERSON).optimize.compact_files()
    deleted(graph)
    upserted(graph)
    foreign(graph, PERSON).optimize.compact_files()


CHANGES = [updated, deleted, appended, upserted, replaced, replaced_row, everything]


def stored(graph: og.Graph, commit: str | None = None) -> Rows:
    """The rows of a commit as they lie on disk, read without anything that compares states."""
    entry = graph.snapshot_of(commit).tables[PERSON]
    table = open_table(graph.context.ref(entry.location, entry.table_branch), entry.table_version, PERSON)
    return {row["id"]: row for row in table.dataset.to_table().to_pylist()}


def truth(before: Rows, after: Rows) -> dict[str, str]:
    told = dict.fromkeys(after.keys() - before.keys(), "insert")
    told |= dict.fromkeys(before.keys() - after.keys(), "delete")
    return told | {id_: "update" for id_ in before.keys() & after.keys() if before[id_] != after[id_]}


@pytest.mark.parametrize("change", CHANGES)
def test_forced_rows_are_told_by_diff_feed_and_history(graph: og.Graph, change: Callable[[og.Graph], None]) -> None:
    insert(graph, "earlier")
    graph.mutate('query up() { update Person set { age: 3 } where name = "p03" }')
    head, was = graph.head_commit_id_for_branch(), stored(graph)
    seen = graph.query(NAMES).to_json()["rows"]
    cursor = graph.changes_poll().cursor
    change(graph)
    assert next(t.action.value for t in repair(graph, confirm=True, force=True).tables if t.finding) == "forced"
    assert kinds(verify(graph)) == []
    expected = truth(was, stored(graph))
    assert expected

    forced = next(c for c in graph.list_commits() if c.kind == "repair")
    assert {c.id: c.op for c in graph.diff(str(head), "main").changes} == expected
    told = {c.id: c.op for block in graph.changes_poll(cursor=cursor).blocks for c in block.changes}
    assert told == expected
    effect = forced.counts[PERSON]
    ops = list(expected.values())
    assert (effect.inserts, effect.updates, effect.deletes) == tuple(map(ops.count, ("insert", "update", "delete")))
    for id_, op in expected.items():
        newest = graph.history("Person", id_)[0]
        assert newest.cause is not None
        assert (newest.cause.graph_commit_id, newest.op) == (forced.graph_commit_id, op)
    for id_ in ("p01", "earlier"):
        assert all(p.cause is not None and p.cause.kind != "repair" for p in graph.history("Person", id_))

    now = graph.query(NAMES).to_json()["rows"]
    assert now == reopened(graph, "r").query(NAMES).to_json()["rows"]
    assert now != seen
    assert graph.query(NAMES, snapshot=head).to_json()["rows"] == seen


def test_a_healed_compaction_changes_nothing_that_anybody_is_told(graph: og.Graph) -> None:
    foreign_compaction(graph)
    head, was, cursor = graph.head_commit_id_for_branch(), stored(graph), graph.changes_poll().cursor
    seen = graph.query(NAMES).to_json()["rows"]
    assert [t.action.value for t in repair(graph, confirm=True).tables if t.finding] == ["healed"]
    assert stored(graph) == was
    assert graph.head_commit_id_for_branch() != head
    assert list(graph.diff(str(head), "main").changes) == []
    assert [c for block in graph.changes_poll(cursor=cursor).blocks for c in block.changes] == []
    assert graph.query(NAMES).to_json()["rows"] == seen
    assert all(p.cause is not None and p.cause.kind != "repair" for p in graph.history("Person", "small"))
    graph.mutate('query up() { update Person set { age: 88 } where name = "p08" }')
    assert [c.id for c in graph.diff(str(head), "main").changes] == ["p08"]


@pytest.mark.parametrize("change", CHANGES)
def test_a_branch_from_before_merges_with_what_was_forced(graph: og.Graph, change: Callable[[og.Graph], None]) -> None:
    graph.branch_create("draft")
    insert(graph, "mine", "draft")
    graph.mutate('query up() { update Person set { age: 109 } where name = "p09" }', branch="draft")
    change(graph)
    assert not repair(graph, confirm=True, force=True).failed
    forced = stored(graph)
    graph.branch_merge("draft")
    merged = stored(graph)
    assert {i for i, row in merged.items() if forced.get(i) != row} == {"mine", "p09"}
    assert forced.keys() - merged.keys() == set()
    graph.branch_merge("main", "draft")
    shown = graph.view("draft").table(PERSON).read().to_pylist()
    assert {row["id"]: row for row in shown} == merged
    assert kinds(verify(graph)) == []


def test_a_row_that_was_forced_and_changed_on_a_branch_is_a_conflict(graph: og.Graph) -> None:
    graph.branch_create("draft")
    graph.mutate('query up() { update Person set { age: 9 } where name = "p03" }', branch="draft")
    updated(graph)
    assert not repair(graph, confirm=True, force=True).failed
    with pytest.raises(og.MergeConflicts) as refused:
        graph.branch_merge("draft")
    assert [c["row_id"] for c in refused.value.merge_conflicts] == ["p03"]


def test_a_forced_commit_can_be_reverted(graph: og.Graph) -> None:
    was = stored(graph)
    everything(graph)
    assert not repair(graph, confirm=True, force=True).failed
    forced = next(c for c in graph.list_commits() if c.kind == "repair")
    graph.commit_revert(forced.graph_commit_id)
    assert stored(graph) == was
    assert pinned(graph, PERSON).count_rows() == len(was)
