"""optimize changes how tables lie on disk and nothing that anybody can see."""

from __future__ import annotations

import os
from datetime import timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import lance
import orjson
import pytest
from optimize_scene import SCHEMA, C, K, L, P, exported, fragments, in_pieces, load, people, stored, write

import omnigraph as og
from index_answers import disagreements
from omnigraph.base import failpoints
from omnigraph.engine.upkeep.cleanup import cleanup
from omnigraph.manifest import layout

pytestmark = pytest.mark.slow


def test_rows_ids_and_row_ids_are_what_they_were(graph: og.Graph) -> None:
    before, told = stored(graph), exported(graph)
    assert fragments(graph)[P] > 1
    result = graph.optimize()
    assert fragments(graph) == {C: 0, K: 1, L: 0, P: 1}
    assert (stored(graph), exported(graph)) == (before, told)
    assert result.commit == graph.list_commits()[0].graph_commit_id
    assert graph.list_commits()[0].kind == "optimize"


def test_all_tables_are_one_commit(graph: og.Graph) -> None:
    before = len(graph.list_commits())
    result = graph.optimize(actor="ana", message="weekly")
    assert len(graph.list_commits()) == before + 1
    commit = graph.list_commits()[0]
    assert (commit.actor_id, commit.message) == ("ana", "weekly")
    assert {t.table_key for t in result.tables if t.committed} >= {P, K}


def test_every_index_covers_every_row_and_answers_as_a_scan_does(graph: og.Graph) -> None:
    assert any(t.unindexed_rows for b in graph.status().branches for t in b.tables)
    graph.optimize()
    assert not any(t.unindexed_rows for b in graph.status().branches for t in b.tables)
    names = {index.name for index in graph.view().table(P).dataset.describe_indices()}
    assert names >= {"id_btree_idx", "age_btree_idx", "bio_btree_idx", "bio_text_idx", "v_vector_idx"}
    assert disagreements(graph) == []


def test_an_idle_run_changes_nothing_on_disk(graph: og.Graph, tmp_path: Path) -> None:
    graph.optimize()
    before = {p: p.stat().st_mtime_ns for p in Path(graph.uri).rglob("*") if p.is_file() and "__locks" not in p.parts}
    result = graph.optimize()
    after = {p: p.stat().st_mtime_ns for p in Path(graph.uri).rglob("*") if p.is_file() and "__locks" not in p.parts}
    assert result.commit is None
    assert not any(t.committed for t in result.tables)
    assert after == before


def test_a_fork_is_compacted_without_breaking_the_indexes_it_inherited(graph: og.Graph, tmp_path: Path) -> None:
    graph.optimize()
    graph.branch_create("draft")
    in_pieces(graph, tmp_path, 200, 3, "draft")
    main, draft = stored(graph), stored(graph, "draft")
    graph.optimize("draft")
    assert fragments(graph, "draft")[P] == 1
    assert (stored(graph), stored(graph, "draft")) == (main, draft)
    assert disagreements(graph) == []
    write(graph, 'update Person set { age: 1 } where name = "p3"', "draft")
    write(graph, 'delete Person where name = "p201"', "draft")
    assert disagreements(graph) == []


