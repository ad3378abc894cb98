"""Tags name commits for good: made once, kept from cleanup and from the deletion of branches, gone when deleted."""

from __future__ import annotations

import os
from pathlib import Path

import orjson
import pyarrow as pa
import pytest
from travel_scene import Past, add, clean, people

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.commit.locks import FileLock, LockLost
from omnigraph.commit.tags import tags_that_need

pytestmark = pytest.mark.slow


def names(graph: og.Graph) -> list[str]:
    return [tag.name for tag in graph.tag_list()]


def test_a_tag_tells_what_it_names_who_made_it_and_why(past: Past) -> None:
    made = past.graph.tag_create("v1", "draft~1", actor="act-ana", message="for the report")
    assert (made.name, made.graph_commit_id, made.branch) == ("v1", past.ids["di"], "draft")
    assert (made.actor_id, made.message) == ("act-ana", "for the report")
    assert made.created_at > past.graph.get_commit(past.ids["di"]).created_at
    assert og.Graph.open(past.graph.uri, "r").tag_list() == [made]


def test_a_tag_lies_where_the_layout_says_with_every_member(past: Past) -> None:
    made = past.graph.tag_create("v1")
    stored = orjson.loads(Path(past.graph.uri, "__tags", "v1.json").read_bytes())
    assert stored == {
        "name": "v1",
        "graph_commit_id": past.ids["cy"],
        "branch": "main",
        "actor_id": None,
        "message": None,
        "created_at": made.created_at,
    }


def test_without_a_target_the_head_of_the_current_branch_is_tagged(past: Past) -> None:
    assert past.graph.tag_create("a").graph_commit_id == past.ids["cy"]
    past.graph.sync_branch("draft")
    assert past.graph.tag_create("b").graph_commit_id == past.ids["ed"]


def test_a_tag_stays_where_it_is_when_its_branch_moves_on(past: Past) -> None:
    past.graph.tag_create("v1", "main")
    add(past.graph, "zoe")
    assert people(past.graph, snapshot="v1") == past.shown["cy"]


def test_tags_are_listed_by_name_and_a_deleted_one_is_gone(past: Past) -> None:
    for name in ("v2", "v1", "team/x"):
        past.graph.tag_create(name)
    assert names(past.graph) == ["team/x", "v1", "v2"]
    past.graph.tag_delete(" v1 ")
    assert names(past.graph) == ["team/x", "v2"]
    with pytest.raises(og.NotFound, match="neither a branch nor a commit nor a tag"):
        past.graph.snapshot_of("v1")
    with pytest.raises(og.NotFound, match="tag 'v1' not found"):
        past.graph.tag_delete("v1")
    assert past.graph.tag_create("v1", "draft").graph_commit_id == past.ids["ed"]


def test_a_tag_never_moves(past: Past) -> None:
    past.graph.tag_create("v1", "main~1")
    for target in ("main", "main~1"):
        with pytest.raises(og.Conflict, match=f"tag 'v1' already exists at {past.ids['bo']}"):
            past.graph.tag_create("v1", target)
    assert past.graph.snapshot_of("v1").graph_commit_id == past.ids["bo"]


def test_a_tag_and_a_branch_never_share_a_name(past: Past) -> None:
    with pytest.raises(og.Conflict, match="branch 'draft' already exists"):
        past.graph.tag_create("draft")
    past.graph.tag_create("v1")
    for make in (lambda: past.graph.branch_create("v1"), lambda: past.graph.branch_create_from("draft", "v1")):
        with pytest.raises(og.Conflict, match="tag 'v1' already exists"):
            make()
    assert (names(past.graph), past.graph.branch_list()) == (["v1"], ["main", "draft"])
    past.graph.tag_delete("v1")
    past.graph.branch_create("v1")
    with pytest.raises(og.Conflict, match="branch 'v1' already exists"):
        past.graph.tag_create("v1")


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("main", "cannot create tag 'main'"),
        ("  ", "tag name cannot be empty"),
        ("a//b", "is not a tag name"),
        ("../a", "is not a tag name"),
        ("a.lock", "is not a tag name"),
        ("v~1", "is not a tag name"),
        ("ä", "is not a tag name"),
        ("x" * 129, "longer than 128"),
        ("/".join("a" * 64), "too many slashes"),
        ("__schema_apply_lock__", "does not allow internal system ref"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", "looks like a commit id"),
    ],
)
def test_a_name_that_cannot_be_a_tag_is_refused(past: Past, name: str, says: str) -> None:
    with pytest.raises(og.BadRequest, match=says):
        past.graph.tag_create(name)
    assert names(past.graph) == []


