"""A sidecar says after a crash exactly what its writer intended, and a file that cannot be read is named and kept."""

from __future__ import annotations

import dataclasses
import json
import os
from typing import Any

import pytest
from crash_world import EFFECTS, listing, plan_of

from omnigraph.base.errors import Kind
from omnigraph.base.ids import new_ulid
from omnigraph.commit.plan import WriterKind
from omnigraph.commit.sidecar import BadSidecar, Sidecar, SidecarTable, decode, encode, sidecar_of
from omnigraph.graph import Graph
from omnigraph.manifest.rows import Registration, RowEffect, Tombstone

KEY = "__recovery/01J000000000000000000000AA.json"
SPEC_EXAMPLE: dict[str, Any] = {
    "schema_version": 1,
    "operation_id": "01J000000000000000000000AA",
    "started_at": "2024-05-01T10:00:00.000000Z",
    "branch": None,
    "actor_id": "act-ana",
    "writer_kind": "Mutation",
    "graph_commit_id": "01J000000000000000000000AB",
    "parent_commit_id": "01H000000000000000000000AC",
    "branch_incarnation": "01H000000000000000000000AD",
    "merge_source_commit_id": None,
    "lock_token": 17,
    "tables": [
        {
            "table_key": "node:Person",
            "table_path": "nodes/40d76f1f51639ec0",
            "table_branch": None,
            "expected_version": 5,
            "post_commit_pin": 6,
            "transactions": ["6f0c"],
        }
    ],
    "additional_registrations": [],
    "tombstones": [],
}


def without(name: str) -> dict[str, Any]:
    return {k: v for k, v in SPEC_EXAMPLE.items() if k != name}


def with_table(**values: Any) -> dict[str, Any]:
    (table,) = SPEC_EXAMPLE["tables"]
    return {**SPEC_EXAMPLE, "tables": [{**table, **values}]}


def decoded(members: Any) -> Sidecar:
    return decode(KEY, json.dumps(members).encode())


def test_the_example_of_the_spec_is_read_member_by_member() -> None:
    table = SidecarTable("node:Person", "nodes/40d76f1f51639ec0", None, 5, 6, ("6f0c",))
    assert decoded(SPEC_EXAMPLE) == Sidecar(
        operation_id="01J000000000000000000000AA",
        started_at="2024-05-01T10:00:00.000000Z",
        branch=None,
        actor_id="act-ana",
        writer_kind=WriterKind.MUTATION,
        tables=(table,),
        graph_commit_id="01J000000000000000000000AB",
        parent_commit_id="01H000000000000000000000AC",
        branch_incarnation="01H000000000000000000000AD",
        lock_token=17,
    )
    assert decoded(SPEC_EXAMPLE).key == KEY


@pytest.mark.parametrize("kind", WriterKind)
def test_every_member_of_every_writer_kind_survives_the_file(kind: WriterKind) -> None:
    sidecar = Sidecar(
        operation_id=new_ulid(),
        started_at="2024-05-01T10:00:00.000000Z",
        branch="feature/ü",
        actor_id="act-ana",
        writer_kind=kind,
        tables=(SidecarTable("a", "nodes/1", "b", 3, 5, ("u1", "u2"), 7), SidecarTable("b", "nodes/2", None, 0, 1)),
        graph_commit_id=new_ulid(),
        parent_commit_id=new_ulid(),
        branch_incarnation=new_ulid(),
        merge_source_commit_id=new_ulid(),
        lock_token=2**40,
        registrations=(Registration("c", "nodes/3"),),
        tombstones=(Tombstone("d", "nodes/4", 9),),
        message="why, in words",
        counts={"a": RowEffect(1, 2, 3)},
        metadata={"ticket": {"deep": [1, None, "x"]}},
    )
    assert decode(sidecar.key, encode(sidecar)) == sidecar
    assert json.loads(encode(sidecar))["writer_kind"] == kind.value


@pytest.mark.parametrize(
    "name",
    [
        "graph_commit_id",
        "parent_commit_id",
        "branch_incarnation",
        "lock_token",
        "merge_source_commit_id",
        "actor_id",
        "branch",
        "additional_registrations",
        "tombstones",
        "started_at",
    ],
)
def test_members_an_older_writer_did_not_know_may_be_absent(name: str) -> None:
    assert decoded(without(name)).operation_id == SPEC_EXAMPLE["operation_id"]


def test_a_table_without_transactions_has_none() -> None:
    (table,) = SPEC_EXAMPLE["tables"]
    bare = {k: v for k, v in table.items() if k != "transactions"}
    assert decoded({**SPEC_EXAMPLE, "tables": [bare]}).tables[0].transactions == ()


@pytest.mark.parametrize("effect", sorted(EFFECTS))
def test_a_plan_becomes_a_sidecar_that_plans_every_version(graph: Graph, effect: str) -> None:
    plan = plan_of(graph, EFFECTS[effect], ["node:Person", "edge:Knows"], new_ulid())
    sidecar = sidecar_of(plan, "parent", 3)
    assert [t.table_key for t in sidecar.tables] == ["edge:Knows", "node:Person"]
    assert {t.table_key: (t.expected_version, t.post_commit_pin) for t in sidecar.tables} == {
        e.table_key: (e.expected_version, e.post_commit_pin) for e in plan.effects
    }
    assert (sidecar.parent_commit_id, sidecar.lock_token) == ("parent", 3)
    assert sidecar.writer_kind is EFFECTS[effect].writer.sidecar
    # Tables of which no row changed are not counted.
    counted = {key: effect for key, effect in sidecar.counts.items() if effect.any}
    assert decode(sidecar.key, encode(sidecar)) == dataclasses.replace(sidecar, counts=counted)


