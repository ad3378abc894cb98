"""`omnigraph init`: what it makes, what it prints, what it refuses."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.commit.signals import deferred_signals


def test_init_prints_where_the_graph_is_and_announces_the_write_on_stderr(cli):
    done = cli("init", "./library", "--schema", "schema.pg")
    assert (done.code, done.out, done.err) == (0, "initialized ./library\n", "omnigraph init → ./library\n")
    assert og.Graph.open("library", "r").branch_list() == ["main"]


def test_quiet_init_says_nothing_on_stderr(cli):
    assert cli("init", "library", "--schema", "schema.pg", "--quiet").err == ""
    assert cli("-q", "init", "other", "--schema", "schema.pg").err == ""


def test_init_as_json_names_the_first_commit_and_the_tables(cli):
    body = cli("init", "library", "--schema", "schema.pg", "--json").json
    assert body["uri"] == "library"
    assert body["tables"] == ["edge:Wrote", "node:Book", "node:Person"]
    assert body["graph_commit_id"] == og.Graph.open("library", "r").head_commit_id_for_branch()


def test_init_takes_a_file_uri(cli, tmp_path):
    uri = (tmp_path / "with space").as_uri()
    assert cli("init", uri, "--schema", "schema.pg").out == f"initialized {uri}\n"
    assert (tmp_path / "with space" / "__manifest").is_dir()


def test_init_where_a_graph_is_already_is_a_conflict_and_changes_nothing(cli, graph):
    head = graph.head_commit_id_for_branch()
    done = cli("init", "library", "--schema", "schema.pg", "--force")
    assert done.code == 3
    assert "already initialized" in done.err
    assert og.Graph.open("library", "r").head_commit_id_for_branch() == head


def test_a_half_made_graph_is_named_by_every_command_and_replaced_by_force(cli, tmp_path):
    (tmp_path / "library").mkdir()
    (tmp_path / "library" / "_schema.pg").write_text("node Old { name: String }")
    for line in (["snapshot", "library"], ["init", "library", "--schema", "schema.pg"]):
        done = cli(*line)
        assert done.code == 3
        assert "interrupted" in done.err
        assert "--force" in done.err
    assert cli("init", "library", "--schema", "schema.pg", "--force").code == 0
    assert "node:Person v1" in cli("snapshot", "library").out


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("node Person {\n  name Strin\n}", "bad.pg:2:8:"),
        ("node Person {\n  name: Strin\n}", "bad.pg:2:9:"),
        ("node Person {", "bad.pg:1:"),
    ],
)
def test_a_broken_schema_is_refused_pointing_at_file_line_and_column(cli, source, place):
    Path("bad.pg").write_text(source)
    done = cli("init", "library", "--schema", "bad.pg")
    assert done.code == 1
    assert f"error: parse error: {place}" in done.err
    assert not Path("library").exists()


def test_a_broken_schema_as_json_gives_line_column_and_file(cli):
    Path("bad.pg").write_text("node Person {\n  name Strin\n}")
    done = cli("init", "library", "--schema", "bad.pg", "--json")
    assert {k: done.json[k] for k in ("code", "file", "line", "column")} == {
        "code": "bad_request",
        "file": "bad.pg",
        "line": 2,
        "column": 8,
    }
    assert "error: " in done.err


@pytest.mark.parametrize(
    ("path", "said"), [("none.pg", "not found"), (".", "Is a directory"), ("binary.pg", "is not UTF-8")]
)
def test_a_schema_file_that_cannot_be_read_is_named(cli, path, said):
    Path("binary.pg").write_bytes(b"node \xff\xfe")
    done = cli("init", "library", "--schema", path)
    assert done.code == 1
    assert f"schema file '{path}'" in done.err
    assert said in done.err
    assert not Path("library").exists()


def test_init_without_a_schema_is_a_usage_error(cli):
    done = cli("init", "library")
    assert done.code == 2
    assert "--schema" in done.err
    assert "omnigraph init --help" in done.err


def test_init_onto_a_file_is_refused(cli):
    done = cli("init", "schema.pg", "--schema", "schema.pg")
    assert done.code == 1
    assert "is a file, not a directory" in done.err


def test_an_annotation_that_looks_like_another_is_remarked(cli, tmp_path):
    (tmp_path / "near.pg").write_text('node P {\n  a: String @key\n  b: String @indexed @owner("ana") @index\n}\n')
    remarks = [line for line in cli("init", "near", "--schema", "near.pg").err.splitlines() if line.startswith("note")]
    assert remarks == ["note: near.pg:3:13: @indexed is kept and does nothing; did you mean @index?"]
    assert cli("init", "near2", "--schema", "near.pg", "-q").err == ""


def test_a_place_that_cannot_be_written_is_unavailable(cli):
    done = cli("init", "/proc/nowhere/library", "--schema", "schema.pg")
    assert done.code == 6
    assert done.err.splitlines()[-1].startswith(("error: ", "hint: "))


def test_ctrl_c_during_a_write_takes_effect_after_its_outcome_was_printed(cli, monkeypatch):
    real = og.Graph.init

    def interrupted(*given: Any, **options: Any) -> og.Graph:
        with deferred_signals():
            os.kill(os.getpid(), signal.SIGINT)
            return real(*given, **options)

    monkeypatch.setattr(og.Graph, "init", interrupted)
    done = cli("init", "library", "--schema", "schema.pg")
    assert (done.code, done.out) == (130, "initialized library\n")


def test_ctrl_c_during_a_write_that_fails_takes_effect_after_the_error_was_printed(cli, monkeypatch):
    def refused(*given: Any, **options: Any) -> og.Graph:
        with deferred_signals():
            os.kill(os.getpid(), signal.SIGINT)
            raise og.Conflict("somebody was first")

    monkeypatch.setattr(og.Graph, "init", refused)
    done = cli("init", "library", "--schema", "schema.pg")
    assert done.code == 130
    assert "error: somebody was first" in done.err