@pytest.mark.parametrize("name", ["x" * 128, "/".join("a" * 60), "v1.json", ".hidden", "a.b-c_d/e"])
def test_unusual_names_work_like_others(past: Past, name: str) -> None:
    past.graph.tag_create(name, "main~2")
    assert names(past.graph) == [name]
    assert people(past.graph, snapshot=f"{name}~0") == past.shown["ana"]
    past.graph.tag_delete(name)
    assert names(past.graph) == []


def test_tags_are_never_path_ancestors_of_each_other_but_may_lie_beside_branches(past: Past) -> None:
    past.graph.tag_create("team/v1")
    for name in ("team", "team/v1/rc"):
        with pytest.raises(og.Conflict, match="tag names may not be path ancestors or descendants"):
            past.graph.tag_create(name)
    past.graph.tag_create("draft/v1", "draft")
    assert people(past.graph, snapshot="draft/v1") == past.shown["ed"]


def test_a_target_that_is_not_there_makes_no_tag(past: Past) -> None:
    for target in ("nowhere", "main~9", "01ARZ3NDEKTSV4RRFFQ69G5FAV"):
        with pytest.raises(og.NotFound):
            past.graph.tag_create("v1", target)
    assert names(past.graph) == []


def test_a_tag_of_a_tag_names_its_commit(past: Past) -> None:
    past.graph.tag_create("v1", "main~1")
    assert past.graph.tag_create("v2", "v1~1").graph_commit_id == past.ids["ana"]


def test_a_reader_can_list_tags_and_not_make_or_delete_them(past: Past) -> None:
    past.graph.tag_create("v1")
    reader = og.Graph.open(past.graph.uri, "r")
    assert names(reader) == ["v1"]
    for act in (lambda: reader.tag_create("v2"), lambda: reader.tag_delete("v1")):
        with pytest.raises(og.BadRequest, match="open read-only"):
            act()


@pytest.mark.parametrize("more", [{"actor": "omnigraph:me"}, {"actor": " "}, {"message": "x" * (64 * 1024 + 1)}])
def test_a_tag_carries_what_a_commit_may_carry(past: Past, more: dict[str, str]) -> None:
    with pytest.raises(og.BadRequest):
        past.graph.tag_create("v1", **more)
    assert names(past.graph) == []


def test_a_branch_with_a_tag_on_a_commit_of_its_own_is_not_deleted(past: Past) -> None:
    past.graph.tag_create("v1", "draft~1")
    with pytest.raises(og.Conflict, match="tag 'v1' still depends on it"):
        past.graph.branch_delete("draft")
    assert people(past.graph, snapshot="v1") == past.shown["di"]
    past.graph.tag_delete("v1")
    past.graph.branch_delete("draft")
    assert past.graph.branch_list() == ["main"]


def test_a_tag_on_a_commit_the_branch_only_inherited_does_not_hold_it(past: Past) -> None:
    past.graph.tag_create("v1", "draft~2")
    past.graph.branch_delete("draft")
    assert people(past.graph, snapshot="v1") == past.shown["bo"]


def test_a_branch_whose_fork_a_tagged_commit_elsewhere_shows_is_not_deleted(past: Past) -> None:
    graph = past.graph
    graph.branch_create_from("draft", "later")
    graph.write({"node:City": og.Append(cities(graph, "oslo"))}, branch="later")  # its persons are still draft's
    graph.tag_create("v1", "later")
    graph.tag_create("v0", "main")
    assert tags_that_need(graph.context, graph.context.manifest.state("draft")) == ["v1"]
    assert tags_that_need(graph.context, graph.context.manifest.state("later")) == ["v1"]


def cities(graph: og.Graph, *ids: str) -> pa.Table:
    return pa.table({"id": list(ids), "name": list(ids)}, schema=graph.catalog.arrow_schema("node:City"))


