"""Graphs of internal schema versions 1 to 3: readable as they are, migrated step by step at the first write."""

from dataclasses import replace
from pathlib import Path

import lance
import pytest
from forge import COMMITS_SCHEMA, DRAFT_COMMITS, EPOCH_US, FOLLOWS, OLD, PERSON, RUN_BRANCH, A, B, C, append, forge
from manifest_helpers import (
    commit_ids,
    disk_image,
    intent,
    people,
    publish,
    raw_by_id,
    raw_manifest,
    stamp_on_disk,
)

from omnigraph import Conflict, Graph, Upsert
from omnigraph.manifest.migrations import migrate_internal_schema
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.manifest.store import ManifestStore

pytestmark = pytest.mark.slow

OLD_VERSIONS = [1, 2, 3]
HEAD_TABLES = {
    "edge:Follows": SubTableEntry(FOLLOWS, 2, None, 1),
    "node:Person": SubTableEntry(PERSON, 2, None, 2),
}
FIRST_TABLES = {
    "edge:Follows": SubTableEntry(FOLLOWS, 1, None, 0),
    "node:Old": SubTableEntry(OLD, 1, None, 0),
    "node:Person": SubTableEntry(PERSON, 1, None, 0),
}


@pytest.fixture(params=OLD_VERSIONS, ids=["v1", "v2", "v3"])
def version(request) -> int:
    return request.param


@pytest.fixture
def old(tmp_path: Path, version: int) -> str:
    return forge(tmp_path / "graph", version)


def names(graph: Graph, branch: str | None = None) -> list[str]:
    return sorted(graph.view(branch).table("node:Person").read(["id"]).column("id").to_pylist())


def store(uri: str) -> ManifestStore:
    return Graph.open(uri, "r").context.manifest


# ---- reading an old graph


def test_read_only_open_shows_tables_rows_and_lineage_of_the_projection(old: str):
    graph = Graph.open(old, "r")
    assert dict(graph.snapshot().tables) == HEAD_TABLES
    assert names(graph) == ["ana", "bob"]
    assert names(graph, "draft") == ["ana", "bob", "cleo"]
    assert commit_ids(graph) == [B, A]
    assert commit_ids(graph, "draft") == [C, B, A]
    assert dict(graph.snapshot_at_version(1).tables) == FIRST_TABLES


def test_read_only_open_tells_actor_time_and_branch_of_each_commit(old: str):
    c, b, a = Graph.open(old, "r").list_commits("draft")
    assert (a.actor_id, b.actor_id, c.actor_id) == (None, "act-ana", None)
    assert [x.created_at - EPOCH_US for x in (a, b, c)] == [1_000_000, 2_000_000, 3_000_000]
    assert [x.manifest_branch for x in (a, b, c)] == [None, None, "draft"]
    assert [x.manifest_version for x in (a, b, c)] == [1, 2, 3]


def test_read_only_open_lists_stale_run_branches_of_very_old_graphs(old: str, version: int):
    listed = Graph.open(old, "r").branch_list()
    assert listed == (["main", RUN_BRANCH, "draft"] if version < 3 else ["main", "draft"])


def test_read_only_use_changes_no_byte_on_disk(old: str):
    before = disk_image(old)
    with Graph.open(old, "r") as graph:
        names(graph)
        names(graph, "draft")
        graph.list_commits("draft")
        graph.snapshot_at_version(1)
        graph.refresh()
        graph.status()
    assert disk_image(old) == before


# ---- migrating main


def test_first_read_write_open_stamps_main_and_sweeps_run_branches(old: str):
    graph = Graph.open(old)
    assert stamp_on_disk(old) == "4"
    assert graph.branch_list() == ["main", "draft"]
    object_id = lance.dataset(f"{old}/__manifest").schema.field("object_id")
    assert object_id.metadata[b"lance-schema:unenforced-primary-key"] == b"true"


def test_migrated_main_shows_the_same_tables_rows_and_history(old: str):
    graph = Graph.open(old)
    assert dict(graph.snapshot().tables) == HEAD_TABLES
    assert names(graph) == ["ana", "bob"]
    assert commit_ids(graph) == [B, A]
    assert dict(graph.snapshot_at_version(1).tables) == FIRST_TABLES
    assert dict(graph.snapshot_of(A).tables) == FIRST_TABLES


def test_migration_adds_exactly_the_commit_rows_and_leaves_every_old_row_as_it_was(old: str):
    before = raw_manifest(old)
    Graph.open(old)
    after = raw_by_id(old)
    added = {key: row["metadata"] for key, row in after.items() if key.startswith("graph_commit:")}
    assert added == {
        "graph_commit:after:genesis": {"graph_commit_id": A, "created_at": EPOCH_US + 1_000_000, "manifest_version": 1},
        f"graph_commit:after:{A}": {
            "graph_commit_id": B,
            "parent_commit_id": A,
            "actor_id": "act-ana",
            "created_at": EPOCH_US + 2_000_000,
            "manifest_version": 2,
        },
    }
    assert [row for row in raw_manifest(old) if not row["object_id"].startswith("graph_commit:")] == before


