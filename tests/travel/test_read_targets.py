"""Every way to name a moment shows exactly what was there then, to every way of reading."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from travel_scene import NAMES, Past, add, people

import omnigraph as og
from omnigraph.base.clock import iso_us
from omnigraph.base.moments import time_us

pytestmark = pytest.mark.slow


@pytest.mark.parametrize(
    ("target", "shows"),
    [
        ("main", "cy"),
        ("main~0", "cy"),
        ("main~1", "bo"),
        ("main~2", "ana"),
        ("draft", "ed"),
        ("draft~1", "di"),
        ("draft~2", "bo"),  # inherited: draft began there
        ("draft~3", "ana"),
        (" draft~1 ", "di"),
    ],
)
def test_steps_back_follow_first_parents_also_past_the_start_of_a_branch(past: Past, target: str, shows: str) -> None:
    assert people(past.graph, snapshot=target) == past.shown[shows]
    assert past.graph.snapshot_of(target).graph_commit_id == past.ids[shows]


def test_a_commit_id_is_found_on_any_branch_and_may_be_stepped_back_from(past: Past) -> None:
    for name, commit in past.ids.items():
        assert people(past.graph, snapshot=commit) == past.shown[name]
    assert people(past.graph, snapshot=f"{past.ids['ed']}~1") == past.shown["di"]
    assert people(past.graph, snapshot=f"{past.ids['ed']}~3") == past.shown["ana"]


def test_a_tag_is_a_target_and_may_be_stepped_back_from(past: Past) -> None:
    past.graph.tag_create("v1", "main~1")
    past.graph.tag_create("team/v2", past.ids["ed"])
    assert people(past.graph, snapshot="v1") == past.shown["bo"]
    assert people(past.graph, snapshot="v1~1") == past.shown["ana"]
    assert people(past.graph, snapshot="team/v2~1") == past.shown["di"]
    assert people(og.Graph.open(past.graph.uri, "r"), snapshot="team/v2") == past.shown["ed"]


@pytest.mark.parametrize("name", ["ana", "bo", "cy"])
def test_a_time_shows_the_newest_commit_of_the_branch_that_was_there_then(past: Past, name: str) -> None:
    at = past.graph.get_commit(past.ids[name]).created_at
    exact = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=at)
    for moment in (at, str(at), iso_us(at), iso_us(at).lower(), exact, exact.isoformat()):
        assert people(past.graph, branch="main", as_of=moment) == past.shown[name], moment
    before = past.graph.snapshot_of("main", as_of=at - 1)
    assert before.graph_commit_id == past.graph.get_commit(past.ids[name]).parent_commit_id


def test_a_time_on_a_branch_follows_its_own_line(past: Past) -> None:
    graph = past.graph
    cy = graph.get_commit(past.ids["cy"]).created_at
    assert people(graph, branch="draft", as_of=cy) == past.shown["di"]
    assert people(graph, as_of=cy) == past.shown["cy"]
    bo = graph.get_commit(past.ids["bo"]).created_at
    assert people(graph, branch="draft", as_of=bo) == past.shown["bo"]
    graph.sync_branch("draft")
    assert people(graph, as_of=cy) == past.shown["di"]
    assert people(graph, as_of="2100-01-01") == past.shown["ed"]


def test_a_time_before_the_first_commit_is_not_found(past: Past) -> None:
    genesis = past.graph.list_commits()[-1]
    assert past.graph.snapshot_of("main", as_of=genesis.created_at).graph_commit_id == genesis.graph_commit_id
    with pytest.raises(og.NotFound, match="had no commit yet"):
        past.graph.snapshot_of("main", as_of=genesis.created_at - 1)


def test_a_date_is_its_start_in_utc() -> None:
    assert time_us("2026-05-01") == time_us("2026-05-01T00:00:00Z") == time_us("2026-05-01T02:00:00+02:00")
    assert time_us("1970-01-01") == 0


@pytest.mark.parametrize(
    "moment",
    ["yesterday", "2026-13-01", "2026-01-01T10:00:00", "", "-5", "9" * 5000, "٣", datetime(2026, 1, 1), 1.5, True],
)
def test_what_is_no_moment_is_refused(past: Past, moment: object) -> None:
    with pytest.raises(og.BadRequest):
        past.graph.query(NAMES, as_of=moment)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("target", "error", "says"),
    [
        ("nowhere", og.NotFound, "neither a branch nor a commit nor a tag"),
        ("drafd", og.NotFound, "neither a branch nor a commit nor a tag"),
        ("01ARZ3NDEKTSV4RRFFQ69G5FAV", og.NotFound, "commit '01ARZ3NDEKTSV4RRFFQ69G5FAV' not found"),
        ("main~9", og.NotFound, "lies before the first commit"),
        ("main~" + "9" * 5000, og.BadRequest, "is not a target"),
        ("main~-1", og.BadRequest, "is not a target"),
        ("main~", og.BadRequest, "is not a target"),
        ("", og.BadRequest, "is not a target"),
        ("a\0b", og.BadRequest, "is not a target"),
        ("x" * 5000, og.BadRequest, "is not a target"),
        ("__schema_apply_lock__", og.BadRequest, "does not allow internal system ref"),
    ],
)
def test_what_names_nothing_is_a_typed_error(past: Past, target: str, error: type[og.OmniError], says: str) -> None:
    with pytest.raises(error, match=says):
        past.graph.query(NAMES, snapshot=target)


def test_a_name_that_is_nearly_right_is_suggested(past: Past) -> None:
    past.graph.tag_create("release-1")
    for wrong, right in (("drafd", "draft"), ("release1", "release-1")):
        with pytest.raises(og.NotFound) as found:
            past.graph.snapshot_of(wrong)
        assert right in found.value.hint


def test_two_moments_at_once_are_refused(past: Past) -> None:
    for both in ({"branch": "main", "snapshot": "main~1"}, {"snapshot": "main~1", "as_of": 1}):
        with pytest.raises(og.BadRequest, match="both named"):
            past.graph.query(NAMES, **both)  # type: ignore[arg-type]


def test_a_snapshot_in_hand_reads_the_same_whatever_its_branch_does(past: Past) -> None:
    held = past.graph.snapshot_of("draft")
    add(past.graph, "zoe", "draft")
    assert people(past.graph, snapshot=held) == past.shown["ed"]


def test_graph_versions_address_states_of_a_branch(past: Past) -> None:
    graph = past.graph
    for branch in ("main", "draft"):
        for commit in graph.list_commits(branch):
            found = graph.snapshot_at_version(commit.manifest_version, branch)
            assert found.graph_commit_id == commit.graph_commit_id
            assert found.tables == graph.snapshot_of(commit.graph_commit_id).tables
    for version in (0, graph.snapshot().version + 1):
        with pytest.raises(og.NotFound, match=f"graph version {version} not found"):
            graph.snapshot_at_version(version)


def test_a_version_of_a_branch_made_again_is_never_that_of_the_one_before(past: Past) -> None:
    graph = past.graph
    before = graph.snapshot_at_version(graph.snapshot("draft").version, "draft")
    assert before.graph_commit_id == past.ids["ed"]
    graph.branch_delete("draft")
    graph.branch_create("draft")
    for version in range(1, graph.snapshot("draft").version + 1):
        found = graph.snapshot_at_version(version, "draft")
        assert found.graph_commit_id not in (past.ids["di"], past.ids["ed"]), version
    for gone in (past.ids["ed"], "draft~9"):
        with pytest.raises(og.NotFound):
            graph.snapshot_of(gone)


def test_one_entity_is_read_at_a_version_without_the_rest(past: Past) -> None:
    graph = past.graph
    at = {name: graph.get_commit(commit).manifest_version for name, commit in past.ids.items()}
    assert graph.entity_at("node:Person", "cy", at["cy"]) == {"id": "cy", "name": "cy", "age": None}
    assert graph.entity_at("node:Person", "cy", at["bo"]) is None
    assert graph.entity_at("node:Person", "di", at["di"], "draft") == {"id": "di", "name": "di", "age": None}
    assert graph.entity_at("node:Nothing", "cy", at["cy"]) is None
    graph.mutate('query k() { insert Knows { from: "ana", to: "bo" } }')
    edge = only_edge(graph)
    assert graph.entity_at("edge:Knows", edge, graph.snapshot().version) == {"id": edge, "src": "ana", "dst": "bo"}
    assert graph.entity_at("edge:Knows", edge, at["cy"]) is None


def only_edge(graph: og.Graph) -> str:
    (found,) = graph.sql("SELECT id FROM edge_Knows").rows
    return str(found["id"])


def test_commits_are_listed_by_who_made_them_of_what_kind_and_when(past: Past) -> None:
    graph, ids = past.graph, past.ids
    bo = graph.get_commit(ids["bo"])

    def listed(**asked: object) -> list[str]:
        return [c.graph_commit_id for c in graph.list_commits(**asked)]  # type: ignore[arg-type]

    assert listed(actor="act-bo") == [ids["bo"]]
    assert listed(kind="mutation") == [ids["cy"], ids["bo"], ids["ana"]]
    assert listed(kind="mutation", limit=2) == [ids["cy"], ids["bo"]]
    assert listed(since=bo.created_at) == [ids["cy"], ids["bo"]]
    assert listed(since=bo.created_at, until=iso_us(bo.created_at)) == [ids["bo"]]
    assert listed(actor="act-bo", kind="load") == []
    assert listed(branch="draft", kind="mutation") == [ids["ed"], ids["di"], ids["bo"], ids["ana"]]
    assert listed(limit=0) == []
    with pytest.raises(og.BadRequest, match="limit"):
        listed(limit=-1)


def test_a_commit_is_got_by_its_id_wherever_it_was_made(past: Past) -> None:
    found = past.graph.get_commit(past.ids["ed"])
    assert (found.manifest_branch, found.parent_commit_id) == ("draft", past.ids["di"])
    with pytest.raises(og.NotFound, match="commit 'X' not found"):
        past.graph.get_commit("X")
