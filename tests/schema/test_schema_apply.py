"""An apply brings a schema into force as one commit, and rows go on as what they were."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pytest
from apply_scene import CITY, KNOWS, PERSON, SCHEMA, facts, leftovers, made, rows, stored

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.base.errors import BadRequest, Conflict, Reclaimed, UnsupportedSchemaChange
from omnigraph.commit.plan import MUTATION
from omnigraph.commit.protocol import commit_plan
from omnigraph.engine.write.changes import Annotations, Delete, plan_changes
from omnigraph.manifest import layout
from omnigraph.manifest.snapshot import Snapshot
from omnigraph.storage.tables import Table, open_table

pytestmark = pytest.mark.slow

MEMBER = """\
node Member @rename_from("Person") {
  name: String @key
  years: I32? @index @rename_from("age")
  joined: Date?
  country: String @default("NO")
}
edge Knows: Member -> Member { since: I32? }
node Team { name: String @key }
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return made(tmp_path / "g")


def _names(graph: og.Graph, type_: str, **target: object) -> list[str]:
    source = f"query q() {{ match {{ $x: {type_} }} return {{ $x.name }} order {{ $x.name }} }}"
    return [row["x.name"] for row in graph.query(source, **target).rows]  # type: ignore[arg-type]


def test_many_changes_are_one_commit_and_every_row_is_the_row_it_was(graph: og.Graph) -> None:
    before, past = graph.snapshot(), facts(graph, "node:Person")
    done = graph.schema_apply(MEMBER, message="members", actor="act-ana")
    assert (done.applied, done.manifest_version) == (True, before.version + 1)
    assert done.to_json()["step_count"] == len(done.plan.steps) == 7
    commit = graph.list_commits()[0]
    assert (commit.kind, commit.message, commit.actor_id) == ("schema_apply", "members", "act-ana")
    assert commit.graph_commit_id == done.graph_commit_id
    assert rows(graph, "node:Member") == [
        {"id": "ana", "country": "NO", "joined": None, "name": "ana", "years": 31},
        {"id": "bo", "country": "NO", "joined": None, "name": "bo", "years": 7},
    ]
    assert [(e["since"]) for e in rows(graph, "edge:Knows")] == [3]
    assert facts(graph, "node:Member") == past
    assert stored(graph, "node:Member").column_names[:5] == ["id", "country", "joined", "name", "years"]
    assert sorted(graph.snapshot().tables) == ["edge:Knows", "node:Member", "node:Team"]
    assert leftovers(graph) == []


def test_a_schema_that_is_in_force_already_makes_no_commit(graph: og.Graph) -> None:
    before = graph.snapshot()
    done = graph.schema_apply("// said otherwise\n" + SCHEMA)
    assert done.to_json() == {
        "supported": True,
        "applied": False,
        "step_count": 0,
        "manifest_version": before.version,
        "steps": [],
    }
    assert graph.snapshot() == before


def test_a_change_that_cannot_be_made_writes_nothing(graph: og.Graph) -> None:
    before = graph.snapshot()
    with pytest.raises(UnsupportedSchemaChange, match="OG-MF-106"):
        graph.schema_apply(SCHEMA.replace("age: I32?", "age: I64?"))
    with pytest.raises(UnsupportedSchemaChange, match="OG-MF-103"):
        graph.schema_apply(SCHEMA.replace("note: String?", "note: String?  rank: I32"))
    assert graph.snapshot() == before
    assert leftovers(graph) == []


@pytest.mark.parametrize("note", [{"actor": "\udcff"}, {"message": "\udcff"}, {"metadata": {"x": object()}}])
def test_a_commit_that_cannot_be_told_in_text_is_refused_by_name(graph: og.Graph, note: dict[str, Any]) -> None:
    before = graph.snapshot()
    with pytest.raises(BadRequest, match=next(iter(note))):
        graph.schema_apply(MEMBER, **note)
    assert graph.snapshot() == before
    assert leftovers(graph) == []


