"""Exit codes and how errors are told."""

from __future__ import annotations

import pickle
import traceback
from pathlib import Path

import lance
import orjson
import pytest

import omnigraph as og
from omnigraph.base.errors import Kind
from omnigraph.cli.failures import BODY_CODES, EXIT_CODES, failure_of

ERRORS = [
    (og.BadRequest("no"), 1, {"code": "bad_request"}),
    (og.ParseError("no", line=3, column=2, file="q.gq"), 1, {"code": "bad_request", "line": 3, "column": 2}),
    (og.NotFound("no"), 1, {"code": "not_found"}),
    (og.Reclaimed("node:A", 3), 1, {"code": "reclaimed", "table_key": "node:A", "version": 3}),
    (og.PolicyDenied("no"), 1, {"code": "forbidden"}),
    (og.Conflict("no"), 3, {"code": "conflict"}),
    (
        og.ExpectedVersionMismatch(table_key="node:A", expected=1, actual=2),
        3,
        {"code": "conflict", "manifest_conflict": {"table_key": "node:A", "expected": 1, "actual": 2}},
    ),
    (
        og.KeyConflict(table_key="node:A", ids=("x", "y"), count=2),
        3,
        {"code": "conflict", "key_conflict": {"table_key": "node:A", "id": "x", "ids": ["x", "y"], "count": 2}},
    ),
    (
        og.GraphMoved(branch="b", recorded_base="/a", root="/c"),
        3,
        {"code": "conflict", "graph_moved": {"branch": "b", "recorded_base": "/a", "root": "/c"}},
    ),
    (og.Drift("node:A", "main", 1, 2), 3, {"code": "drift", "pinned": 1, "head": 2}),
    (
        og.PreconditionFailed("X", "Y"),
        4,
        {"code": "precondition_failed", "precondition_failure": {"expected": "X", "actual": "Y"}},
    ),
    (og.RecoveryRequired("01OP"), 5, {"code": "recovery_required", "operation_id": "01OP"}),
    (og.Unavailable("no", what="disk"), 6, {"code": "unavailable", "what": "disk"}),
    (og.LimitExceeded("no", limit="rows", value=9), 7, {"code": "limit_exceeded", "limit": "rows", "value": 9}),
]


def _raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def fail(*_: object, **__: object) -> og.Graph:
        raise error

    monkeypatch.setattr(og.Graph, "open", fail)


@pytest.mark.parametrize(("error", "code", "members"), ERRORS, ids=lambda e: type(e).__name__)
def test_every_error_has_its_exit_code_and_the_body_of_the_http_interface(cli, monkeypatch, error, code, members):
    _raising(monkeypatch, error)
    done = cli("status", "x", "--json")
    assert done.code == code
    assert done.json["error"] == str(error)
    assert {k: done.json[k] for k in members} == members
    assert done.err.splitlines()[0] == f"error: {error}"
    assert cli("status", "x").out == ""


def test_every_kind_of_error_has_an_exit_code_and_a_body_code():
    assert set(EXIT_CODES) == set(BODY_CODES) == set(Kind)


def test_the_hint_says_what_to_do_now(cli):
    assert cli("status", "nowhere").err.splitlines()[1] == "hint: Create one with omnigraph init."


@pytest.mark.parametrize("error", [ValueError("boom\nsecond line"), KeyError(), og.InternalError("lost count")])
def test_a_bug_is_one_line_with_an_error_id_and_exit_code_70(cli, monkeypatch, error):
    _raising(monkeypatch, error)
    done = cli("status", "x", "--json")
    assert done.code == 70
    [line] = done.err.splitlines()
    assert line.startswith(f"error: internal error {done.json['error_id']}: {type(error).__name__}")
    assert "--debug" in line
    assert done.json["code"] == "internal"


def test_a_panic_of_a_native_library_is_a_bug_too(cli, monkeypatch):
    class PanicException(BaseException):
        pass

    _raising(monkeypatch, PanicException("index out of bounds"))
    assert cli("status", "x").code == 70