def test_migrated_graph_takes_writes_whose_parent_is_the_old_head(old: str):
    graph = Graph.open(old)
    receipt = graph.write({"node:Person": Upsert(people("dora"))})
    assert receipt.commit.parent_commit_id == B
    assert names(Graph.open(old, "r")) == ["ana", "bob", "dora"]
    assert commit_ids(graph) == [receipt.graph_commit_id, B, A]


def test_second_read_write_open_changes_nothing(old: str):
    Graph.open(old).close()
    before = disk_image(old)
    Graph.open(old).close()
    assert disk_image(old) == before


def test_snapshot_at_a_version_made_by_the_migration_is_the_state_of_the_last_commit(old: str):
    graph = Graph.open(old)
    for version in range(2, lance.dataset(f"{old}/__manifest").version + 1):
        assert dict(graph.snapshot_at_version(version).tables) == HEAD_TABLES


# ---- a branch is migrated at its own first write


def test_migrating_main_leaves_a_branch_at_its_own_version(old: str, version: int):
    Graph.open(old)
    assert stamp_on_disk(old, "draft") == (None if version == 1 else str(version))
    assert commit_ids(Graph.open(old, "r"), "draft") == [C, B, A]


def test_first_publish_on_a_branch_migrates_it_and_follows_its_own_head(old: str):
    graph = Graph.open(old)
    landed = publish(graph, branch="draft")
    rows = {k: r["metadata"] for k, r in raw_by_id(old, "draft").items() if k.startswith("graph_commit:")}
    assert list(rows) == [f"graph_commit:after:{p}" for p in ("genesis", A, B, C)]
    assert [rows[k]["graph_commit_id"] for k in rows] == [A, B, C, landed.commit.graph_commit_id]
    assert [rows[k].get("manifest_version") for k in rows] == [1, 2, 3, None]
    assert stamp_on_disk(old, "draft") == "4"
    assert commit_ids(Graph.open(old, "r"), "draft") == [landed.commit.graph_commit_id, C, B, A]


def test_migrated_branch_still_says_which_branch_made_each_commit(old: str):
    graph = Graph.open(old)
    publish(graph, branch="draft")
    made_on = [c.manifest_branch for c in Graph.open(old, "r").list_commits("draft")]
    assert made_on == ["draft", "draft", None, None]
    assert graph.snapshot_of("draft~2").branch is None
    assert dict(graph.snapshot_of("draft~2").tables) == HEAD_TABLES
    assert dict(graph.snapshot_of("draft~3").tables) == FIRST_TABLES


def test_migrating_a_branch_leaves_main_alone(old: str):
    graph = Graph.open(old)
    before = raw_manifest(old)
    publish(graph, branch="draft")
    assert raw_manifest(old) == before


# ---- each step may run twice


def test_every_step_run_again_after_a_lost_stamp_changes_no_row(old: str):
    Graph.open(old)
    once = raw_manifest(old)
    for lost in ("1", "2", "3"):
        lance.dataset(f"{old}/__manifest").update_schema_metadata({"omnigraph:internal_schema_version": lost})
        graph = Graph.open(old)
        assert stamp_on_disk(old) == "4"
        assert raw_manifest(old) == once
        assert commit_ids(graph) == [B, A]


@pytest.mark.parametrize("stop_at", [2, 3, 4])
def test_crash_between_a_step_and_its_stamp_repeats_the_step_harmlessly(old: str, stop_at: int, monkeypatch):
    from omnigraph.manifest import migrations

    stamped = migrations._stamp

    def stamp_or_die(manifest, branch, to):
        if to == stop_at:
            raise RuntimeError("died before the stamp")
        stamped(manifest, branch, to)

    with monkeypatch.context() as patched:
        patched.setattr(migrations, "_stamp", stamp_or_die)
        try:
            Graph.open(old)
        except RuntimeError:
            assert stamp_on_disk(old) in (None, "2", "3")
        assert commit_ids(Graph.open(old, "r")) == [B, A]
    graph = Graph.open(old)
    assert stamp_on_disk(old) == "4"
    assert [k for k in raw_by_id(old) if k.startswith("graph_commit:")] == [
        "graph_commit:after:genesis",
        f"graph_commit:after:{A}",
    ]
    assert dict(graph.snapshot().tables) == HEAD_TABLES