def test_a_dry_run_and_a_read_only_handle_write_nothing(graph: og.Graph) -> None:
    before = graph.snapshot()
    reader = og.Graph.open(graph.uri, "r")
    assert not graph.schema_apply(MEMBER, dry_run=True).applied
    assert reader.schema_apply(MEMBER, dry_run=True).plan.supported
    with pytest.raises(BadRequest, match="read-only"):
        reader.schema_apply(MEMBER)
    assert graph.snapshot() == before


def test_rows_that_are_there_get_the_literal_of_every_type(graph: og.Graph) -> None:
    added = """
      a: String @default("x y")  b: Bool @default(true)  c: I32 @default(-3)  d: U64 @default(9)  e: F32 @default(0.5)
      f: Date @default("2024-02-29")  g: DateTime @default("2024-02-29T01:02:03Z")  h: enum(low, high) @default("low")
    """
    past = facts(graph, "node:Person")
    graph.schema_apply(SCHEMA.replace("note: String?", f"note: String? {added}"))
    first = stored(graph, "node:Person").to_pylist()[0]
    assert [first[name] for name in "abcdeh"] == ["x y", True, -3, 9, 0.5, "low"]
    assert first["f"] == dt.date(2024, 2, 29)
    assert first["g"] == dt.datetime(2024, 2, 29, 1, 2, 3, tzinfo=dt.UTC)
    assert facts(graph, "node:Person") == past
    fields = stored(graph, "node:Person").schema
    assert not any(fields.field(name).nullable for name in "abcdefgh")


def test_other_handles_see_the_new_schema_at_their_next_call(graph: og.Graph) -> None:
    reader, writer = og.Graph.open(graph.uri, "r"), og.Graph.open(graph.uri)
    assert _names(reader, "Person") == _names(writer, "Person") == ["ana", "bo"]
    graph.schema_apply(MEMBER)
    assert _names(reader, "Member") == ["ana", "bo"]
    writer.mutate('query q() { insert Member { name: "cy", country: "SE" } }')
    assert _names(graph, "Member") == ["ana", "bo", "cy"]
    with pytest.raises(og.OmniError):
        _names(reader, "Person")


def test_what_is_kept_in_memory_goes_by_the_new_names(graph: og.Graph) -> None:
    ask = "query q() {{ match {{ $p: {0} }} return {{ $p.name, $p.{1} }} order {{ $p.name }} }}"
    for _ in range(40):
        assert [row["p.age"] for row in graph.query(ask.format("Person", "age")).rows] == [31, 7]
    graph.schema_apply(MEMBER)
    for _ in range(40):
        assert [row["p.years"] for row in graph.query(ask.format("Member", "years")).rows] == [31, 7]
        assert [row["p.country"] for row in graph.query(ask.format("Member", "country")).rows] == ["NO", "NO"]
    knows = "query q() { match { $a: Member  $a knows $b } return { $b.name, $b.years } }"
    assert graph.query(knows).rows == [{"b.name": "bo", "b.years": 7}]


def test_a_type_renamed_and_renamed_back_is_the_same_table(graph: og.Graph) -> None:
    place = graph.snapshot().tables["node:City"].location
    graph.schema_apply(SCHEMA.replace("node City", 'node Town @rename_from("City")'))
    assert _names(graph, "Town") == ["oslo"]
    graph.schema_apply(SCHEMA.replace("node City", 'node City @rename_from("Town")'))
    assert _names(graph, "City") == ["oslo"]
    assert graph.snapshot().tables["node:City"].location == place
    graph.schema_apply(SCHEMA.replace("node City", 'node Town @rename_from("City")'))
    assert sorted(graph.snapshot().tables) == ["edge:Knows", "node:Person", "node:Town"]


def test_a_name_that_became_free_can_be_had_by_another_type(graph: og.Graph) -> None:
    town = 'node Town @rename_from("City") { name: String @key }\n'
    graph.schema_apply(town + PERSON + KNOWS)
    graph.schema_apply(town + CITY + PERSON + KNOWS)
    assert (_names(graph, "Town"), _names(graph, "City")) == (["oslo"], [])
    places = {key: entry.location for key, entry in graph.snapshot().tables.items()}
    assert places["node:City"].startswith(f"{places['node:Town']}-")


