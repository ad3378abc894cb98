"""`branch diff`, `commit changes`, `history` and `changes` as a user sees them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

import omnigraph as og
from conftest import Cli, people

pytestmark = pytest.mark.slow

STORE = ("--store", "library")


def write(graph: og.Graph, branch: str | None = None, **ages: int) -> str:
    rows = people(graph, *ages)
    rows = rows.set_column(
        rows.schema.get_field_index("age"), rows.schema.field("age"), pa.array(ages.values(), pa.int32())
    )
    return graph.write(
        {"node:Person": og.Upsert(rows)}, branch=branch, actor="act-ana", message="birthday"
    ).graph_commit_id


@pytest.fixture
def draft(graph: og.Graph) -> og.Graph:
    graph.branch_create("draft")
    write(graph, "draft", ann=32)
    graph.write({"node:Person": og.Delete(("bob",))}, branch="draft")
    write(graph, "draft", dan=4)
    return graph


def test_a_diff_shows_what_came_and_what_went(cli: Cli, draft: og.Graph) -> None:
    done = cli("branch", "diff", "main", "draft", *STORE)
    assert (done.code, done.err) == (0, "")
    assert done.lines == [
        "~ node:Person 'ann'",
        "    - age: null",
        "    + age: 32",
        "- node:Person 'bob'",
        "    - name: bob",
        "+ node:Person 'dan'",
        "    + age: 4",
        "    + name: dan",
        "inserts=1 updates=1 deletes=1 in Person",
    ]


def test_a_diff_is_in_colour_on_a_terminal_only(cli: Cli, draft: og.Graph) -> None:
    plain = cli("branch", "diff", "main", "draft", *STORE).out
    drawn = cli("branch", "diff", "main", "draft", *STORE, terminal=True).out
    assert "\x1b[" not in plain
    assert "\x1b[32m    + age: 32" in drawn
    assert "\x1b[31m    - age: null" in drawn


def test_stats_are_only_the_counts_of_each_table(cli: Cli, draft: og.Graph) -> None:
    assert cli("branch", "diff", "main", "draft", "--stats", *STORE).lines == [
        "node:Person: inserts=1 updates=1 deletes=1"
    ]
    body = cli("branch", "diff", "main", "draft", "--stats", *STORE, "--json").json
    assert "changes" not in body
    assert body["tables"] == [{"table_key": "node:Person", "inserts": 1, "updates": 1, "deletes": 1}]


def test_a_diff_for_programs_has_the_members_it_promises(cli: Cli, draft: og.Graph) -> None:
    body = cli("branch", "diff", "main", "draft", "--op", "update", *STORE, "--json").json
    assert sorted(body) == ["branch", "changes", "from_version", "stats", "to_version"]
    assert body["changes"] == [
        {"kind": "node", "table_key": "node:Person", "type_name": "Person", "id": "ann", "op": "update"}
    ]
    assert body["stats"] == {"inserts": 0, "updates": 1, "deletes": 0, "types_affected": ["Person"]}


def test_targets_that_are_the_same_have_no_changes(cli: Cli, draft: og.Graph) -> None:
    assert cli("branch", "diff", "main", "main", *STORE).lines == ["(no changes)"]
    assert cli("branch", "diff", "main", "main", "--stats", *STORE).lines == ["(no changes)"]


def test_long_values_are_shown_where_they_differ(cli: Cli, tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "library"), "node Note { name: String @key body: String }")
    for end in ("old end", "new end"):
        rows = {"id": ["a"], "name": ["a"], "body": ["same words " * 50 + end]}
        graph.write({"node:Note": og.Upsert(pa.table(rows))})
    lines = cli("branch", "diff", "main~1", "main", *STORE).lines
    assert lines[1].endswith("words old end")
    assert lines[2].endswith("words new end")
    assert all(len(line) < 100 for line in lines)


def test_what_is_stored_cannot_colour_or_move_the_terminal(cli: Cli, tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "library"), "node Note { name: String @key body: String }")
    evil = "\x1b[31mred\nnext\r"
    graph.write({"node:Note": og.Append(pa.table({"id": [evil], "name": [evil], "body": [evil]}))})
    for done in (cli("branch", "diff", "main~1", "main", *STORE), cli("history", "Note", evil, *STORE)):
        assert done.code == 0
        assert "\x1b" not in done.out
        assert "\r" not in done.out


def test_the_changes_of_a_commit_have_both_images(cli: Cli, graph: og.Graph) -> None:
    commit = write(graph, ann=32)
    done = cli("commit", "changes", commit, *STORE)
    assert done.lines[0] == f"commit {commit}"
    assert done.lines[1].startswith("load by act-ana, ")
    assert done.lines[2:6] == ["    birthday", "~ node:Person 'ann'", "    - age: null", "    + age: 32"]
    (change,) = cli("commit", "changes", commit, *STORE, "--json").json["changes"]
    assert change["before"] == {"properties": {"age": None, "name": "ann"}}
    assert change["after"] == {"properties": {"age": 32, "name": "ann"}}
    assert sorted(change["type"]) == ["id", "name"]


def test_more_changes_than_a_page_holds_are_asked_for_by_their_token(cli: Cli, graph: og.Graph) -> None:
    commit = write(graph, x=1, y=2, z=3)
    done = cli("commit", "changes", commit, "--limit", "2", *STORE, "--json")
    assert [change["id"] for change in done.json["changes"]] == ["x", "y"]
    token = done.json["next_page_token"]
    rest = cli("commit", "changes", commit, "--page-token", token, *STORE, "--json").json
    assert [change["id"] for change in rest["changes"]] == ["z"]
    assert f"--page-token {token}" in cli("commit", "changes", commit, "--limit", "2", *STORE).err


def test_a_commit_that_cannot_be_told_as_changes_says_why(cli: Cli, graph: og.Graph) -> None:
    first = graph.list_commits()[-1].graph_commit_id
    done = cli("commit", "changes", first, *STORE, "--json")
    assert done.code == 3
    assert done.json["code"] == "conflict"
    assert done.json["change_diff_refusal"] == {"reason": "parentless_commit", "graph_commit_id": first}


def test_a_history_names_the_commits_newest_first(cli: Cli, graph: og.Graph) -> None:
    commit = write(graph, ann=32)
    done = cli("history", "Person", "ann", *STORE)
    assert done.lines[0] == f"commit {commit}"
    assert [line for line in done.lines if line in ("~ update", "+ insert")] == ["~ update", "+ insert"]
    body = cli("history", "node:Person", "ann", "--limit", "1", *STORE, "--json").json
    assert [past["op"] for past in body["history"]] == ["update"]


def test_an_entity_nobody_ever_stored_is_not_found(cli: Cli, graph: og.Graph) -> None:
    done = cli("history", "Person", "nobody", *STORE)
    assert (done.code, done.out) == (1, "")
    assert "never had an id 'nobody'" in done.err


def test_a_poll_goes_on_from_its_cursor(cli: Cli, graph: og.Graph) -> None:
    cursor = cli("changes", "poll", *STORE, "--json").json["cursor"]
    write(graph, eve=1)
    page = cli("changes", "poll", "--cursor", cursor, *STORE, "--json").json
    assert [[c["id"] for c in block["changes"]] for block in page["blocks"]] == [["eve"]]
    assert page["caught_up"] is True
    text = cli("changes", "poll", "--cursor", cursor, *STORE)
    assert "+ node:Person 'eve'" in text.lines
    assert text.lines[-1] == "caught_up: yes"


def test_a_cursor_that_does_not_fit_is_refused(cli: Cli, graph: og.Graph) -> None:
    done = cli("changes", "poll", "--cursor", "nonsense", *STORE)
    assert done.code == 1
    assert "change cursor rejected: " in done.err
    assert cli("changes", "poll", "--cursor", "x", "--start", "now", *STORE).code == 2


def test_a_cursor_of_another_branch_or_filter_is_refused_with_what_fits_it(cli: Cli, graph: og.Graph) -> None:
    graph.branch_create("draft")
    cursor = cli("changes", "poll", *STORE, "--json").json["cursor"]
    assert (
        "hint: Poll that branch: --branch main."
        in cli("changes", "poll", "--cursor", cursor, "--branch", "draft", *STORE).err
    )
    filtered = cli("changes", "poll", "--cursor", cursor, "--type", "Person", *STORE)
    assert "hint: Give the same --kind, --type and --op" in filtered.err


def test_a_filtered_poll_leaves_out_commits_in_which_nothing_was_found(cli: Cli, graph: og.Graph) -> None:
    whole = cli("changes", "poll", "--start", "beginning", "--type", "Person", *STORE).lines
    assert sum(line.startswith("commit ") for line in whole) == 2
    none = cli("changes", "poll", "--start", "beginning", "--type", "Book", *STORE).lines
    assert [line.split(":")[0] for line in none] == ["cursor", "caught_up"]
    body = cli("changes", "poll", "--start", "beginning", "--type", "Book", *STORE, "--json").json
    assert len(body["blocks"]) == 2


def test_reclaimed_history_is_told_with_the_first_commit_that_is_gone(cli: Cli, graph: og.Graph) -> None:
    write(graph, eve=1)
    graph.cleanup(keep=1, confirm=True)
    done = cli("changes", "poll", "--start", "beginning", *STORE, "--json")
    assert (done.code, done.json["code"]) == (1, "change_feed_gap")
    assert done.json["first_unreadable_commit_id"] == graph.list_commits()[2].graph_commit_id


def test_a_baseline_is_whole_or_not_there(cli: Cli, graph: og.Graph, tmp_path: Path) -> None:
    done = cli("changes", "baseline", "--out", "base.jsonl", *STORE, "--json")
    lines = (tmp_path / "base.jsonl").read_bytes().splitlines()
    assert len(lines) == 4
    told = orjson.loads(lines[-1])["baseline"]
    assert done.json == {"out": "base.jsonl", "branch": "main", **told}
    assert told["snapshot_commit_id"] == graph.head_commit_id_for_branch()
    assert cli("changes", "baseline", "--out", "nowhere/base.jsonl", *STORE).code == 1
    assert cli("changes", "baseline", *STORE).code == 2
    assert sorted(path.name for path in tmp_path.glob("*.jsonl*")) == ["base.jsonl"]


def test_following_prints_what_comes_until_it_is_interrupted(graph: og.Graph, tmp_path: Path) -> None:
    words = ["changes", "poll", "--follow", "--interval", "50ms", "--json", *STORE, "--start", "beginning"]
    process = subprocess.Popen(
        [sys.executable, "-m", "omnigraph.cli.main", *words],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    assert process.stdout is not None
    first = orjson.loads(process.stdout.readline())
    assert [len(block["changes"]) for block in first["blocks"]] == [2, 1]
    commit = write(graph, eve=1)
    second = orjson.loads(process.stdout.readline())
    assert second["blocks"][0]["cause"]["graph_commit_id"] == commit
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert f"go on with --cursor {second['cursor']}" in err.decode()


@pytest.mark.parametrize(
    "words", [("branch", "diff"), ("commit", "changes"), ("history",), ("changes", "poll"), ("changes", "baseline")]
)
def test_help_shows_how_it_is_used(cli: Cli, words: tuple[str, ...]) -> None:
    done = cli(*words, "--help")
    assert done.code == 0
    assert "Examples:" in done.out