BAD_TEXTS = {
    "nothing": b"",
    "torn": json.dumps(SPEC_EXAMPLE).encode()[:-9],
    "not-utf8": b"\xff\xfe{}",
    "a-list": b"[]",
    "a-number": b"1",
    "null": b"null",
}
BAD_MEMBERS = {
    "newer": {**SPEC_EXAMPLE, "schema_version": 2},
    "unversioned": without("schema_version"),
    "version-as-text": {**SPEC_EXAMPLE, "schema_version": "1"},
    "no-operation": without("operation_id"),
    "operation-of-another-file": {**SPEC_EXAMPLE, "operation_id": "01J000000000000000000000ZZ"},
    "operation-outside": {**SPEC_EXAMPLE, "operation_id": "../../elsewhere"},
    "operation-as-number": {**SPEC_EXAMPLE, "operation_id": 5},
    "no-tables": without("tables"),
    "no-writer": without("writer_kind"),
    "unknown-writer": {**SPEC_EXAMPLE, "writer_kind": "Gardener"},
    "tables-null": {**SPEC_EXAMPLE, "tables": None},
    "tables-of-texts": {**SPEC_EXAMPLE, "tables": ["node:Person"]},
    "table-without-key": {**SPEC_EXAMPLE, "tables": [{}]},
    "version-in-words": with_table(expected_version="five"),
    "version-null": with_table(post_commit_pin=None),
    "registration-of-nothing": {**SPEC_EXAMPLE, "additional_registrations": [{}]},
    "tombstone-of-nothing": {**SPEC_EXAMPLE, "tombstones": [{"table_key": "x"}]},
    **{
        f"{name}-as-number": {**SPEC_EXAMPLE, name: 7} for name in ("branch", "actor_id", "parent_commit_id", "message")
    },
    **{
        f"{name}-as-list": {**SPEC_EXAMPLE, name: [1]} for name in ("branch_incarnation", "graph_commit_id", "metadata")
    },
    "token-as-text": {**SPEC_EXAMPLE, "lock_token": "17"},
    "token-as-truth": {**SPEC_EXAMPLE, "lock_token": True},
    "writer-as-list": {**SPEC_EXAMPLE, "writer_kind": ["Load"]},
    "tables-as-object": {**SPEC_EXAMPLE, "tables": {"table_key": "node:Person"}},
    "table-key-as-number": with_table(table_key=3),
    "table-path-null": with_table(table_path=None),
    "table-branch-as-object": with_table(table_branch={}),
    "version-below-zero": with_table(expected_version=-1),
    "version-as-fraction": with_table(post_commit_pin=6.5),
    "transactions-as-text": with_table(transactions="6f0c"),
    "transactions-of-numbers": with_table(transactions=[1]),
    "rows-in-words": with_table(row_count="many"),
    "registrations-as-number": {**SPEC_EXAMPLE, "additional_registrations": 1},
    "tombstones-of-texts": {**SPEC_EXAMPLE, "tombstones": ["node:Person"]},
}
BAD = {**BAD_TEXTS, **{name: json.dumps(members).encode() for name, members in BAD_MEMBERS.items()}}


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_file_that_cannot_be_understood_is_refused_by_its_name(name: str) -> None:
    with pytest.raises(BadSidecar, match=KEY) as refused:
        decode(KEY, BAD[name])
    assert refused.value.kind is Kind.CONFLICT
    assert refused.value.hint


@pytest.mark.parametrize("name", sorted(BAD_TEXTS))
def test_text_that_is_no_json_object_is_called_not_valid_json(name: str) -> None:
    with pytest.raises(BadSidecar, match="is not valid JSON"):
        decode(KEY, BAD_TEXTS[name])


def test_a_newer_file_is_named_with_both_versions() -> None:
    with pytest.raises(BadSidecar, match=r"schema_version 2, this omnigraph knows 1"):
        decode(KEY, BAD["newer"])


@pytest.mark.parametrize("name", sorted(BAD))
def test_a_corrupt_sidecar_stops_the_read_write_open_and_is_kept(path: str, name: str) -> None:
    os.makedirs(f"{path}/__recovery", exist_ok=True)
    with open(f"{path}/{KEY}", "wb") as file:
        file.write(BAD[name])
    left = listing(path)
    with pytest.raises(BadSidecar, match=KEY):
        Graph.open(path)
    assert listing(path) == left
    assert Graph.open(path, "r").snapshot().tables["node:Person"].row_count == 5


def test_files_of_other_kinds_beside_the_sidecars_are_left_alone(path: str) -> None:
    os.makedirs(f"{path}/__recovery", exist_ok=True)
    for name in ("notes.txt", "01J000000000000000000000AA.json.bak"):
        with open(f"{path}/__recovery/{name}", "w") as file:
            file.write("not json")
    graph = Graph.open(path)
    assert graph.recoveries().pending == ()
    assert sorted(os.listdir(f"{path}/__recovery")) == ["01J000000000000000000000AA.json.bak", "notes.txt"]
