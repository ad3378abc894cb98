"""Where things lie, and the exact rows of a publish: keys, columns, stamps."""

import orjson
import pyarrow as pa
import pytest
from manifest_helpers import CITY, PERSON, SCHEMA, people, raw_by_id, raw_manifest

from omnigraph import BadRequest, Delete, Graph, Upsert
from omnigraph.base.ids import fnv1a64, is_ulid, new_ulid
from omnigraph.manifest import layout
from omnigraph.manifest.rows import (
    Changes,
    CommitIntent,
    Pin,
    Registration,
    RowEffect,
    Tombstone,
    build_rows,
    from_arrow,
    to_arrow,
)

PARENT = "01HZZZZZZZZZZZZZZZZZZZZZZA"


@pytest.fixture
def graph(tmp_path) -> Graph:
    return Graph.init(str(tmp_path / "graph"), SCHEMA)


@pytest.mark.parametrize(
    ("kind", "name", "location"),
    [
        ("node", "Person", "nodes/40d76f1f51639ec0"),
        ("edge", "Follows", "edges/35570fa59a9bc199"),
        ("node", "Old", "nodes/3018cd19bf898cd6"),
    ],
)
def test_table_lies_at_the_hash_of_its_name(kind: str, name: str, location: str):
    assert layout.table_location(kind, name) == location


def test_second_table_of_a_name_lies_beside_the_first():
    assert layout.table_location("node", "Person", 2) == "nodes/40d76f1f51639ec0-2"


@pytest.mark.parametrize(("data", "hashed"), [(b"", 0xCBF29CE484222325), (b"a", 0xAF63DC4C8601EC8C)])
def test_hash_is_fnv_1a_of_64_bits(data: bytes, hashed: int):
    assert fnv1a64(data) == hashed


def test_hash_of_a_name_outside_ascii_is_that_of_its_utf_8_bytes():
    assert layout.table_location("node", "Größe") == f"nodes/{fnv1a64('Größe'.encode()):016x}"


def test_new_graph_registers_each_table_at_version_one_in_a_first_commit(graph: Graph):
    rows = raw_by_id(graph.uri)
    assert set(rows) == {
        f"table:node:City@{CITY}",
        f"table:node:Person@{PERSON}",
        f"table_version:node:City@{CITY}@main@00000000000000000001",
        f"table_version:node:Person@{PERSON}@main@00000000000000000001",
        "graph_commit:after:genesis",
    }
    assert {row["_row_created_at_version"] for row in rows.values()} == {1}
    commit = rows["graph_commit:after:genesis"]
    assert commit["metadata"]["kind"] == "init"
    assert (commit["table_key"], commit["location"], commit["table_version"]) == (None, None, None)
    assert all(row["base_objects"] is None for row in rows.values())


def test_manifest_columns_are_those_of_the_specification(graph: Graph):
    import lance

    schema = lance.dataset(f"{graph.uri}/__manifest").schema
    assert [(f.name, f.type) for f in schema] == [
        ("object_id", pa.string()),
        ("object_type", pa.string()),
        ("location", pa.string()),
        ("metadata", pa.string()),
        ("base_objects", pa.list_(pa.string())),
        ("table_key", pa.string()),
        ("table_version", pa.uint64()),
        ("table_branch", pa.string()),
        ("row_count", pa.uint64()),
    ]
    assert not schema.field("object_id").nullable
    assert schema.field("object_id").metadata[b"lance-schema:unenforced-primary-key"] == b"true"
    assert schema.metadata == {b"omnigraph:internal_schema_version": b"4"}
    assert lance.dataset(f"{graph.uri}/__manifest").describe_indices() == []


def test_every_dataset_of_a_new_graph_has_stable_row_ids(graph: Graph):
    import lance

    with graph:
        graph.write({"node:Person": Upsert(people("ana"))}, actor="ana")
    for place in ("__manifest", PERSON, CITY, "_graph_commits.lance", "_graph_commit_actors.lance"):
        assert lance.dataset(f"{graph.uri}/{place}").has_stable_row_ids, place


def test_commit_adds_its_pins_and_one_commit_row_all_with_one_stamp(graph: Graph):
    first = graph.head_commit_id_for_branch()
    receipt = graph.write({"node:Person": Upsert(people("ana", "bob"))}, actor="ana", message="two people")
    added = {k: r for k, r in raw_by_id(graph.uri).items() if r["_row_created_at_version"] == receipt.graph_version}
    assert set(added) == {
        f"table_version:node:Person@{PERSON}@main@00000000000000000002",
        f"graph_commit:after:{first}",
    }
    pin = added[f"table_version:node:Person@{PERSON}@main@00000000000000000002"]
    assert (pin["table_key"], pin["location"], pin["table_branch"]) == ("node:Person", PERSON, None)
    assert (pin["table_version"], pin["row_count"]) == (2, 2)
    stamp = pin["metadata"]
    assert set(stamp) == {
        "graph_commit_id",
        "parent_commit_id",
        "actor_id",
        "created_at",
        "operation_id",
        "lock_token",
    }
    assert stamp["parent_commit_id"] == first
    commit = added[f"graph_commit:after:{first}"]["metadata"]
    assert commit == {
        **stamp,
        "kind": "load",
        "message": "two people",
        "counts": {"node:Person": {"inserts": 2, "updates": 0, "deletes": 0}},
    }


