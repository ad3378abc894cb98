"""`omnigraph commit list` and `commit show`."""

from __future__ import annotations

import pytest

from omnigraph.base.clock import iso_us

pytestmark = pytest.mark.slow


def test_commits_are_listed_newest_first_with_the_first_line_of_their_message(cli, graph):
    newest, second, first = (c.graph_commit_id for c in graph.list_commits())
    assert cli("commit", "list", "--store", "library").lines == [
        f"{newest} branch=main version=3 kind=load actor=-  one more",
        f"{second} branch=main version=2 kind=load actor=act-ana  first people",
        f"{first} branch=main version=1 kind=init actor=-",
    ]


def test_limit_keeps_the_newest(cli, graph):
    done = cli("commit", "list", "-s", "library", "--limit", "1")
    assert [line.split()[0] for line in done.lines] == [graph.head_commit_id_for_branch()]


@pytest.mark.parametrize(
    ("filters", "kept"),
    [
        (["actor=act-ana"], [1]),
        (["actor="], [0, 2]),
        (["kind=load"], [0, 1]),
        (["kind=load", "actor=act-ana"], [1]),
        (["kind=load", "kind=init"], []),
        (["since=2001-01-01"], [0, 1, 2]),
        (["until=2001-01-01"], []),
        (["since=@1"], [0, 1]),
        (["until=@1"], [1, 2]),
        (["since=@1", "until=@1"], [1]),
    ],
)
def test_filters_conjoin(cli, graph, filters, kept):
    commits = graph.list_commits()
    words = [f"--filter={f.replace('@1', iso_us(commits[1].created_at))}" for f in filters]
    done = cli("commit", "list", "-s", "library", *words)
    assert done.code == 0
    assert [line.split()[0] for line in done.lines] == [commits[i].graph_commit_id for i in kept]


def test_when_no_commit_matches_stdout_is_empty_and_stderr_says_so(cli, graph):
    done = cli("commit", "list", "-s", "library", "--filter", "actor=nobody")
    assert (done.code, done.out, done.err) == (0, "", "no commit of branch 'main' matches\n")


@pytest.mark.parametrize("word", ["author=ann", "author", "=x"])
def test_an_unknown_filter_is_a_usage_error_that_lists_the_known_ones(cli, graph, word):
    done = cli("commit", "list", "-s", "library", "--filter", word)
    assert done.code == 2
    assert "actor, kind, since, until" in done.err


def test_a_filter_with_a_bad_time_is_a_user_error(cli, graph):
    assert cli("commit", "list", "-s", "library", "--filter", "since=soon").code == 1


@pytest.mark.parametrize("limit", ["0", "-1", "many"])
def test_a_bad_limit_is_a_usage_error(cli, graph, limit):
    assert cli("commit", "list", "-s", "library", "--limit", limit).code == 2


def test_commit_list_takes_no_positional_uri(cli, graph):
    assert cli("commit", "list", "library").code == 2


def test_commit_list_json_has_every_field_of_a_commit(cli, graph):
    body = cli("commit", "list", "-s", "library", "--json").json["commits"]
    assert [c["graph_commit_id"] for c in body] == [c.graph_commit_id for c in graph.list_commits()]
    newest = graph.list_commits()[0]
    assert body[0] == {
        "graph_commit_id": newest.graph_commit_id,
        "manifest_branch": None,
        "manifest_version": 3,
        "parent_commit_id": newest.parent_commit_id,
        "merged_parent_commit_id": None,
        "actor_id": None,
        "created_at": newest.created_at,
        "kind": "load",
        "message": "one more\nand why",
        "counts": {"node:Person": {"inserts": 1, "updates": 0, "deletes": 0}},
        "metadata": {"source": "x"},
        "operation_id": newest.operation_id,
    }


def test_commit_show_prints_what_is_known_and_leaves_out_what_is_not(cli, graph):
    newest = graph.list_commits()[0]
    done = cli("commit", "show", newest.graph_commit_id, "-s", "library")
    assert done.lines == [
        f"graph_commit_id: {newest.graph_commit_id}",
        "branch: main",
        "version: 3",
        f"parent_commit_id: {newest.parent_commit_id}",
        "kind: load",
        f"created_at: {iso_us(newest.created_at)}",
        f"operation_id: {newest.operation_id}",
        "message: one more",
        "  and why",
        "node:Person: inserts=1 updates=0 deletes=0",
        'metadata: {"source":"x"}',
    ]


def test_commit_show_json_is_the_commit(cli, graph):
    second = graph.list_commits()[1]
    body = cli("commit", "show", second.graph_commit_id, "-s", "library", "--json").json
    assert (body["actor_id"], body["message"]) == ("act-ana", "first people")
    assert "recovery" not in body


def test_a_commit_that_does_not_exist_is_not_found(cli, graph):
    done = cli("commit", "show", "01KBXJ7Q3WZ5T9N8M4R2C6D0EF", "-s", "library", "--format", "json")
    assert done.code == 1
    assert done.json == {"error": "commit '01KBXJ7Q3WZ5T9N8M4R2C6D0EF' not found", "code": "not_found"}


def test_a_message_cannot_move_the_cursor_or_colour_the_terminal(cli, graph):
    import omnigraph as og

    graph.write({"node:Person": og.Delete(["ann"])}, message="\x1b[2Jgone\rfake\nsecond \x07", actor="a\x1bb")
    listed = cli("commit", "list", "-s", "library", "--limit", "1").out
    shown = cli("commit", "show", graph.head_commit_id_for_branch(), "-s", "library").out
    for text in (listed, shown):
        assert not set(text) & {"\x1b", "\r", "\x07"}
        assert "\\x1b[2Jgone\\rfake" in text
