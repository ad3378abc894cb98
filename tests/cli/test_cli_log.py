"""`omnigraph log`: history as text, drawn, in colour, as JSON."""

from __future__ import annotations

import re

import pytest

pytestmark = pytest.mark.slow

AGE = re.compile(r"\d+[smhd] ago")


@pytest.fixture
def forked(graph, add_people):
    """`draft` left main after its second write; both went on."""
    graph.branch_create("draft")
    graph.sync_branch("draft")
    add_people(graph, "dan")
    graph.sync_branch("main")
    add_people(graph, "eve")
    graph.tag_create("v1", "main~2")
    return graph


def plain(lines):
    return [AGE.sub("AGE", line) for line in lines]


def test_log_tells_each_commit_with_its_labels_and_whole_message(cli, forked):
    commits = forked.list_commits()
    told = plain(cli("log", "-s", "library").lines)
    assert told[0] == f"{commits[0].graph_commit_id} (main)"
    assert told[1].startswith("load, AGE, 2")
    assert told[2:6] == [
        "",
        commits[1].graph_commit_id,
        told[4],
        "    one more",
    ]
    assert told[6] == "    and why"
    assert f"{commits[2].graph_commit_id} (tag: v1)" in told
    assert any(line.startswith("load by act-ana, AGE") for line in told)
    assert "draft" not in "".join(told)


def test_the_drawing_shows_both_branches_and_where_they_forked(cli, forked):
    e, c, b, a = (commit.graph_commit_id for commit in forked.list_commits())
    d = forked.head_commit_id_for_branch("draft")
    assert plain(cli("log", "--graph", "-s", "library").lines) == [
        f"● {e} (main) load, AGE",
        f"│ ● {d} (draft) load, AGE",
        "├─╯",
        f"● {c} load, AGE: one more",
        f"● {b} (tag: v1) load by act-ana, AGE: first people",
        f"● {a} init, AGE",
    ]


def test_a_limit_cuts_the_drawing_and_says_so(cli, forked):
    done = cli("log", "--graph", "--limit", "2", "-s", "library")
    assert [line[:3].rstrip() for line in done.lines] == ["● " + done.lines[0][2], "│ ●"]
    assert done.err == "3 older commits are not shown\n"
    assert len(cli("log", "--limit", "1", "-s", "library", "-q").lines) == 3


def test_a_branch_is_drawn_alone_if_it_is_named(cli, forked):
    told = cli("log", "--graph", "--branch", "main", "-s", "library").lines
    assert [line[0] for line in told] == ["●"] * 4


def test_a_terminal_gets_colours_and_no_line_is_wrapped(cli, forked, add_people):
    forked.mutate('query m() { insert Person { name: "zed" } }', message="long " * 100)
    done = cli("log", "--graph", "-s", "library", terminal=True)
    assert "\x1b[" in done.out
    bare = [re.sub(r"\x1b\[[0-9;]*m", "", line) for line in done.lines]
    assert len(bare) == 7
    assert max(map(len, bare)) <= 120
    assert bare[0].endswith("…")
    assert "\x1b[" not in cli("log", "--graph", "-s", "library").out


def test_what_people_wrote_cannot_move_the_cursor(cli, graph):
    graph.mutate('query m() { insert Person { name: "zed" } }', message="a\x1b[2Jb\rc", actor="x\x1b[1m")
    for option in ((), ("--graph",)):
        assert "\x1b" not in cli("log", *option, "-s", "library").out


def test_json_has_labels_and_both_parents(cli, forked):
    body = cli("log", "--graph", "-s", "library", "--json").json["commits"]
    assert len(body) == 5
    assert (body[0]["branches"], body[0]["tags"]) == (["main"], [])
    assert [c["tags"] for c in body] == [[], [], [], ["v1"], []]
    assert {"parent_commit_id", "merged_parent_commit_id", "message", "kind", "actor_id"} <= set(body[0])
    assert len(cli("log", "-s", "library", "--json", "--limit", "2").json["commits"]) == 2


def test_log_of_a_branch_that_is_not_there_is_a_user_error(cli, graph):
    for option in ((), ("--graph",)):
        done = cli("log", "--branch", "nope", *option, "-s", "library")
        assert (done.code, done.out) == (1, "")
        assert "branch 'nope' not found" in done.err
