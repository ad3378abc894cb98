"""`omnigraph load` and `omnigraph export`."""

from __future__ import annotations

import gzip
import io
import sys

import orjson
import pytest

pytestmark = pytest.mark.slow

ANA = {"type": "Person", "data": {"name": "zoe", "age": 31}}
BOOK = {"type": "Book", "data": {"id": "b1", "title": "Graphs"}}
WROTE = {"edge": "Wrote", "from": "zoe", "to": "b1", "data": {"year": 2001}}


def lines(*objects: object) -> bytes:
    return b"".join(orjson.dumps(o) + b"\n" for o in objects)


@pytest.fixture
def data(graph, tmp_path):
    path = tmp_path / "data.jsonl"
    path.write_bytes(lines(ANA, BOOK, WROTE))
    return str(path)


def test_a_load_says_how_much_of_what_went_where(cli, graph, data):
    done = cli("load", "library", "--data", data, "--mode", "append", "-m", "first load", "--as", "act-ana")
    said = "loaded library on branch main with append: 2 nodes across 2 node types, 1 edges across 1 edge types"
    assert (done.code, done.lines, done.err) == (0, [said], "omnigraph load → library\n")
    commit = next(c for c in graph.list_commits() if c.kind == "load" and c.message == "first load")
    assert commit.actor_id == "act-ana"


def test_the_result_is_for_programs_too(cli, graph, data):
    body = cli("load", "library", "--data", data, "--mode", "merge", "--no-index", "--json").json
    assert (body["mode"], body["engine"], body["total_entities"]) == ("merge", "embedded", 3)
    assert body["nodes"] == [{"name": "Book", "entities_loaded": 1}, {"name": "Person", "entities_loaded": 1}]
    assert graph.get_commit(body["commit"]).kind == "load"
    assert "index_commit" not in body


def test_several_inputs_form_one_load(cli, graph, tmp_path):
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.jsonl").write_bytes(lines(ANA))
    (folder / "b.ndjson.gz").write_bytes(gzip.compress(lines(BOOK)))
    (tmp_path / "e.jsonl").write_bytes(lines(WROTE))
    before = graph.snapshot().version
    words = ("--data", str(folder), "--data", str(tmp_path / "e.jsonl"), "--mode", "append", "--no-index")
    assert cli("load", "library", *words).code == 0
    assert graph.snapshot().version == before + 1


def test_stdin_is_a_dash(cli, graph, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(lines(ANA))))
    assert cli("load", "library", "--data", "-", "--mode", "append").code == 0
    assert graph.entity_at("node:Person", "zoe", graph.snapshot().version)["age"] == 31


def test_bad_rows_are_listed_with_file_line_type_property_and_reason(cli, graph, tmp_path):
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(lines({"type": "Person", "data": {"name": "x", "age": "old"}}, {"type": "Person", "data": {}}))
    before = graph.snapshot()
    done = cli("load", "library", "--data", str(bad), "--mode", "append")
    assert done.code == 1
    assert f"{bad}:1  Person.age  wrong_type" in done.err
    assert f"{bad}:2  Person.name  missing_required" in done.err
    assert "quarantine" in done.err
    assert graph.snapshot() == before
    body = cli("load", "library", "--data", str(bad), "--mode", "append", "--json").json
    assert body["total"] == 2
    assert {v["line"] for v in body["violations"]} == {1, 2}


def test_quarantine_loads_the_rest_and_says_where_the_rest_is_not(cli, graph, tmp_path):
    mixed = tmp_path / "mixed.jsonl"
    mixed.write_bytes(lines(ANA, {"type": "Person", "data": {"name": "x", "age": "old"}}))
    done = cli("load", "library", "--data", str(mixed), "--mode", "append", "--on-error", "quarantine")
    assert done.code == 0
    assert done.lines[-1] == f"1 rows rejected, see {mixed}.rejects.jsonl"
    told = orjson.loads((tmp_path / "mixed.jsonl.rejects.jsonl").read_bytes())
    assert (told["line"], told["property"], told["reason"]) == (2, "age", "wrong_type")


def test_an_id_that_is_there_already_is_a_conflict(cli, graph, data):
    assert cli("load", "library", "--data", data, "--mode", "append").code == 0
    again = cli("load", "library", "--data", data, "--mode", "append")
    assert (again.code, "already has id" in again.err) == (3, True)
    assert cli("load", "library", "--data", data, "--mode", "merge").code == 0


def test_a_missing_branch_is_made_from_another_one_only_if_asked(cli, graph, data):
    words = ("load", "library", "--data", data, "--mode", "append", "--branch", "draft")
    assert (cli(*words).code, graph.branch_list()) == (1, ["main"])
    done = cli(*words, "--from", "main")
    assert done.lines[0] == "branch draft created from main"
    assert graph.branch_list() == ["main", "draft"]


def test_the_mode_is_mandatory_and_must_be_one_of_three(cli, graph, data):
    assert cli("load", "library", "--data", data).code == 2
    assert cli("load", "library", "--data", data, "--mode", "replace").code == 2
    assert cli("load", "library", "--mode", "append").code == 2


def test_an_export_loads_into_an_equal_graph(cli, graph, data, tmp_path):
    cli("load", "library", "--data", data, "--mode", "append")
    whole = cli("export", "library")
    assert whole.code == 0
    saved = tmp_path / "all.jsonl"
    assert cli("export", "library", "--out", str(saved)).payload == b""
    assert saved.read_bytes() == whole.payload
    (tmp_path / "schema2.pg").write_text(cli("schema", "show", "--store", "library").out)
    cli("init", "copy", "--schema", str(tmp_path / "schema2.pg"))
    assert cli("load", "copy", "--data", str(saved), "--mode", "overwrite").code == 0
    assert cli("export", "copy").payload == whole.payload


def test_an_export_may_name_types_and_a_moment(cli, graph, data):
    cli("load", "library", "--data", data, "--mode", "append", "--no-index")
    books = cli("export", "library", "--type", "Book")
    assert [orjson.loads(line)["type"] for line in books.lines] == ["Book"]
    assert cli("export", "library", "--type", "Book", "--at", "main~1").lines == []
    unknown = cli("export", "library", "--type", "Bok")
    assert (unknown.code, "unknown export type 'Bok'" in unknown.err) == (1, True)
