"""`omnigraph clone` as a user types it."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.base import failpoints

pytestmark = pytest.mark.slow


@pytest.fixture
def branched(cli, graph):
    """A graph with a branch that has a table of its own."""
    assert cli("branch", "create", "draft", "-s", "library").code == 0
    added = 'query add() { insert Person { name: "draft-only" } }'
    assert cli("mutate", "-s", "library", "--branch", "draft", "-e", added).code == 0
    yield graph
    failpoints.disarm_all()


def test_it_says_what_was_copied_and_how_many_branches(cli, branched):
    done = cli("clone", "library", "copy")
    assert (done.code, done.out) == (0, "cloned library to copy: 2 branches\n")
    assert "omnigraph clone → copy" in done.err
    assert cli("branch", "list", "-s", "copy").lines == cli("branch", "list", "-s", "library").lines
    names = "query all() { match { $p: Person } return { $p.name } }"
    for branch in ("main", "draft"):
        asked = ("query", "--branch", branch, "-e", names, "--format", "csv")
        assert cli(*asked, "-s", "copy").out == cli(*asked, "-s", "library").out


def test_json_tells_the_heads_of_the_branches(cli, branched):
    told = cli("clone", "library", "copy", "--json").json
    assert told["source"] == str(Path("library").absolute())
    assert told["target"] == str(Path("copy").absolute())
    assert [b["branch"] for b in told["branches"]] == ["main", "draft"]
    heads = {b["branch"]: b for b in told["branches"]}
    assert heads["main"]["head"] == heads["main"]["source_head"] == branched.head_commit_id_for_branch("main")
    assert heads["draft"]["source_head"] == branched.head_commit_id_for_branch("draft")
    assert heads["draft"]["head"] != heads["draft"]["source_head"]
    assert (told["resumed"], told["findings"]) == (False, [])
    assert told["files"] > 0 < told["bytes_copied"]


def test_only_one_branch(cli, branched):
    assert cli("branch", "create", "other", "-s", "library").code == 0
    assert cli("clone", "library", "copy", "--branch", "draft").lines == ["cloned library to copy: 2 branches"]
    assert cli("clone", "library", "bare", "-b", "main").lines == ["cloned library to bare: 1 branches"]
    assert cli("clone", "library", "whole", "--all").lines == ["cloned library to whole: 3 branches"]


def test_branch_and_all_are_not_given_together(cli, branched):
    assert cli("clone", "library", "copy", "--branch", "draft", "--all").code == 2


@pytest.mark.parametrize("arguments", [(), ("library",)])
def test_both_places_are_needed(cli, graph, arguments):
    assert cli("clone", *arguments).code == 2


@pytest.mark.parametrize(
    ("source", "target", "code", "told"),
    [
        ("nowhere", "copy", 1, "there is no graph at"),
        ("library", "library", 1, "is the graph itself"),
        ("library", "./library/../library", 1, "is the graph itself"),
        ("library", "library/copy", 1, "lies inside the graph"),
        ("library", ".", 1, "lies inside"),
        ("library", "full", 3, "is not empty: it has note.txt"),
        ("library", "note.txt", 1, "is a file, not a directory"),
        ("library", "http://127.0.0.1:1/graph", 1, "a directory, file:// or s3://"),
        ("library", "ftp://host/graph", 1, "unsupported URI scheme"),
    ],
)
def test_a_place_that_will_not_do_is_refused_and_nothing_is_made(cli, graph, source, target, code, told):
    Path("full").mkdir()
    Path("full/note.txt").write_text("mine")
    Path("note.txt").write_text("mine")
    before = sorted(str(path) for path in Path().rglob("*"))
    done = cli("clone", source, target)
    assert done.code == code
    assert told in done.err
    assert "hint: " in done.err
    assert "Traceback" not in done.err
    assert sorted(str(path) for path in Path().rglob("*")) == before


def test_an_unknown_branch_is_refused_before_anything_is_made(cli, graph):
    done = cli("clone", "library", "copy", "--branch", "nobody")
    assert done.code == 1
    assert "branch 'nobody' not found" in done.err
    assert not Path("copy").exists()


def test_a_graph_is_never_written_over(cli, branched):
    assert cli("clone", "library", "copy").code == 0
    done = cli("clone", "library", "copy")
    assert done.code == 3
    assert "is a graph already" in done.err


def test_an_unfinished_copy_says_what_to_do(cli, branched):
    failpoints.arm("clone.copied", failpoints.fail)
    assert cli("clone", "library", "copy").code == 70
    done = cli("snapshot", "copy")
    assert done.code == 3
    assert "is an unfinished clone" in done.err
    assert "run the same omnigraph clone again" in done.err
    assert "unfinished clone" in cli("init", "copy", "--schema", "library/_schema.pg", "--force").err
    assert cli("clone", "library", "copy", "--json").json["resumed"] is True
    assert cli("snapshot", "copy").code == 0


def test_a_moved_graph_is_brought_back(cli, branched):
    Path("library").rename("archive")
    refused = cli("snapshot", "archive", "--branch", "draft")
    assert refused.code == 3
    assert "run omnigraph clone" in refused.err
    assert cli("clone", "archive", "library").lines == ["cloned archive to library: 2 branches"]
    assert cli("snapshot", "library", "--branch", "draft").code == 0


def test_names_of_the_settings_file_stand_for_graphs(cli, branched):
    Path("omnigraph.yaml").write_text("graphs:\n  books: {uri: library}\n  spare: {uri: copy}\n")
    assert cli("clone", "books", "spare").lines == ["cloned library to copy: 2 branches"]


def test_help_shows_examples(cli):
    done = cli("clone", "--help")
    assert done.code == 0
    assert "omnigraph clone ./library s3://bucket/library" in done.out


def test_quiet_prints_the_result_alone(cli, branched):
    done = cli("clone", "library", "copy", "--quiet")
    assert (done.out, done.err) == ("cloned library to copy: 2 branches\n", "")


def test_a_bar_on_a_terminal_does_not_reach_the_result(cli, branched):
    assert cli("clone", "library", "copy", terminal=True).out.count("cloned library to copy") == 1
