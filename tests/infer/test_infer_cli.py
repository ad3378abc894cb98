"""The command as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from omnigraph.cli.main import main


@pytest.fixture
def files(folder: Path) -> None:
    Path("people.csv").write_text("id,name,team\n1,ana,core\n2,bo,\n")
    Path("teams.csv").write_text("code,size\ncore,2\n")


def test_what_was_found_is_printed_as_a_short_table(files, capsys):
    assert main(["infer", "people.csv", "teams.csv", "--out", "draft"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "read 3 rows; wrote draft/schema.pg and draft/pipeline.yaml",
        "node People      2 properties  key people_id",
        "node Teams       2 properties  key code",
        "edge PeopleTeam  0 properties  People -> Teams",
        "a draft: read its comments before you use it",
    ]


def test_the_same_for_programs(files, capsys):
    assert main(["infer", "people.csv", "teams.csv", "--out", "draft", "--sample", "1", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["schema"], told["rows"], told["sample"]) == ("draft/schema.pg", 2, 1)
    assert [node["name"] for node in told["nodes"]] == ["People", "Teams"]
    assert [(edge["name"], edge["src"], edge["dst"]) for edge in told["edges"]] == [("PeopleTeam", "People", "Teams")]


def test_a_second_run_refuses_to_overwrite_with_a_hint(files, capsys):
    assert main(["infer", "people.csv"]) == 0
    before = Path("schema.pg").read_bytes()
    assert main(["infer", "teams.csv"]) == 1
    told = capsys.readouterr().err
    assert "error: './schema.pg' exists and is never overwritten" in told
    assert "hint: Move it away" in told
    assert Path("schema.pg").read_bytes() == before


@pytest.mark.parametrize(("line", "code"), [([], 2), (["x.csv", "--sample", "0"], 2), (["x.csv"], 1)])
def test_a_line_that_says_too_little_is_refused(folder, line, code, capsys):
    assert main(["infer", *line]) == code
    assert "Traceback" not in capsys.readouterr().err
