"""`omnigraph branch merge|reset` and `omnigraph commit revert`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow


@pytest.fixture
def sides(cli, graph) -> Any:
    """ana is 32 on draft and 33 on main; draft has cy, too."""
    cli("branch", "create", "draft", "--store", "library")
    _mutate(cli, "main", 'insert Person { name: "ana", age: 31 } insert Person { name: "bo" }')
    cli("branch", "merge", "main", "--into", "draft", "--store", "library")
    _mutate(cli, "draft", 'update Person set { age: 32 } where name = "ana"')
    _mutate(cli, "draft", 'insert Person { name: "cy" }')
    _mutate(cli, "main", 'update Person set { age: 33 } where name = "ana"')
    return graph


def _mutate(cli, branch: str, body: str) -> str:
    done = cli("mutate", "-e", f"query q() {{ {body} }}", "--branch", branch, "--store", "library", "--json")
    assert done.code == 0, done.err
    return str(done.json["commit"])


def _merge(cli, *more: str) -> Any:
    return cli("branch", "merge", "draft", "--store", "library", *more)


def _newest(cli) -> str:
    return str(
        cli("commit", "list", "--store", "library", "--limit", "1", "--json").json["commits"][0]["graph_commit_id"]
    )


def _ages(cli, branch: str = "main") -> dict[str, int | None]:
    gq = "query q() { match { $p: Person } return { $p.name as name, $p.age as age } }"
    done = cli("query", "-e", gq, "--branch", branch, "--store", "library", "--json")
    assert done.code == 0, done.err
    return {row["name"]: row["age"] for row in done.json["rows"] if row["name"] in ("ana", "bo", "cy")}


def test_conflicts_are_one_line_each_and_exit_3(cli, sides):
    done = _merge(cli)
    assert (done.code, done.out) == (3, "")
    assert "error: merge conflicts: node:Person 'ana' (divergent_update)\n" in done.err
    assert "  node:Person 'ana' (divergent_update): divergent update for id 'ana'\n" in done.err
    assert "hint: Nothing was written." in done.err


def test_conflicts_for_programs(cli, sides):
    done = _merge(cli, "--json")
    told = {"table_key": "node:Person", "row_id": "ana", "kind": "divergent_update"}
    assert done.code == 3
    assert done.json == {
        "error": "merge conflicts: node:Person 'ana' (divergent_update)",
        "code": "conflict",
        "merge_conflicts": [{**told, "message": "divergent update for id 'ana'"}],
    }


def test_a_merge_prints_its_outcome_and_what_changed(cli, sides):
    done = _merge(cli, "--strategy", "theirs", "-m", "spring", "--as", "act-ana", "--delete-branch")
    assert done.code == 0
    assert done.lines == [
        "merged draft into main: merged",
        f"commit {_newest(cli)}",
        "node:Person  inserts=1 updates=1 deletes=0",
        "deleted branch draft",
    ]
    assert done.err == "omnigraph branch merge → library\n"
    assert _ages(cli) == {"ana": 32, "bo": None, "cy": None}
    newest = cli("commit", "list", "--store", "library", "--limit", "1").out
    assert "kind=merge actor=act-ana  spring" in newest


def test_a_source_that_stays_is_a_warning(cli, sides):
    cli("branch", "create", "child", "--from", "draft", "--store", "library")
    done = _merge(cli, "--strategy", "ours", "--delete-branch")
    assert (done.code, done.lines[0]) == (0, "merged draft into main: merged")
    assert "warning: branch draft was not deleted: " in done.err
    assert _merge(cli, "--delete-branch", "--json").json["branch_deleted"] is False


def test_a_dry_run_shows_what_would_happen(cli, sides):
    done = _merge(cli, "--dry-run")
    assert done.code == 3
    assert done.lines == [
        "would merge draft into main: 1 conflicts",
        "node:Person  inserts=1 updates=0 deletes=0",
        "+ node:Person 'cy'",
        "conflict node:Person 'ana' (divergent_update): divergent update for id 'ana'",
        "    age: base 31, ours 33, theirs 32",
    ]
    assert done.err == ""
    clean = _merge(cli, "--dry-run", "--strategy", "theirs", "--limit", "1")
    assert (clean.code, clean.lines) == (
        0,
        [
            "would merge draft into main: merged",
            "node:Person  inserts=1 updates=1 deletes=0",
            "~ node:Person 'ana'",
            "and 1 more changes",
            "resolved node:Person 'ana' (divergent_update): theirs",
            "    age: base 31, ours 33, theirs 32",
        ],
    )
    assert _ages(cli)["ana"] == 33


def test_a_dry_run_for_programs(cli, sides):
    told = _merge(cli, "--dry-run", "--json")
    assert told.code == 3
    assert (told.json["outcome"], told.json["would_commit"]) == ("merged", False)
    assert told.json["changes"] == [{"table_key": "node:Person", "id": "cy", "op": "insert"}]


def test_a_file_is_made_filled_in_and_merged(cli, sides):
    made = _merge(cli, "--dry-run", "--resolve", "choices.json")
    assert made.code == 3
    assert "wrote choices.json" in made.err
    path = Path("choices.json")
    told = json.loads(path.read_text())
    told["choices"][0]["choice"] = {"properties": {"name": "ana", "age": 40}}
    path.write_text(json.dumps(told))
    assert _merge(cli, "--dry-run", "--resolve", "choices.json").code == 0
    assert _merge(cli, "--resolve", "choices.json").lines[0] == "merged draft into main: merged"
    assert _ages(cli)["ana"] == 40
    late = _merge(cli, "--resolve", "choices.json")
    assert (late.code, late.lines) == (0, ["merged draft into main: already_up_to_date"])


def test_a_merge_is_undone(cli, sides):
    merged = _merge(cli, "--strategy", "theirs", "--json").json["graph_commit_id"]
    done = cli("commit", "revert", merged, "--store", "library", "-m", "not yet")
    assert done.code == 0, done.err
    assert done.lines[0].startswith(f"reverted {merged}: ")
    assert done.lines[1] == "node:Person  inserts=0 updates=1 deletes=1"
    assert _ages(cli) == {"ana": 33, "bo": None}
    back = cli("branch", "reset", "--to", merged, "--store", "library", "--json")
    assert (back.json["restored"], back.json["branch"]) == (merged, "main")
    assert _ages(cli)["ana"] == 32
    again = cli("branch", "reset", "--to", merged, "--store", "library")
    assert again.lines == [f"main has the content of {merged} already"]


def test_a_revert_with_nothing_left_to_undo_says_so(cli, sides):
    merged = _merge(cli, "--strategy", "theirs", "--json").json["graph_commit_id"]
    cli("commit", "revert", merged, "--store", "library")
    again = cli("commit", "revert", merged, "--store", "library")
    assert (again.code, again.lines) == (0, [f"reverted {merged}: {_newest(cli)}", "(no rows changed)"])


def test_a_dry_run_shows_a_deletion_and_what_the_other_side_did(cli, sides):
    _mutate(cli, "draft", 'delete Person where name = "bo"')
    _mutate(cli, "main", 'update Person set { age: 8 } where name = "bo"')
    lines = _merge(cli, "--dry-run").lines
    place = lines.index("conflict node:Person 'bo' (delete_vs_update): delete/update conflict for id 'bo'")
    assert lines[place + 1 :] == ["    theirs: deleted", "    age: base null, ours 8"]


def test_a_merge_without_conflicts_makes_no_file_to_fill_in(cli, sides):
    done = _merge(cli, "--dry-run", "--strategy", "ours", "--resolve", "choices.json")
    assert (done.code, Path("choices.json").exists()) == (0, True)
    _merge(cli, "--strategy", "ours")
    _mutate(cli, "draft", 'insert Person { name: "dee" }')
    clean = _merge(cli, "--dry-run", "--resolve", "other.json")
    assert (clean.code, clean.err) == (0, "no row needs a choice: other.json is not needed\n")
    assert not Path("other.json").exists()


def test_a_merge_commit_tells_how_conflicts_were_settled(cli, sides):
    _merge(cli, "--strategy", "theirs")
    shown = cli("commit", "show", "main", "--store", "library").lines
    assert f"graph_commit_id: {_newest(cli)}" == shown[0]
    assert "resolved node:Person 'ana' (divergent_update): theirs" in shown


def test_a_branch_is_reset(cli, sides):
    done = cli("branch", "reset", "--branch", "draft", "--to", "draft~2", "--store", "library")
    assert done.code == 0, done.err
    assert done.lines[0].startswith("reset draft to ")
    assert _ages(cli, "draft") == {"ana": 31, "bo": None}


def test_refusals_have_their_exit_codes(cli, sides):
    cases = {
        ("branch", "merge", "draft", "--into", "draft"): (1, "merge needs distinct source and target"),
        ("branch", "merge", "nowhere"): (1, "branch 'nowhere' not found"),
        ("branch", "merge", "draft", "--resolve", "none.json"): (1, "there is no resolution file 'none.json'"),
        ("branch", "merge", "draft", "--strategy", "mine"): (2, "mine"),
        ("commit", "revert", "01ARZ3NDEKTSV4RRFFQ69G5FAV"): (1, "not found"),
        ("branch", "reset", "--to", "01ARZ3NDEKTSV4RRFFQ69G5FAV"): (1, "not found"),
        ("branch", "reset"): (2, "--to"),
    }
    for words, (code, says) in cases.items():
        done = cli(*words, "--store", "library")
        assert (done.code, says in done.err) == (code, True), done.err


def test_a_bar_is_shown_on_a_terminal_only(cli, sides):
    assert _merge(cli, "--strategy", "ours", "--quiet").err == ""