def test_a_name_that_is_dropped_and_comes_back_has_no_rows(graph: og.Graph) -> None:
    first = graph.snapshot().tables["node:City"].location
    graph.schema_apply(PERSON + KNOWS)
    assert "node:City" not in graph.snapshot().tables
    graph.schema_apply(SCHEMA)
    entry = graph.snapshot().tables["node:City"]
    assert (entry.row_count, _names(graph, "City")) == (0, [])
    assert entry.location.startswith(f"{first}-")
    graph.mutate('query q() { insert City { name: "rome" } }')
    assert _names(graph, "City") == ["rome"]


def test_a_property_that_is_dropped_and_comes_back_is_null(graph: og.Graph) -> None:
    graph.schema_apply(SCHEMA.replace("note: String?", ""))
    graph.schema_apply(SCHEMA)
    assert [row["note"] for row in rows(graph, "node:Person")] == [None, None]


def _opened(graph: og.Graph, table_key: str, snapshot: Snapshot) -> Table:
    entry = snapshot.tables[table_key]
    return open_table(graph.context.ref(entry.location, entry.table_branch), entry.table_version, table_key)


def test_what_was_dropped_softly_is_still_there_in_the_past(graph: og.Graph) -> None:
    before = graph.snapshot()
    graph.schema_apply("node Person { name: String @key  age: I32? @index }\n" + KNOWS)
    assert _opened(graph, "node:City", before).read(["name"]).to_pylist() == [{"name": "oslo"}]
    assert _opened(graph, "node:Person", before).read(["note"]).column("note").to_pylist() == ["first", None]
    assert sorted(graph.snapshot_at_version(before.version).tables) == sorted(before.tables)


def test_what_was_dropped_for_good_can_never_be_read_again(graph: og.Graph) -> None:
    before = graph.snapshot()
    graph.schema_apply("node Person { name: String @key  age: I32? @index }\n" + KNOWS, allow_data_loss=True)
    assert [row["name"] for row in rows(graph, "node:Person")] == ["ana", "bo"]
    for table_key in ("node:City", "node:Person"):
        with pytest.raises(Reclaimed):
            _opened(graph, table_key, before)
    with pytest.raises(Reclaimed):
        rows(graph, "node:Person", snapshot=before)
    assert not Path(graph.uri, before.tables["node:City"].location, "data").exists()
    graph.schema_apply(SCHEMA)
    assert graph.snapshot().tables["node:City"].location != before.tables["node:City"].location
    assert leftovers(graph) == []


def test_a_tag_keeps_what_it_shows_from_being_dropped_for_good(graph: og.Graph) -> None:
    graph.tag_create("v1")
    graph.mutate('query q() { insert City { name: "rome" } }')
    before = graph.snapshot()
    with pytest.raises(Conflict, match="tag 'v1' shows node:City") as refused:
        graph.schema_apply(PERSON + KNOWS, allow_data_loss=True)
    assert "tag delete v1" in refused.value.hint
    assert graph.snapshot() == before
    graph.schema_apply(PERSON + KNOWS)
    assert leftovers(graph) == []


def test_only_additions_go_beside_other_branches(graph: og.Graph) -> None:
    graph.branch_create("draft")
    graph.branch_create("team/x")
    with pytest.raises(Conflict, match="requires a graph with only main; found non-main branches: draft, team/x"):
        graph.schema_apply(MEMBER)
    assert leftovers(graph) == []
    assert graph.schema_apply(SCHEMA.replace("note: String?", "note: String?  joined: Date?")).applied


def test_an_apply_that_branches_forbid_holds_nobody_up(graph: og.Graph) -> None:
    graph.branch_create("draft")
    failpoints.arm("schema_apply.lock_made", failpoints.fail)
    with pytest.raises(Conflict, match="found non-main branches: draft"):
        graph.schema_apply(MEMBER)
    failpoints.disarm_all()


