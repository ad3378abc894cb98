"""`omnigraph query`."""

from __future__ import annotations

import orjson
import pytest

pytestmark = pytest.mark.slow

ALL = "query all() { match { $p: Person } return { $p.name, $p.age } order { $p.name asc } }"
ONE = "query one($n: String) { match { $p: Person { name: $n } } return { $p.name } }"
HIRE = 'query hire() { insert Person { name: "zoe" } }'


@pytest.fixture
def file(graph, tmp_path):
    path = tmp_path / "people.gq"
    path.write_text(f"{ALL}\n{ONE}\n{HIRE}\n")
    return str(path)


def test_a_query_on_the_line_prints_its_rows(cli, graph):
    assert cli("query", "-e", ALL, "--store", "library").lines == [
        "3 rows from branch main via all",
        "p.name   | p.age",
        "ann      | null",
        "bob      | null",
        "cyd      | null",
    ]


def test_one_of_several_queries_of_a_file_is_named(cli, graph, file, tmp_path):
    (tmp_path / "bob.json").write_bytes(orjson.dumps({"n": "bob"}))
    for given in (("--params", '{"n": "bob"}'), ("--params-file", str(tmp_path / "bob.json"))):
        done = cli("query", "one", "--query", file, *given, "--store", "library", "--json")
        assert done.json["rows"] == [{"p.name": "bob"}]
        assert (done.json["query_name"], done.json["columns"]) == ("one", ["p.name"])
    unnamed = cli("query", "--query", file, "--store", "library")
    assert unnamed.code == 1
    assert "one" in unnamed.err


def test_an_older_commit_and_a_branch_can_be_read(cli, graph):
    before = graph.list_commits()[1].graph_commit_id
    for option in (("--at", "main~1"), ("--snapshot", before)):
        head = cli("query", "-e", ALL, "-s", "library", *option).lines[0]
        assert head == f"2 rows from snapshot {before} via all"
    graph.branch_create("draft")
    assert cli("query", "-e", ALL, "-s", "library", "-b", "draft").lines[0] == "3 rows from branch draft via all"
    assert cli("query", "-e", ALL, "-s", "library", "-b", "draft", "--at", "main").code == 2


@pytest.mark.parametrize("how", ["table", "kv", "csv", "jsonl", "json", "arrow"])
def test_every_format_prints_a_result(cli, graph, how):
    done = cli("query", "-e", ALL, "-s", "library", "--format", how)
    assert (done.code, b"bob" in done.payload, done.err) == (0, True, "")


def test_a_mutation_is_pointed_to_mutate(cli, graph, file):
    done = cli("query", "hire", "--query", file, "--store", "library")
    assert (done.code, done.out) == (1, "")
    assert "mutate" in done.err


def test_a_mistake_names_the_file_and_the_place(cli, graph, tmp_path):
    (tmp_path / "bad.gq").write_text("query q() {\n  match { $p: Persn }\n  return { $p }\n}\n")
    done = cli("query", "--query", "bad.gq", "--store", "library")
    assert done.code == 1
    assert "bad.gq:2:" in done.err


def test_explain_prints_a_plan_and_no_rows(cli, graph):
    done = cli("query", "-e", ALL, "-s", "library", "--explain")
    assert done.code == 0
    assert "bob" not in done.out
    assert "Person" in done.out
    assert "plan" in cli("query", "-e", ALL, "-s", "library", "--explain", "--json").json


def test_analyze_prints_the_plan_after_the_result(cli, graph):
    lines = cli("query", "-e", ALL, "-s", "library", "--analyze").lines
    assert lines[0] == "3 rows from branch main via all"
    assert len(lines) > 5
    assert "plan" in cli("query", "-e", ALL, "-s", "library", "--analyze", "--json").json


def test_words_that_do_not_fit_together_are_usage_mistakes(cli, graph, file):
    for words in (
        (),
        ("-e", ALL, "--query", file),
        ("-e", ALL, "--explain", "--analyze"),
        ("-e", ALL, "--params", "{}", "--params-file", "x.json"),
        ("-e", ALL, "--json", "--format", "csv"),
        ("stored",),
    ):
        assert cli("query", *words, "-s", "library").code == 2


def test_a_name_alone_is_a_stored_query_of_the_settings_file(cli, graph, tmp_path):
    (tmp_path / "stored").mkdir()
    (tmp_path / "stored" / "a.gq").write_text(ALL)
    (tmp_path / "stored" / "b.gq").write_text(ONE)
    (tmp_path / "omnigraph.yaml").write_text("graphs:\n  lib: {uri: ./library, queries: ./stored}\n")
    assert cli("query", "all", "-s", "lib").lines[0] == "3 rows from branch main via all"
    assert cli("query", "one", "-s", "lib", "--params", '{"n": "ann"}', "--json").json["row_count"] == 1
    missing = cli("query", "two", "-s", "lib")
    assert missing.code == 1
    assert "stored query 'two' not found" in missing.err
    (tmp_path / "stored" / "c.gq").write_text(ONE)
    twice = cli("query", "one", "-s", "lib")
    assert (twice.code, "is in both" in twice.err) == (1, True)


def test_a_timeout_is_a_duration(cli, graph):
    assert cli("query", "-e", ALL, "-s", "library", "--timeout", "30s").code == 0
    assert cli("query", "-e", ALL, "-s", "library", "--timeout", "soon").code == 1
