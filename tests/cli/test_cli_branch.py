"""`omnigraph branch create|list|delete`."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.slow


def test_a_branch_is_created_listed_and_deleted(cli, graph):
    made = cli("branch", "create", "draft", "--store", "library")
    assert (made.code, made.lines) == (0, ["created branch draft from main"])
    assert made.err == "omnigraph branch create → library\n"
    assert cli("branch", "list", "--store", "library").lines == ["main", "draft"]
    gone = cli("branch", "delete", "draft", "--store", "library", "--quiet")
    assert (gone.code, gone.lines, gone.err) == (0, ["deleted branch draft"], "")
    assert cli("branch", "list", "--store", "library").lines == ["main"]


def test_a_branch_may_start_at_another_one(cli, graph):
    cli("branch", "create", "draft", "--store", "library")
    made = cli("branch", "create", "team/x", "--from", "draft", "--store", "library", "--json")
    assert (made.json["branch"], made.json["from"]) == ("team/x", "draft")
    assert made.json["graph_commit_id"] == graph.head_commit_id_for_branch()


def test_the_list_is_for_programs_too(cli, graph):
    cli("branch", "create", "draft", "--store", "library")
    body = cli("branch", "list", "--store", "library", "--json").json
    head = graph.head_commit_id_for_branch()
    assert [(b["branch"], b["graph_commit_id"]) for b in body["branches"]] == [("main", head), ("draft", head)]
    csv = cli("branch", "list", "--store", "library", "--format", "csv")
    assert csv.lines[0] == "branch,graph_commit_id,version"
    assert len(csv.lines) == 3


def test_refusals_have_their_exit_codes(cli, graph):
    cli("branch", "create", "draft", "--store", "library")
    cli("branch", "create", "child", "--from", "draft", "--store", "library")
    cases = {
        ("create", "draft"): (3, "already exists"),
        ("create", "main"): (1, "cannot create branch 'main'"),
        ("create", "draft/x"): (3, "path ancestors or descendants"),
        ("create", "x", "--from", "nowhere"): (1, "branch 'nowhere' not found"),
        ("delete", "nowhere"): (1, "branch 'nowhere' not found"),
        ("delete", "main"): (1, "cannot delete branch 'main'"),
        ("delete", "draft"): (3, "still depends on it"),
    }
    for words, (code, says) in cases.items():
        done = cli("branch", *words, "--store", "library")
        assert (done.code, says in done.err, "hint: " in done.err) == (code, True, True), done.err