def test_a_fork_that_is_only_compacted_keeps_right_answers_too(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    for number in (0, 10, 20):
        load(graph, tmp_path, people(number, 3))
    graph.ensure_indices()
    graph.branch_create("draft")
    load(graph, tmp_path, people(200, 3), branch="draft")
    before = stored(graph, "draft")
    graph.write({P: og.Compact(), K: og.Compact()}, branch="draft")
    assert fragments(graph, "draft")[P] == 2
    assert stored(graph, "draft") == before
    assert disagreements(graph) == []


def test_a_fork_of_a_fork_is_compacted_too(graph: og.Graph, tmp_path: Path) -> None:
    graph.branch_create("one")
    in_pieces(graph, tmp_path, 200, 2, "one")
    graph.branch_create_from("one", "two")
    in_pieces(graph, tmp_path, 300, 2, "two")
    shown = {name: stored(graph, name) for name in ("main", "one", "two")}
    for name in ("two", "main", "one"):
        graph.optimize(name)
        assert {n: stored(graph, n) for n in shown} == shown
        assert disagreements(graph) == []


def test_tables_a_branch_only_inherits_are_left_alone(graph: og.Graph) -> None:
    graph.branch_create("draft")
    result = graph.optimize("draft")
    assert result.commit is None
    assert [t.table_key for t in result.tables if not t.table_key.startswith("_")] == []
    assert graph.view("draft").entry(P).table_branch is None


def test_a_branch_that_lags_behind_the_schema_is_optimized_as_it_is(graph: og.Graph, tmp_path: Path) -> None:
    graph.branch_create("draft")
    in_pieces(graph, tmp_path, 200, 2, "draft")
    more = SCHEMA.replace("node City", "node Town { name: String @key }\nnode City")
    graph.schema_apply(more.replace("bio:", "rank: I32? @index\n  bio:"))
    before = stored(graph, "draft")
    assert graph.optimize("draft").commit is not None
    assert stored(graph, "draft") == before
    assert graph.optimize("draft").commit is None
    load(graph, tmp_path, people(300, 3), branch="draft")
    graph.optimize("draft")
    graph.optimize()
    assert disagreements(graph) == []
    assert graph.verify().findings == ()
    assert [t.table_key for t in graph.table_stats("draft")] == [K, L, C, P]


def test_a_branch_merges_and_is_optimized_in_any_order(graph: og.Graph, tmp_path: Path) -> None:
    graph.branch_create("draft")
    load(graph, tmp_path, people(300, 4), branch="draft")
    graph.optimize("draft")
    load(graph, tmp_path, people(400, 4))
    graph.optimize()
    graph.branch_merge("draft")
    graph.optimize()
    assert disagreements(graph) == []
    assert {f"p{n}" for n in (*range(300, 304), *range(400, 404))} <= {
        str(row["id"]) for row in graph.view().table(P).read(["id"]).to_pylist()
    }


def test_open_snapshots_and_old_commits_stay_readable(graph: og.Graph) -> None:
    old, told = graph.snapshot(), exported(graph)
    graph.optimize()
    assert exported(graph, snapshot=old) == told
    assert exported(graph, snapshot=graph.snapshot_of("main~1")) == told


def test_blobs_are_the_same_bytes(graph: og.Graph) -> None:
    table = graph.view().table(P)
    ids = [row["id"] for row in table.dataset.to_table(columns=["id"], filter="photo IS NOT NULL").to_pylist()]
    assert ids
    told = [line for line in exported(graph) if b"base64:aGVsbG8=" in line]
    graph.optimize()
    assert [line for line in exported(graph) if b"base64:aGVsbG8=" in line] == told
    assert len(told) == len(ids)


def test_strict_update_and_schema_apply_succeed_after_optimize(graph: og.Graph) -> None:
    """The manifest tracks the compacted heads."""
    graph.optimize()
    write(graph, 'update Person set { age: 5 } where name = "p2"')
    graph.schema_apply(SCHEMA.replace("bio:", "rank: I32?\n  bio:"))
    write(graph, 'update Person set { rank: 5 } where name = "p2"')
    status = graph.status().branches[0]
    assert not any(t.drifted for t in status.tables)


def test_a_table_that_another_tool_wrote_to_is_skipped_and_named(graph: og.Graph) -> None:
    entry = graph.view().entry(P)
    dataset = lance.dataset(f"{graph.uri}/{entry.location}")
    dataset.delete("name = 'p0'")
    result = graph.optimize()
    told = {t.table_key: t for t in result.tables}
    assert told[P].skipped == "drift_needs_repair"
    assert (told[P].table_version, told[P].lance_head_version) == (entry.table_version, entry.table_version + 1)
    assert not told[P].committed
    assert told[K].committed


def test_optimize_refuses_while_a_sidecar_is_pending(graph: og.Graph) -> None:
    key = f"{layout.RECOVERY_DIR}/01ARZ3NDEKTSV4RRFFQ69G5FAV.json"
    sidecar = {
        "schema_version": 1,
        "operation_id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
        "branch": None,
        "writer_kind": "Mutation",
        "tables": [],
    }
    graph.context.objects.put(key, orjson.dumps(sidecar))
    before = fragments(graph)
    with pytest.raises(og.Conflict, match=f"recovery pending: {key}"):
        graph.optimize()
    assert fragments(graph) == before


def test_optimize_refuses_while_a_schema_apply_runs(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    listed = graph.context.manifest.branches()
    with_lock = {**listed, layout.SCHEMA_LOCK_BRANCH: object()}
    monkeypatch.setattr(type(graph.context.manifest), "branches", lambda _self: with_lock)
    with pytest.raises(og.Conflict, match="schema apply"):
        graph.optimize()


def test_a_reader_may_not_optimize(graph: og.Graph) -> None:
    with pytest.raises(og.BadRequest):
        og.Graph.open(graph.uri, "r").optimize()


def test_another_writer_in_the_middle_makes_it_start_over_and_keeps_both(graph: og.Graph, tmp_path: Path) -> None:
    other, acts = og.Graph.open(graph.uri), []

    def meanwhile() -> None:
        if not acts:
            acts.append(write(other, 'insert Person { name: "late", age: 3 }'))

    real = graph.context.locks.hold

    def hold(branch: str | None) -> Any:
        meanwhile()
        return real(branch)

    object.__setattr__(graph.context.locks, "hold", hold)
    result = graph.optimize()
    assert result.commit is not None
    assert acts == [None]
    assert "late" in {row["id"] for row in graph.view().table(P).read(["id"]).to_pylist()}
    assert fragments(graph)[P] == 1
    assert disagreements(graph) == []


def test_the_result_says_what_the_spec_names(graph: og.Graph) -> None:
    told = graph.optimize().to_json()
    assert set(told) == {"uri", "branch", "tables", "commit"}
    tables = {t["table_key"]: t for t in told["tables"]}
    assert set(tables[P]) == {
        "table_key",
        "fragments_removed",
        "fragments_added",
        "committed",
        "table_version",
        "lance_head_version",
        "pending_indexes",
    }
    assert tables[P]["fragments_removed"] > 1
    assert tables[P]["fragments_added"] == 1
    assert tables["__manifest"]["committed"]
    assert "commit" not in graph.optimize().to_json()


def test_an_index_without_vectors_is_told_as_pending(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    for number in range(3):
        load(graph, tmp_path, [{"type": "Person", "data": {"name": f"n{number}"}}])
    told = {t.table_key: t for t in graph.optimize().tables}
    assert [(p.property, p.reason) for p in told[P].pending_indexes] == [("v", "no vectors yet")]
    assert graph.optimize().commit is None


def test_the_commit_tables_are_brought_up_to_date(graph: og.Graph) -> None:
    graph.optimize()
    (main,) = graph.status().branches
    assert main.projection_lag == 0
    assert main.manifest_fragments == 1


def test_the_versions_set_aside_for_looking_are_gone(graph: og.Graph) -> None:
    graph.optimize()
    assert list(Path(graph.uri).rglob("_versions/d*.manifest")) == []


def test_cleanup_takes_what_an_interrupted_run_set_aside(graph: og.Graph) -> None:
    failpoints.arm("stage.set_aside", failpoints.fail)
    with mock.patch("omnigraph.storage.compaction.take_away"), pytest.raises(failpoints.FailpointHit):
        graph.optimize()
    left = list(Path(graph.uri).rglob("_versions/d*.manifest"))
    assert left
    for file in left:
        os.utime(file, (0, 0))
    cleanup(graph.context, 100, None, confirm=True, grace=timedelta(0))
    assert list(Path(graph.uri).rglob("_versions/d*.manifest")) == []
    graph.optimize()
    assert disagreements(graph) == []


def test_a_compacted_graph_can_be_cleaned_up(graph: og.Graph, tmp_path: Path) -> None:
    graph.branch_create("draft")
    in_pieces(graph, tmp_path, 500, 2, "draft")
    graph.optimize()
    graph.optimize("draft")
    shown = {name: stored(graph, name) for name in ("main", "draft")}
    graph.cleanup(keep=1, confirm=True)
    assert {name: stored(graph, name) for name in shown} == shown
    assert disagreements(og.Graph.open(graph.uri)) == []
