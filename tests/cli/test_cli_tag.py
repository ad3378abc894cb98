"""`omnigraph tag …`, and tags as targets of reading commands."""

from __future__ import annotations

import pytest

from omnigraph.base.clock import iso_us

pytestmark = pytest.mark.slow


def test_a_tag_is_created_listed_read_and_deleted(cli, graph):
    newest, second, _ = graph.list_commits()
    made = cli("tag", "create", "v1", "--at", "main~1", "-s", "library", "-m", "first\nand more", "--as", "act-bo")
    assert (made.code, made.lines) == (0, [f"created tag v1 at {second.graph_commit_id}"])
    assert made.err.splitlines() == ["omnigraph tag create → library"]
    assert cli("tag", "create", "head", "-s", "library", "-q").lines == [
        f"created tag head at {newest.graph_commit_id}"
    ]
    assert cli("tag", "list", "-s", "library").lines == [
        f"head {newest.graph_commit_id} branch=main",
        f"v1 {second.graph_commit_id} branch=main  first",
    ]
    assert "node:Person v2 branch=main rows=2" in cli("snapshot", "library", "--at", "v1").lines
    gone = cli("tag", "delete", "v1", "-s", "library", "-q")
    assert (gone.code, gone.lines, gone.err) == (0, ["deleted tag v1"], "")
    assert cli("snapshot", "library", "--at", "v1").code == 1


def test_tags_as_json_and_rows(cli, graph):
    made = cli("tag", "create", "v1", "-s", "library", "--json", "-q").json
    (tag,) = cli("tag", "list", "-s", "library", "--json").json["tags"]
    assert made == {"uri": "library", **tag}
    assert list(tag) == ["name", "graph_commit_id", "branch", "actor_id", "message", "created_at"]
    assert cli("tag", "list", "-s", "library", "--format", "csv").lines == [
        "tag,graph_commit_id,branch,actor,created_at,message",
        f"v1,{tag['graph_commit_id']},main,,{iso_us(tag['created_at'])},",
    ]
    assert cli("tag", "delete", "v1", "-s", "library", "--json", "-q").json == {
        "uri": "library",
        "tag": "v1",
        "deleted": True,
    }
    empty = cli("tag", "list", "-s", "library")
    assert (empty.code, empty.out, empty.err) == (0, "", "no tags\n")


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("create", "v1"), 3, "tag 'v1' already exists at"),
        (("create", "draft"), 3, "branch 'draft' already exists"),
        (("create", "a b"), 1, "is not a tag name"),
        (("create", "v2", "--at", "nowhere"), 1, "neither a branch nor a commit nor a tag"),
        (("delete", "v9"), 1, "tag 'v9' not found"),
        (("create",), 2, "NAME"),
    ],
)
def test_what_is_wrong_with_a_tag_is_told_with_its_code(cli, graph, arguments, code, says):
    graph.branch_create("draft")
    graph.tag_create("v1")
    done = cli("tag", *arguments, "-s", "library")
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert [tag.name for tag in graph.tag_list()] == ["v1"]


def test_a_branch_that_a_tag_needs_is_not_deleted(cli, graph, add_people):
    graph.branch_create("draft")
    graph.sync_branch("draft")
    add_people(graph, "dan")
    graph.tag_create("v1", "draft")
    done = cli("branch", "delete", "draft", "-s", "library", "-q")
    assert done.code == 3
    assert "tag 'v1' still depends on it" in done.err


def test_every_reading_command_takes_a_tag_and_a_time(cli, graph):
    second = graph.list_commits()[1]
    graph.tag_create("v1", "main~1")
    text = "query q() { match { $p: Person } return { $p.name } order { $p.name asc } }"
    for target in (("--at", "v1"), ("--at", "v1~0"), ("--as-of", iso_us(second.created_at))):
        told = cli("query", "-e", text, "-s", "library", *target, "--json").json
        assert [row["p.name"] for row in told["rows"]] == ["ann", "bob"], target
        assert told["target"] == {"snapshot": second.graph_commit_id}
        asked = cli("sql", "SELECT count(*) AS n FROM node_Person", "-s", "library", *target, "--json").json
        assert asked["rows"] == [{"n": 2}]
        assert len(cli("export", "library", "--type", "Person", *target).lines) == 2
        assert cli("snapshot", "library", *target).lines[0] == f"snapshot: {second.graph_commit_id}"
        assert cli("query", "-e", text, "-s", "library", *target, "--explain").code == 0
