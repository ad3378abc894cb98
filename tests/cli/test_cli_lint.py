"""`omnigraph lint`."""

from __future__ import annotations

from pathlib import Path

import pytest

GOOD = "query people($n: String) { match { $p: Person { name: $n } } return { $p.name } }\n"
BAD = "query bad() { match { $p: Persn } return { $p.name } }\n"
HARD_CODED = 'query drop_bob() { delete Person where name = "bob" }\n'


def write(source: str) -> str:
    Path("people.gq").write_text(source)
    return "people.gq"


def test_good_queries_are_listed_and_the_exit_code_is_0(cli):
    done = cli("lint", "--query", write(GOOD), "--schema", "schema.pg")
    assert done.code == 0
    assert done.lines == ["OK    query `people` (read)", "INFO  Lint complete: 1 query, 0 errors, 0 warnings"]
    assert done.err == ""


def test_a_failing_query_gives_exit_code_1_and_says_where(cli):
    done = cli("lint", "--query", write(GOOD + BAD), "--schema", "schema.pg")
    assert done.code == 1
    assert done.lines == [
        "OK    query `people` (read)",
        "ERROR query `bad`: type error: T1: people.gq:2:27: unknown node type 'Persn'; Did you mean 'Person'?",
        "INFO  Lint complete: 2 queries, 1 error, 0 warnings",
    ]


def test_warnings_alone_do_not_fail(cli):
    done = cli("lint", "--query", write(HARD_CODED), "--schema", "schema.pg")
    assert done.code == 0
    assert done.lines == [
        "OK    query `drop_bob` (mutation)",
        "WARN  query `drop_bob`: L202: hard-coded mutation: it declares no parameters",
        "INFO  Lint complete: 1 query, 0 errors, 1 warning",
    ]


def test_a_file_that_does_not_parse_fails(cli):
    done = cli("lint", "--query", write("query q("), "--schema", "schema.pg")
    assert done.code == 1
    assert done.lines[0] == "ERROR Q000: parse error: people.gq:1:9: unexpected end of file, expected ')' or a variable"


def test_a_graph_lends_its_schema(cli, graph):
    assert cli("lint", "--query", write(GOOD), "-s", "library").code == 0
    body = cli("lint", "--query", write(GOOD + BAD), "-s", "library", "--json")
    assert body.code == 1
    assert body.json["schema_source"] == {"kind": "graph", "uri": "library"}
    assert (body.json["status"], body.json["query_path"], body.json["queries_processed"]) == ("error", "people.gq", 2)
    assert [result["status"] for result in body.json["results"]] == ["ok", "error"]


def test_the_environment_names_the_graph_but_a_schema_file_wins(cli, graph, monkeypatch):
    monkeypatch.setenv("OMNIGRAPH_STORE", "library")
    assert cli("lint", "--query", write(GOOD), "--json").json["schema_source"] == {"kind": "graph", "uri": "library"}
    done = cli("lint", "--query", write(GOOD), "--schema", "schema.pg", "--json")
    assert done.json["schema_source"] == {"kind": "file", "path": "schema.pg"}


def test_json_is_the_whole_report(cli):
    body = cli("lint", "--query", write(GOOD), "--schema", "schema.pg", "--json").json
    assert list(body) == [
        "status", "schema_source", "query_path", "queries_processed", "errors", "warnings", "infos", "results",
        "findings",
    ]  # fmt: skip
    assert body["results"][0]["operation"]["reads"] == [{"kind": "node", "type_name": "Person"}]


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("--schema", "schema.pg", "-s", "library"), 2, "--schema and --store cannot be given together"),
        ((), 2, "omnigraph lint needs a graph"),
        (("--schema", "none.pg"), 1, "schema file 'none.pg' not found"),
        (("-s", "http://localhost:1"), 1, "omnigraph lint works on storage only"),
        (("-s", "nowhere"), 1, "nowhere"),
    ],
)
def test_a_schema_must_be_there_once(cli, arguments, code, text):
    done = cli("lint", "--query", write(GOOD), *arguments)
    assert done.code == code
    assert text in done.err
    assert done.out == ""


def test_a_missing_query_file_is_named(cli):
    done = cli("lint", "--query", "none.gq", "--schema", "schema.pg")
    assert (done.code, done.err.splitlines()[0]) == (1, "error: query file 'none.gq' not found")


def test_a_query_file_that_is_no_text_is_refused(cli):
    Path("people.gq").write_bytes(b"\xff\xfe")
    done = cli("lint", "--query", "people.gq", "--schema", "schema.pg")
    assert done.code == 1
    assert "is not UTF-8" in done.err


def test_a_broken_schema_is_the_error_of_the_command(cli):
    Path("broken.pg").write_text("node Person {")
    done = cli("lint", "--query", write(GOOD), "--schema", "broken.pg")
    assert done.code == 1
    assert done.err.startswith("error: parse error: broken.pg:1:")


def test_the_help_shows_an_example(cli):
    done = cli("lint", "--help")
    assert done.code == 0
    assert "omnigraph lint --query people.gq --schema schema.pg" in done.out + done.err
