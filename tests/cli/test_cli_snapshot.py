"""`omnigraph snapshot`: targets and text; formats are in test_cli_formats."""

from __future__ import annotations

import pytest

from omnigraph.base.clock import iso_us
from omnigraph.manifest.branches import create_manifest_branch

pytestmark = pytest.mark.slow


def test_snapshot_shows_branch_version_and_one_line_per_table(cli, graph):
    done = cli("snapshot", "library")
    assert done.code == 0
    assert done.err == ""
    assert done.lines == [
        "branch: main",
        f"manifest_version: {graph.snapshot().version}",
        "edge:Wrote v1 branch=main rows=0",
        "node:Book v1 branch=main rows=0",
        "node:Person v3 branch=main rows=3",
    ]


def test_snapshot_json_is_the_body_of_the_http_interface(cli, graph):
    body = cli("snapshot", "library", "--json").json
    assert list(body) == ["branch", "manifest_version", "internal_schema_version", "tables"]
    assert (body["branch"], body["internal_schema_version"]) == ("main", 4)
    entry = graph.snapshot().tables["node:Person"]
    assert body["tables"][2] == {
        "table_key": "node:Person",
        "location": entry.location,
        "table_version": 3,
        "table_branch": None,
        "row_count": 3,
    }


def test_an_older_commit_can_be_named_by_steps_by_id_and_by_time(cli, graph):
    second = graph.list_commits()[1]
    moment = iso_us(second.created_at)
    for target in (
        ("--at", "main~1"),
        ("--at", second.graph_commit_id),
        ("--snapshot", second.graph_commit_id),
        ("--as-of", moment),
        ("--as-of", str(second.created_at)),
        ("--as-of", moment.replace("Z", "+00:00"), "--branch", "main"),
    ):
        done = cli("snapshot", "library", *target)
        assert done.code == 0, target
        assert done.lines[0] == f"snapshot: {second.graph_commit_id}"
        assert "node:Person v2 branch=main rows=2" in done.lines, target


def test_as_of_includes_the_moment_itself_and_nothing_later(cli, graph):
    newest, second, _ = graph.list_commits()
    at = cli("snapshot", "library", "--as-of", str(newest.created_at)).lines[0]
    before = cli("snapshot", "library", "--as-of", str(newest.created_at - 1)).lines[0]
    assert at == f"snapshot: {newest.graph_commit_id}"
    assert before == f"snapshot: {second.graph_commit_id}"


def test_as_of_before_the_first_commit_is_not_found(cli, graph):
    done = cli("snapshot", "library", "--as-of", "2001-01-01", "--json")
    assert done.code == 1
    assert done.json["code"] == "not_found"


def test_a_branch_is_read_by_name_and_commits_it_inherited_keep_their_branch(cli, graph, add_people):
    create_manifest_branch(graph.context.manifest, None, "draft")
    add_people(graph, "dan")
    assert "node:Person v3 branch=main rows=3" in cli("snapshot", "library", "--branch", "draft").lines
    assert "node:Person v4 branch=main rows=4" in cli("snapshot", "library").lines
    assert cli("snapshot", "library", "--branch", "draft", "--as-of", "2100-01-01").code == 0


@pytest.mark.parametrize(
    "target",
    [
        ("--snapshot", "X", "--at", "Y"),
        ("--at", "X", "--as-of", "2026-01-01"),
        ("--snapshot", "X", "--as-of", "2026-01-01"),
        ("--branch", "main", "--at", "main~1"),
        ("--branch", "main", "--snapshot", "X"),
    ],
)
def test_two_targets_are_a_usage_error(cli, graph, target):
    done = cli("snapshot", "library", *target)
    assert done.code == 2
    assert "cannot be given together" in done.err


@pytest.mark.parametrize(
    ("target", "said"),
    [
        (("--branch", "nope"), "branch 'nope' not found"),
        (("--at", "nope"), "neither a branch nor a commit"),
        (("--at", "main~99"), "before the first commit"),
        (("--snapshot", "main"), "commit 'main' not found"),
        (("--as-of", "yesterday"), "'yesterday' is not a time"),
        (("--as-of", "2026-13-01"), "is not a time"),
        (("--as-of", "2026-01-01T10:00:00"), "is not a time"),
    ],
)
def test_a_target_that_is_not_there_or_makes_no_sense_is_a_user_error(cli, graph, target, said):
    done = cli("snapshot", "library", *target)
    assert (done.code, done.out) == (1, "")
    assert said in done.err


def test_snapshot_leaves_the_graph_as_it_was(cli, graph, tmp_path):
    files = sorted(p for p in (tmp_path / "library").rglob("*"))
    cli("snapshot", "library")
    assert sorted(p for p in (tmp_path / "library").rglob("*")) == files