def test_commits_the_projection_learns_after_a_crash_are_added_to_those_already_there(tmp_path: Path):
    uri = forge(tmp_path / "graph", 3)
    Graph.open(uri)
    lance.dataset(f"{uri}/__manifest").update_schema_metadata({"omnigraph:internal_schema_version": "3"})
    append(tmp_path / "graph" / "_graph_commits.lance", _commit_table(C, B, 3))
    assert commit_ids(Graph.open(uri)) == [C, B, A]
    assert [r["metadata"]["graph_commit_id"] for k, r in raw_by_id(uri).items() if "graph_commit" in k] == [A, B, C]


# ---- a migration that was overtaken


def test_slow_migrator_never_lowers_the_stamp_of_a_graph_another_one_brought_forward(old: str, monkeypatch):
    from omnigraph.manifest import migrations

    seen: list[str | None] = []
    slow = store(old)
    step = migrations._stamp

    def overtaken(manifest, branch, to):
        if manifest is slow and not seen:
            Graph.open(old)
            seen.append(stamp_on_disk(old))
        step(manifest, branch, to)
        seen.append(stamp_on_disk(old))

    monkeypatch.setattr(migrations, "_stamp", overtaken)
    migrate_internal_schema(slow, None)
    after = seen[seen.index("4") :]
    assert after == ["4"] * len(after)


def test_migrator_that_loses_the_race_for_the_commit_rows_finds_them_done(tmp_path: Path, monkeypatch):
    from omnigraph.manifest import migrations

    uri = forge(tmp_path / "graph", 3)
    slow, append_rows = store(uri), migrations.append_if_head

    def overtaken(table, rows, properties):
        monkeypatch.setattr(migrations, "append_if_head", append_rows)
        Graph.open(uri)
        return append_rows(table, rows, properties)

    monkeypatch.setattr(migrations, "append_if_head", overtaken)
    state = migrate_internal_schema(slow, None)
    assert [c.graph_commit_id for c in state.commits()] == [A, B]
    assert stamp_on_disk(uri) == "4"
    raw_by_id(uri)


# ---- refusals


@pytest.mark.parametrize(
    "commits",
    [
        pytest.param([(A, None, 1, None), (B, None, 2, None)], id="two-first-commits"),
        pytest.param([(A, None, 1, None), (B, None, 2, A), (C, None, 3, A)], id="forked"),
        pytest.param([(A, None, 1, None), (C, None, 3, B)], id="parent-missing"),
        pytest.param([(B, None, 2, A)], id="no-first-commit"),
    ],
)
def test_commit_chain_that_is_not_linear_is_refused_and_nothing_is_stamped(tmp_path: Path, commits):
    uri = forge(tmp_path / "graph", 3, main_commits=commits)
    rows = raw_manifest(uri)
    with pytest.raises(Conflict, match="commit graph of branch 'main' is not linear"):
        Graph.open(uri)
    assert stamp_on_disk(uri) == "3"
    assert raw_manifest(uri) == rows


@pytest.mark.parametrize("mode", ["r", "rw"])
def test_newer_stamp_is_refused_on_read_and_write(tmp_path: Path, mode: str):
    uri = forge(tmp_path / "graph", 3)
    Graph.open(uri)
    lance.dataset(f"{uri}/__manifest").update_schema_metadata({"omnigraph:internal_schema_version": "5"})
    before = disk_image(uri)
    with pytest.raises(Conflict, match="internal schema version 5 is newer than supported 4; upgrade omnigraph first"):
        Graph.open(uri, mode)
    assert disk_image(uri) == before


def test_newer_stamp_that_appears_while_a_handle_is_open_stops_its_reads_and_writes(tmp_path: Path):
    graph = Graph.init(str(tmp_path / "graph"), "node Person {\n  name: String @key\n}\n")
    lance.dataset(f"{graph.uri}/__manifest").update_schema_metadata({"omnigraph:internal_schema_version": "5"})
    for act in (graph.snapshot, lambda: graph.write({"node:Person": Upsert(people("ana"))})):
        with pytest.raises(Conflict, match="newer than supported 4"):
            act()


def _commit_table(commit: str, parent: str, version: int):
    import pyarrow as pa

    row = {"graph_commit_id": commit, "manifest_version": version, "parent_commit_id": parent}
    return pa.Table.from_pylist([{**row, "created_at": EPOCH_US + version * 1_000_000}], COMMITS_SCHEMA)


def test_branch_chain_that_is_not_linear_is_refused_while_main_works(tmp_path: Path):
    uri = forge(tmp_path / "graph", 3)
    append(tmp_path / "graph" / "_graph_commits.lance", _commit_table(C[:-1] + "X", B, 4), "draft")
    graph = Graph.open(uri)
    with pytest.raises(Conflict, match="commit graph of branch 'draft' is not linear"):
        publish(graph, branch="draft", commit=replace(intent(), message="x"))
    assert stamp_on_disk(uri, "draft") == "3"
    assert commit_ids(graph) == [B, A]
    assert DRAFT_COMMITS[0][0] == C