def test_a_branch_that_comes_before_the_lock_is_not_overlooked(graph: og.Graph) -> None:
    failpoints.arm("schema_apply.planned", lambda: graph.branch_create("draft"))
    with pytest.raises(Conflict, match="found non-main branches: draft"):
        graph.schema_apply(MEMBER)
    assert leftovers(graph) == []


def test_a_branch_sees_an_addition_at_its_next_call(graph: og.Graph) -> None:
    graph.branch_create("draft")
    other = og.Graph.open(graph.uri, "r")
    assert _names(other, "Person", branch="draft") == ["ana", "bo"]
    graph.schema_apply(SCHEMA + "node Team { name: String @key }\n")
    assert _names(other, "Team", branch="draft") == []
    assert other.schema("draft").catalog.find_node("Team") is not None


def test_a_refused_apply_can_be_done_when_the_reason_is_gone(graph: og.Graph) -> None:
    graph.branch_create("draft")
    with pytest.raises(Conflict, match="only main"):
        graph.schema_apply(MEMBER)
    graph.branch_delete("draft")
    assert graph.schema_apply(MEMBER).applied


def test_a_delete_that_does_not_know_of_a_new_edge_type_is_refused(graph: og.Graph) -> None:
    """Else an edge of that type could be left without its end."""
    ids = tuple(row["id"] for row in rows(graph, "edge:Knows"))
    plan = plan_changes(graph.view(), {"edge:Knows": Delete(ids)}, MUTATION, Annotations())
    graph.schema_apply(SCHEMA + "edge Likes: Person -> Person\n")
    graph.mutate('query q() { insert Likes { from: "ana", to: "bo" } }')
    with pytest.raises(og.OmniError, match="edge:Likes"):
        commit_plan(graph.context, plan)
    assert len(rows(graph, "edge:Knows")) == 1


def test_an_apply_after_an_interrupted_one_skips_the_places_that_were_taken(graph: og.Graph) -> None:
    team = SCHEMA + "node Team { name: String @key }\n"
    first = layout.table_location("node", "Team")
    Path(graph.uri, first, "_versions").mkdir(parents=True)
    Path(graph.uri, first, "_versions", "leftover").write_bytes(b"x")
    graph.schema_apply(team)
    entry = graph.snapshot().tables["node:Team"]
    assert entry.location.startswith(f"{first}-")
    assert graph.catalog.find_node("Team") is not None


def test_a_plan_that_became_another_one_is_not_carried_out(graph: og.Graph) -> None:
    """Here it would drop a type that somebody else has just added."""
    other = og.Graph.open(graph.uri)
    failpoints.arm("schema_apply.planned", lambda: other.schema_apply(SCHEMA + "node Team { name: String @key }\n"))
    with pytest.raises(Conflict, match="the schema changed meanwhile"):
        graph.schema_apply(SCHEMA + "node Club { name: String @key }\n")
    assert "node:Team" in graph.snapshot().tables
    assert leftovers(graph) == []


def test_strict_update_and_schema_apply_succeed_after_optimize(graph: og.Graph) -> None:
    for number in range(3):
        graph.mutate(f'query q() {{ insert Person {{ name: "p{number}" }} }}')
    graph.schema_apply(SCHEMA.replace("note: String?", 'note: String?  country: String @default("NO")'))
    assert graph.optimize().commit is not None
    graph.mutate('query q() { update Person set { age: 9 } where name = "bo" }')
    past = facts(graph, "node:Person")
    assert graph.schema_apply(MEMBER).applied
    assert facts(graph, "node:Member") == past
    graph.ensure_indices()
    assert graph.optimize().commit is not None
    graph.cleanup(keep=1, confirm=True)
    assert [(row["name"], row["years"], row["country"]) for row in rows(graph, "node:Member")] == [
        ("ana", 31, "NO"),
        ("bo", 9, "NO"),
        *((f"p{number}", None, "NO") for number in range(3)),
    ]
    assert graph.verify().findings == ()
    assert leftovers(graph) == []