def test_cleanup_keeps_what_tags_name_as_a_whole(past: Past) -> None:
    graph = past.graph
    graph.tag_create("v1", "main~2")
    graph.tag_create("team/v2", past.ids["di"])
    for name in ("p", "q", "r"):
        add(graph, name)
        add(graph, name, "draft")
    assert clean(graph) > 0
    again = og.Graph.open(graph.uri)
    assert people(again, snapshot="v1") == past.shown["ana"]
    assert people(again, snapshot="team/v2") == past.shown["di"]
    with pytest.raises(og.Reclaimed):
        people(again, snapshot=past.ids["cy"])


def test_what_a_deleted_tag_named_may_be_collected(past: Past) -> None:
    graph = past.graph
    graph.tag_create("v1", "main~2")
    add(graph, "zoe")
    clean(graph)
    assert people(og.Graph.open(graph.uri), snapshot=past.ids["ana"]) == past.shown["ana"]
    graph.tag_delete("v1")
    assert clean(graph) > 0
    with pytest.raises(og.Reclaimed):
        people(og.Graph.open(graph.uri), snapshot=past.ids["ana"])


def test_a_commit_that_was_collected_gets_no_tag(past: Past) -> None:
    add(past.graph, "zoe")
    clean(past.graph)
    with pytest.raises(og.Reclaimed, match="was reclaimed"):
        past.graph.tag_create("v1", past.ids["ana"])
    assert names(past.graph) == []


def test_a_tag_that_cannot_be_read_stops_cleanup_and_branch_deletion_until_it_is_deleted(past: Past) -> None:
    graph = past.graph
    graph.tag_create("good")
    Path(graph.uri, "__tags", "team%2Fbad.json").write_bytes(b"{")
    for act in (graph.tag_list, lambda: graph.branch_delete("draft"), lambda: graph.snapshot_of("team/bad")):
        with pytest.raises(og.Conflict, match="cannot be read") as found:
            act()
        assert "omnigraph tag delete team/bad" in found.value.hint
    assert [t.error for t in graph.cleanup(keep=1, confirm=True).tables if t.table_key.startswith("node:")] == [
        "tag __tags/team%2Fbad.json cannot be read"
    ] * 2
    assert people(graph, snapshot="good") == past.shown["cy"]
    graph.tag_delete("team/bad")
    assert names(graph) == ["good"]
    graph.branch_delete("draft")


class Died(BaseException):
    """A process that stops here."""


def die() -> None:
    raise Died


@pytest.mark.parametrize(
    ("verb", "point", "left"),
    [
        ("create", "tag_create.pre_put", ["old"]),
        ("create", "tag_create.post_put", ["new", "old"]),
        ("delete", "tag_delete.pre_delete", ["old"]),
        ("delete", "tag_delete.post_delete", []),
    ],
)
def test_a_crash_leaves_a_tag_whole_or_none(past: Past, verb: str, point: str, left: list[str]) -> None:
    past.graph.tag_create("old", "main~1")
    failpoints.arm(point, die)
    with pytest.raises(Died):
        past.graph.tag_create("new", "draft") if verb == "create" else past.graph.tag_delete("old")
    failpoints.disarm_all()
    again = og.Graph.open(past.graph.uri)
    assert names(again) == left
    if "new" in left:
        assert people(again, snapshot="new") == past.shown["ed"]
    assert again.tag_create("next").graph_commit_id == past.ids["cy"]


def test_a_lock_that_was_lost_meanwhile_makes_neither_a_tag_nor_a_branch(
    past: Past, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_lock: FileLock) -> None:
        raise LockLost("taken over")

    with monkeypatch.context() as patch:
        patch.setattr(FileLock, "check", lost)
        with pytest.raises(LockLost):
            past.graph.tag_create("v1")
        with pytest.raises(LockLost):
            past.graph.branch_create("later")
        with pytest.raises(LockLost):
            past.graph.branch_delete("draft")
        assert clean(past.graph) == 0
    assert names(past.graph) == []
    assert past.graph.branch_list() == ["main", "draft"]
    assert people(past.graph, snapshot="main~2") == past.shown["ana"]
    assert os.listdir(Path(past.graph.uri, "__tags")) == []
