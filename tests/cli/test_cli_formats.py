"""Output formats: what a person, a spreadsheet and a program get."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import orjson
import pyarrow as pa
import pytest

from omnigraph.cli.formats import Rows, cell, put_rows


def test_a_table_in_a_pipe_is_plain_text(cli, graph):
    lines = cli("snapshot", "library", "--format", "table").lines
    assert lines[0] == "3 rows from branch main via snapshot"
    assert [c.strip() for c in lines[1].split(" | ")] == [
        "table_key",
        "location",
        "table_version",
        "table_branch",
        "row_count",
    ]
    assert [c.strip() for c in lines[4].split(" | ")][2:] == ["3", "null", "3"]


def test_a_table_on_a_terminal_is_drawn_with_the_same_cells(cli, graph):
    drawn = cli("snapshot", "library", "--format", "table", terminal=True).out
    assert "│ node:Person │" in drawn
    assert drawn.startswith("3 rows from branch main via snapshot\n")


def test_on_a_narrow_terminal_cells_are_folded_and_nothing_is_lost(cli, graph, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    drawn = cli("commit", "list", "-s", "library", "--format", "table", terminal=True).out
    assert "…" not in drawn


def test_kv_numbers_its_rows(cli, graph):
    lines = cli("snapshot", "library", "--format", "kv", "--at", "main~0").lines
    assert lines[0] == f"3 rows from snapshot {graph.head_commit_id_for_branch()} via snapshot"
    assert lines[1:3] == ["row 1", "  table_key: edge:Wrote"]


def test_jsonl_starts_with_its_metadata(cli, graph):
    head, *rows = [orjson.loads(line) for line in cli("commit", "list", "-s", "library", "--format", "jsonl").lines]
    assert head == {"kind": "metadata", "query_name": "commit list", "target": {"branch": "main"}, "row_count": 3}
    assert [row["message"] for row in rows] == ["one more\nand why", "first people", None]


def test_csv_can_be_read_back(cli, graph):
    rows = list(csv.DictReader(io.StringIO(cli("commit", "list", "-s", "library", "--format", "csv").out)))
    assert [row["message"] for row in rows] == ["one more\nand why", "first people", ""]


def test_arrow_is_a_stream_with_typed_columns_also_when_all_values_are_null(cli, graph):
    table = pa.ipc.open_stream(cli("snapshot", "library", "--format", "arrow").payload).read_all()
    assert table.schema.field("table_branch").type == pa.string()
    assert table.schema.field("row_count").type == pa.uint64()
    assert table.column("row_count").to_pylist() == [0, 0, 3]


def test_arrow_is_not_written_to_a_terminal(cli, graph):
    done = cli("snapshot", "library", "--format", "arrow", terminal=True)
    assert (done.code, done.out) == (2, "")


def test_json_is_one_line_in_a_pipe_and_indented_on_a_terminal(cli, graph):
    assert len(cli("snapshot", "library", "--json").lines) == 1
    assert cli("snapshot", "library", "--json", terminal=True).out.startswith("{\n  ")


def test_json_and_format_together_are_a_usage_error(cli, graph):
    done = cli("snapshot", "library", "--json", "--format", "json")
    assert done.code == 2
    assert done.json["code"] == "bad_request"


def test_a_format_a_command_does_not_have_is_a_usage_error_that_lists_its_own(cli, graph):
    done = cli("commit", "list", "-s", "library", "--format", "arrow")
    assert done.code == 2
    assert "table, kv, csv, jsonl, json" in done.err


def test_the_settings_file_may_choose_the_format_and_the_line_overrules_it(cli, graph):
    Path("omnigraph.yaml").write_text("cli: {format: csv}")
    assert cli("snapshot", "library").lines[0].startswith("table_key,")
    assert cli("snapshot", "library", "--json").json["branch"] == "main"
    assert cli("status", "library").lines[0].startswith("graph: ")


def _printed(capsys: pytest.CaptureFixture[str], how: str, *rows: tuple[object, ...]) -> list[str]:
    put_rows(Rows("q", {"branch": "main"}, ("a", "b"), rows), how)
    return capsys.readouterr().out.splitlines()


def test_no_rows_are_said_to_be_none(capsys):
    assert _printed(capsys, "table") == ["0 rows from branch main via q", "(no rows)"]
    assert _printed(capsys, "kv") == ["0 rows from branch main via q", "(no rows)"]
    assert _printed(capsys, "csv") == ["a,b"]


def test_columns_are_at_least_8_and_at_most_80_wide(capsys):
    _, header, line = _printed(capsys, "table", ("x", "y" * 200))
    assert header == "a        | b"
    assert line == "x        | " + "y" * 79 + "…"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "null"),
        (True, "true"),
        ("a\nb\tc\x1b", "a\\nb\\tc\\x1b"),
        ([1, "x", None], '[1,"x",null]'),
        ("漢" * 60, "漢" * 39 + "…"),
        ("y" * 80, "y" * 80),
    ],
)
def test_cells_are_one_line(value, shown):
    assert cell(value) == shown


def test_csv_tells_null_from_the_empty_text_and_quotes_what_needs_it(capsys):
    assert _printed(capsys, "csv", (None, ""), ('say "hi"', "a,b"), ([1, 2], True)) == [
        "a,b",
        ',""',
        '"say ""hi""","a,b"',
        '"[1,2]",true',
    ]


def test_markup_in_cells_is_shown_as_it_is(cli, graph, add_people):
    import omnigraph as og

    graph.write({"node:Person": og.Delete(["ann"])}, message="[red]x[/red] :smile:")
    assert "[red]x[/red]" in cli("commit", "list", "-s", "library", "--format", "table", terminal=True).out
