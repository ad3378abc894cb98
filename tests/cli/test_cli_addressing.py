"""How a graph is named: option, positional, environment, settings file."""

from __future__ import annotations

from pathlib import Path

import pytest


def test_without_any_target_the_command_says_how_to_name_one(cli):
    done = cli("status")
    assert done.code == 2
    assert done.err.splitlines() == [
        "error: omnigraph status needs a graph",
        "hint: Give --store URI, or set OMNIGRAPH_STORE, or cli.graph in omnigraph.yaml.",
    ]


def test_a_graph_may_be_named_by_option_positional_environment_and_settings_file(cli, graph, monkeypatch):
    wanted = cli("snapshot", "library").out
    assert cli("snapshot", "--store", "library").out == wanted
    assert cli("snapshot", "-s", Path("library").resolve().as_uri()).out == wanted
    monkeypatch.setenv("OMNIGRAPH_STORE", "library")
    assert cli("snapshot").out == wanted
    monkeypatch.delenv("OMNIGRAPH_STORE")
    Path("omnigraph.yaml").write_text("cli: {graph: library}")
    assert cli("snapshot").out == wanted


def test_what_was_typed_wins_over_the_environment_and_that_over_the_file(cli, graph, monkeypatch):
    Path("omnigraph.yaml").write_text("cli: {graph: from-file}")
    assert "from-file" in cli("status").err
    monkeypatch.setenv("OMNIGRAPH_STORE", "from-env")
    assert "from-env" in cli("status").err
    assert "typed" in cli("status", "typed").err


def test_names_of_the_settings_file_stand_for_graphs_beside_it(cli, graph):
    Path("conf").mkdir()
    Path("conf/og.yaml").write_text(
        "version: 1\ngraphs:\n  books: {uri: ../library, queries: ./q}\n  plain: ../library\ncli: {graph: books}\n"
    )
    for line in (["-s", "books"], ["-s", "plain"], ["books"], []):
        assert "node:Person v3" in cli("snapshot", *line, "--config", "conf/og.yaml").out


def test_a_name_in_the_settings_file_wins_over_a_directory_of_that_name(cli, graph):
    Path("books").mkdir()
    Path("omnigraph.yaml").write_text("graphs: {books: ./library}")
    assert cli("snapshot", "books").code == 0
    assert "is not a graph" in cli("snapshot", "./books").err


def test_two_different_targets_are_a_usage_error_and_the_same_one_twice_is_not(cli, graph):
    done = cli("snapshot", "library", "--store", "other")
    assert done.code == 2
    assert "two different graphs" in done.err
    assert cli("snapshot", "library", "--store", "./library/").code == 0


@pytest.mark.parametrize("verb", [["init", "--schema", "schema.pg"], ["status"], ["recovery", "list"]])
def test_a_server_url_is_refused_by_commands_that_work_on_storage(cli, verb):
    done = cli(*verb, "--store", "https://example.org/graphs/x")
    assert done.code == 1
    assert "https://example.org/graphs/x" in done.err
    assert "storage" in done.err


@pytest.mark.parametrize("uri", ["s3x://bucket/graph", "ftp://host/graph", "file://host/graph", ""])
def test_a_uri_of_another_kind_is_refused(cli, uri):
    done = cli("snapshot", "--store", uri)
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")


def test_a_directory_that_is_no_graph_and_no_directory_at_all_are_told_apart(cli, tmp_path):
    (tmp_path / "empty").mkdir()
    assert "is not a graph" in cli("snapshot", "empty").err
    assert "there is no graph at" in cli("snapshot", "nowhere").err
    assert cli("snapshot", "empty").code == cli("snapshot", "nowhere").code == 1


def test_a_path_that_is_not_utf8_is_refused(cli):
    done = cli("snapshot", "b\udcffd")
    assert done.code == 1
    assert "UTF-8" in done.err


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("graphs: [a]", "graphs expects"),
        ("graphs: {a: 3}", "graphs expects"),
        ("wrong: 1", "unknown setting 'wrong'"),
        ("version: 2", "version must be 1"),
        ("cli: {format: xml}", "cli.format 'xml' is unknown"),
        ("log: {level: loud}", "log level 'loud' is unknown"),
        ("a: [", "cannot be read"),
    ],
)
def test_a_mistake_in_the_settings_file_is_named(cli, graph, text, said):
    Path("omnigraph.yaml").write_text(text)
    done = cli("snapshot", "library")
    assert done.code in (1, 2)
    assert said in done.err


def test_a_settings_file_that_is_missing_is_an_error_only_when_asked_for(cli, graph):
    done = cli("snapshot", "library", "--config", "none.yaml")
    assert done.code == 1
    assert "'none.yaml' not found" in done.err