@pytest.mark.parametrize("line", [("--debug", "status", "x"), ("status", "x", "--debug")])
def test_debug_shows_the_traceback_before_the_error(cli, monkeypatch, line):
    _raising(monkeypatch, ValueError("boom"))
    done = cli(*line)
    assert done.code == 70
    assert done.err.startswith("Traceback (most recent call last):\n")
    assert done.err.splitlines()[-1].startswith("error: internal error")


def test_a_full_disk_met_outside_a_write_is_unavailable(cli, monkeypatch):
    _raising(monkeypatch, OSError(28, "No space left on device"))
    assert cli("status", "x").code == 6


def test_ctrl_c_while_reading_ends_with_130(cli, monkeypatch):
    _raising(monkeypatch, KeyboardInterrupt())
    done = cli("status", "x")
    assert (done.code, done.out, done.err) == (130, "", "interrupted\n")


def test_a_newer_on_disk_version_is_refused_by_every_command(cli, graph):
    key = "omnigraph:internal_schema_version"
    lance.dataset("library/__manifest").update_schema_metadata({key: "5"})
    for line in (["snapshot", "library"], ["status", "library"], ["commit", "list", "-s", "library"]):
        done = cli(*line)
        assert done.code == 3
        assert "internal schema version 5 is newer than supported 4; upgrade omnigraph first" in done.err


@pytest.mark.parametrize(
    "line", [["frob"], ["snapshot", "--frob"], ["commit", "frob"], ["commit", "show"], ["status", "a", "b"]]
)
def test_words_that_make_no_command_are_usage_errors_with_a_way_out(cli, line):
    done = cli(*line)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("error: ")
    assert "--help" in done.err.splitlines()[1]


@pytest.mark.parametrize(
    ("word", "place"), [("merge", "branch merge"), ("diff", "branch diff"), ("revert", "commit revert")]
)
def test_a_command_of_a_group_is_found_from_outside(cli, word, place):
    assert f"hint: Did you mean omnigraph {place}" in cli(word, "draft").err


def test_a_misspelt_command_gets_a_suggestion(cli):
    assert "Did you mean 'snapshot'?" in cli("snapshto").err


def test_an_option_that_is_missing_is_told_in_one_line_with_its_values(cli, graph):
    done = cli("load", "library", "--data", "rows.jsonl")
    assert (done.code, done.err.splitlines()[0]) == (
        2,
        "error: Missing option '--mode'. Choose from: append, merge, overwrite",
    )


@pytest.mark.parametrize("line", [["frob", "--json"], ["snapshot", "--frob", "--format", "json"]])
def test_usage_errors_have_a_json_body_too(cli, line):
    done = cli(*line)
    assert done.code == 2
    assert done.json["code"] == "bad_request"


@pytest.mark.parametrize("line", [[], ["commit"], ["schema"], ["recovery"]])
def test_half_a_command_shows_the_help_on_stderr_and_exits_2(cli, line):
    done = cli(*line)
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("Usage: omnigraph")


def test_verbose_and_quiet_are_taken_before_and_after_the_command(cli, graph):
    for line in (["-v", "status", "library"], ["status", "library", "-v"], ["-q", "status", "library", "--quiet"]):
        assert cli(*line).code == 0


def test_an_error_keeps_its_failure_after_pickling():
    error = pickle.loads(pickle.dumps(og.Drift("node:A", "main", 1, 2)))
    assert failure_of(error).body == failure_of(og.Drift("node:A", "main", 1, 2)).body


def test_a_manifest_that_is_damaged_is_told_without_a_traceback(cli, graph):
    for file in Path("library/__manifest/_versions").iterdir():
        file.write_bytes(b"torn")
    done = cli("snapshot", "library", "--json")
    assert done.code in (3, 6)
    assert "Traceback" not in done.err
    assert orjson.loads(done.payload)["error"]


def test_a_traceback_ends_with_the_hint_and_notes_are_kept():
    error = og.NotFound("there is no graph", "Create one.")
    error.add_note("while testing")
    for told in (error, pickle.loads(pickle.dumps(error))):
        last = "".join(traceback.format_exception(told)).splitlines()[-3:]
        assert last[0].endswith("NotFound: there is no graph")
        assert last[1:] == ["hint: Create one.", "while testing"]
