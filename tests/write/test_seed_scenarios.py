"""Scenarios of the write path as the founding documents tell them, each as a user would see it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from write_scene import SCHEMA, follows, lines_file, people, person, stored, team, town

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.manifest import layout
from omnigraph.manifest.store import stamp_of
from omnigraph.storage.tables import newest_number, open_newest, open_table

P, T, F = "node:Person", "node:Team", "edge:Follows"
INSERT = 'query q() { insert Person { name: "di" } insert Follows { from: "di", to: "ana" } }'


@pytest.fixture
def graph(tmp_path: Path) -> Iterator[og.Graph]:
    yield og.Graph.open(town(tmp_path).uri)
    failpoints.disarm_all()


def heads(graph: og.Graph) -> dict[str, int]:
    """How far each table itself got, whatever the manifest shows."""
    return {k: newest_number(graph.context.ref(e.location, None)) for k, e in graph.snapshot().tables.items()}


def pins(graph: og.Graph) -> dict[str, int]:
    return {key: entry.table_version for key, entry in graph.snapshot().tables.items()}


def fnv1a64(text: str) -> str:
    digest = 14695981039346656037
    for byte in text.encode():
        digest = (digest ^ byte) * 1099511628211 % (1 << 64)
    return f"{digest:016x}"


# Storage


def test_every_type_is_a_dataset_of_its_own_named_by_the_hash_of_its_type(graph: og.Graph) -> None:
    root = Path(graph.uri.removeprefix("file://"))
    for key, entry in graph.snapshot().tables.items():
        kind, name = key.split(":")
        assert entry.location == f"{kind}s/{fnv1a64(name)}"
        assert (root / entry.location / "_versions").is_dir()


def test_each_property_is_a_column_that_is_nullable_as_the_schema_says(graph: og.Graph) -> None:
    fields = {f.name: f.nullable for f in graph.view().table(P).schema}
    assert fields == {"id": False, "name": False, "email": True, "age": True}
    assert [f.name for f in graph.view().table(F).schema] == ["id", "src", "dst", "weight"]


def test_a_new_graph_is_stamped_with_the_newest_internal_version(tmp_path: Path) -> None:
    made = og.Graph.init(str(tmp_path / "new"), SCHEMA)
    assert stamp_of(open_newest(made.context.manifest.ref())) == 4


def test_a_new_graph_has_no_trace_of_runs_and_no_pending_recovery(graph: og.Graph) -> None:
    graph.mutate(INSERT)
    root = Path(graph.uri.removeprefix("file://"))
    assert [p.name for p in root.iterdir() if "run" in p.name] == []
    assert list((root / "__recovery").glob("*.json")) == []
    assert [b for b in graph.context.manifest.branches() if b.startswith("__run__")] == []


def test_old_versions_stay_readable_after_every_commit(graph: og.Graph, tmp_path: Path) -> None:
    version = graph.snapshot().version
    graph.load(lines_file(tmp_path, "in.jsonl", person("ana", age=40)), mode="merge")
    graph.mutate('query q() { delete Person where name = "cy" }')
    old = graph.snapshot_at_version(version).tables[P]
    table = open_table(graph.context.ref(old.location, old.table_branch), old.table_version)
    assert sorted(table.read(["id"]).column("id").to_pylist()) == ["ana", "bo", "cy"]
    assert graph.entity_at(P, "ana", version)["age"] is None
    assert graph.entity_at(P, "ana", graph.snapshot().version)["age"] == 40
    assert graph.entity_at(P, "cy", graph.snapshot().version) is None


def test_rows_know_the_versions_that_made_and_last_changed_them(graph: og.Graph, tmp_path: Path) -> None:
    made = pins(graph)[P]
    graph.load(lines_file(tmp_path, "in.jsonl", person("ana", age=40), person("di")), mode="merge", index=False)
    table = graph.view().table(P)
    assert table.has_stable_row_ids
    columns = ["id", "_row_created_at_version", "_row_last_updated_at_version"]
    rows = {row["id"]: tuple(row.values())[1:] for row in table.read(columns).to_pylist()}
    now = pins(graph)[P]
    assert rows == {"ana": (made, now), "bo": (made, made), "cy": (made, made), "di": (now, now)}


def test_one_publish_shows_all_tables_of_a_load_at_once(graph: og.Graph, tmp_path: Path) -> None:
    before, version = pins(graph), graph.snapshot().version
    path = lines_file(tmp_path, "in.jsonl", person("di"), team("new"), follows("di", "ana"))
    graph.load(path, mode="append", index=False)
    moved = {key for key, pin in pins(graph).items() if pin != before[key]}
    assert (moved, graph.snapshot().version) == ({P, T, F}, version + 1)
    assert pins(graph) == heads(graph)


@pytest.mark.parametrize("spelling", ["relative", "absolute", "file"])
def test_a_local_graph_is_the_same_however_its_place_is_spelt(
    graph: og.Graph, monkeypatch: pytest.MonkeyPatch, spelling: str
) -> None:
    path = graph.uri.removeprefix("file://")
    monkeypatch.chdir(os.path.dirname(path))
    place = {"relative": os.path.basename(path), "absolute": path, "file": f"file://{path}"}[spelling]
    opened = og.Graph.open(place)
    assert (opened.uri, opened.snapshot()) == (graph.uri, graph.snapshot())


def test_a_server_address_is_no_place_to_store_a_graph() -> None:
    with pytest.raises(og.BadRequest):
        og.Graph.open("http://127.0.0.1:1/graph")


# The direct-publish write path


def test_no_table_moves_while_statements_run(graph: og.Graph) -> None:
    """A writer that stops before its sidecar has written nothing anybody could see."""
    before = heads(graph)

    def stop() -> None:
        assert heads(graph) == before
        raise KeyboardInterrupt

    failpoints.arm("mutation.pre_phase_a", stop)
    with pytest.raises(KeyboardInterrupt):
        graph.mutate(INSERT)
    assert heads(graph) == before == pins(graph)
    assert list(Path(graph.uri.removeprefix("file://"), "__recovery").glob("*.json")) == []


def test_a_partial_failure_leaves_the_target_queryable_and_unblocks_the_next_mutation(graph: og.Graph) -> None:
    before = heads(graph)
    with pytest.raises(og.InvalidData, match="dst 'missing' not found in Person"):
        graph.mutate('query q() { insert Person { name: "di" } insert Follows { from: "di", to: "missing" } }')
    assert heads(graph) == before == pins(graph)
    assert ("di",) not in stored(graph, P)
    graph.mutate(INSERT)
    assert ("di",) in stored(graph, P)


def test_a_query_reads_its_own_writes_and_the_last_row_of_an_id_wins(graph: og.Graph) -> None:
    body = """insert Person { name: "di", age: 1 } insert Person { name: "di", age: 2 }
              insert Follows { from: "di", to: "di" } update Person set { email: "d@x" } where age = 2"""
    before = heads(graph)
    graph.mutate(f"query q() {{ {body} }}")
    assert ("di", 2, "d@x") in stored(graph, P, "id", "age", "email")
    assert {key for key, head in heads(graph).items() if head != before[key] + 1} == set(before) - {P, F}


def test_of_two_writers_of_one_table_exactly_one_succeeds_and_the_other_is_told_the_versions(graph: og.Graph) -> None:
    view, expected = graph.view(), pins(graph)[P]
    og.Graph.open(graph.uri).mutate('query q() { update Person set { age: 9 } where name = "ana" }')
    with pytest.raises(og.ExpectedVersionMismatch) as lost:
        graph.write({P: og.Upsert(people({"bo": "new@x"}, age=1))}, view=view)
    assert (lost.value.table_key, lost.value.expected, lost.value.actual) == (P, expected, expected + 1)
    assert stored(graph, P, "id", "age") == [("ana", 9), ("bo", None), ("cy", None)]


def test_an_overwrite_that_dies_half_way_is_settled_as_a_whole(graph: og.Graph, tmp_path: Path) -> None:
    path = lines_file(tmp_path, "in.jsonl", follows("cy", "ana", id="only"))

    class Died(BaseException):
        pass

    def die() -> None:
        raise Died

    failpoints.arm("load.post_phase_b_pre_manifest_commit", die)
    with pytest.raises(Died):
        graph.load(path, mode="overwrite")
    failpoints.disarm_all()
    assert stored(og.Graph.open(graph.uri, "r"), F) == [("f1",)]
    again = og.Graph.open(graph.uri)
    assert stored(again, F) == [("only",)]
    assert pins(again)[F] == heads(again)[F]
    assert [c.actor_id for c in again.list_commits() if c.actor_id == "omnigraph:recovery"] == ["omnigraph:recovery"]


def test_the_actor_of_every_write_is_in_the_history(graph: og.Graph, tmp_path: Path) -> None:
    graph.load_as("act-ana", lines_file(tmp_path, "in.jsonl", person("di")), mode="append", index=False)
    graph.mutate_as("act-bo", 'query q() { delete Person where name = "di" }')
    newest = [(c.kind, c.actor_id) for c in graph.list_commits()[:2]]
    assert newest == [("mutation", "act-bo"), ("load", "act-ana")]


# Branches


def test_a_branch_shares_its_tables_until_its_first_write(graph: og.Graph) -> None:
    graph.branch_create("draft")
    assert {e.table_branch for e in graph.snapshot("draft").tables.values()} == {None}
    graph.mutate('query q() { insert Team { code: "new" } }', branch="draft")
    owners = {key: entry.table_branch for key, entry in graph.snapshot("draft").tables.items()}
    assert {key for key, owner in owners.items() if owner == "draft"} == {T}
    assert {e.table_branch for e in graph.snapshot().tables.values()} == {None}


def test_internal_names_of_the_past_are_free_and_the_lock_is_not(graph: og.Graph) -> None:
    graph.branch_create("__run__1")
    assert graph.branch_list() == ["main", "__run__1"]
    with pytest.raises(og.BadRequest, match="does not allow internal system ref"):
        graph.branch_create(layout.SCHEMA_LOCK_BRANCH)


# Exports


def test_an_export_loaded_by_overwrite_into_an_empty_graph_is_the_same_graph(graph: og.Graph, tmp_path: Path) -> None:
    graph.mutate(INSERT)
    whole = b"".join(graph.export())
    copy = og.Graph.init(str(tmp_path / "copy"), SCHEMA)
    (tmp_path / "all.jsonl").write_bytes(whole)
    copy.load(tmp_path / "all.jsonl", mode="overwrite")
    assert b"".join(copy.export()) == whole