def test_counts_leave_out_tables_without_a_row_effect(graph: Graph):
    graph.write({"node:Person": Upsert(people("ana")), "node:City": Delete(("nowhere",))})
    head = graph.list_commits()[0]
    assert dict(head.counts) == {"node:Person": RowEffect(inserts=1)}


def test_commit_version_is_the_version_that_brought_its_rows(graph: Graph):
    for name in ("ana", "bob"):
        graph.write({"node:Person": Upsert(people(name))})
    brought = {
        orjson.loads(row["metadata"])["graph_commit_id"]: row["_row_created_at_version"]
        for row in raw_manifest(graph.uri)
        if row["object_type"] == "graph_commit"
    }
    assert {c.graph_commit_id: c.manifest_version for c in graph.list_commits()} == brought


def test_rows_of_every_kind_have_the_keys_of_the_specification():
    changes = Changes(
        (Pin("node:T", "nodes/x", "team/a", 7, 3),),
        (Registration("node:T", "nodes/x"),),
        (Tombstone("node:U", "nodes/y", 12),),
    )
    rows = build_rows(changes, CommitIntent("C", "O", "merge", None, "M"), PARENT, 5)
    assert [r.object_id for r in rows] == [
        "table:node:T@nodes/x",
        "table_version:node:T@nodes/x@team/a@00000000000000000007",
        "table_tombstone:node:U@nodes/y@00000000000000000012",
        f"graph_commit:after:{PARENT}",
    ]
    assert [r.object_type for r in rows] == ["table", "table_version", "table_tombstone", "graph_commit"]
    assert len({r.metadata for r in rows[:3]}) == 1
    assert orjson.loads(rows[0].metadata) == {
        "graph_commit_id": "C",
        "parent_commit_id": PARENT,
        "merged_parent_commit_id": "M",
        "created_at": 5,
        "operation_id": "O",
    }


def test_rows_survive_the_way_through_arrow():
    changes = Changes((Pin("node:T", "nodes/x", None, 7, 3),), (Registration("node:T", "nodes/x"),))
    rows = build_rows(changes, CommitIntent("C", "O", "load", message="ü\n'"), None, 5)
    table = to_arrow(rows).append_column("_row_created_at_version", pa.array([0] * len(rows), pa.int64()))
    assert from_arrow(table) == rows


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"message": "x" * (64 * 1024 + 1)}, "longer than 64 KiB"),
        ({"message": "ü" * (32 * 1024 + 1)}, "longer than 64 KiB"),
        ({"metadata": {"x": "y" * (64 * 1024)}}, "larger than 64 KiB"),
        ({"metadata": {"omnigraph": {}}}, "reserved"),
        ({"actor": "omnigraph:recovery"}, "cannot be an actor"),
        ({"actor": "ana\udcff"}, "the actor is not valid Unicode text"),
        ({"message": "why\udcff"}, "the commit message is not valid Unicode text"),
        ({"metadata": {"x": "\udcff"}}, "the commit metadata cannot be stored as JSON"),
        ({"metadata": {"x": object()}}, "the commit metadata cannot be stored as JSON"),
        ({"metadata": {1: "x"}}, "the commit metadata cannot be stored as JSON"),
        ({"metadata": {"x": 2**70}}, "the commit metadata cannot be stored as JSON"),
    ],
)
def test_commit_refuses_texts_it_may_not_carry_and_moves_nothing(graph: Graph, given, said: str):
    head = graph.head_commit_id_for_branch()
    with pytest.raises(BadRequest, match=said):
        graph.write({"node:Person": Upsert(people("ana"))}, **given)
    assert graph.head_commit_id_for_branch() == head
    assert not [t for t in graph.status().branches[0].tables if t.drifted]


def test_commit_carries_texts_up_to_the_limit(graph: Graph):
    message, metadata = "x" * (64 * 1024), {"x": "y" * (64 * 1024 - 8)}
    graph.write({"node:Person": Upsert(people("ana"))}, message=message, metadata=metadata)
    head = Graph.open(graph.uri, "r").list_commits()[0]
    assert (head.message, head.metadata) == (message, metadata)
    assert is_ulid(head.operation_id or "")
    assert is_ulid(new_ulid())
