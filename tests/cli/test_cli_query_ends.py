"""How `omnigraph query` ends when it gives no rows: exit codes, one error on stderr, nothing on stdout."""

from __future__ import annotations

import pytest

import omnigraph as og

pytestmark = pytest.mark.slow

ALL = "query all() { match { $p: Person } return { $p.name } order { $p.name asc } }"


def ended(done) -> tuple[int, bytes, list[str]]:
    return done.code, done.payload, [line.partition(":")[0] for line in done.err.splitlines()]


@pytest.mark.parametrize(
    ("variable", "value", "limit"),
    [("RESULT_ROWS", "2", "result_rows"), ("QUERY_MEMORY_BYTES", "8", "query_memory_bytes")],
)
def test_a_limit_from_the_environment_ends_a_query_with_7(cli, graph, monkeypatch, variable, value, limit) -> None:
    monkeypatch.setenv(f"OMNIGRAPH_{variable}", value)
    assert ended(cli("query", "-e", ALL, "-s", "library", "--format", "csv")) == (7, b"", ["error", "hint"])
    told = cli("query", "-e", ALL, "-s", "library", "--json")
    assert (told.code, told.json["code"], told.json["limit"], told.json["value"]) == (
        7,
        "limit_exceeded",
        f"limits.{limit}",
        int(value),
    )


def test_a_timeout_ends_a_query_with_7(cli, graph, monkeypatch) -> None:
    assert ended(cli("query", "-e", ALL, "-s", "library", "--timeout", "1ms")) == (7, b"", ["error", "hint"])
    monkeypatch.setenv("OMNIGRAPH_QUERY_TIMEOUT_MS", "1")
    assert cli("query", "-e", ALL, "-s", "library", "--json").json["limit"] == "limits.query_timeout_ms"
    assert cli("query", "-e", ALL, "-s", "library", "--timeout", "1m").code == 0


def test_a_reclaimed_commit_and_an_unknown_one_end_a_query_with_1(cli, graph) -> None:
    old = graph.list_commits()[1].graph_commit_id
    graph.cleanup(keep=1, confirm=True)
    reclaimed = cli("query", "-e", ALL, "-s", "library", "--snapshot", old, "--json")
    assert (reclaimed.code, reclaimed.json["code"]) == (1, "reclaimed")
    assert "historical version 2 of node:Person was reclaimed" in reclaimed.err
    unknown = cli("query", "-e", ALL, "-s", "library", "--snapshot", "01HZZZZZZZZZZZZZZZZZZZZZZZ", "--json")
    assert (unknown.code, unknown.json["code"]) == (1, "not_found")


def test_a_moment_names_the_commit_that_was_the_head_then(cli, graph) -> None:
    assert cli("query", "-e", ALL, "-s", "library", "--as-of", "2100-01-01").lines[0].startswith("3 rows from snapshot")
    early = cli("query", "-e", ALL, "-s", "library", "--as-of", "1990-01-01")
    assert (early.code, early.payload) == (1, b"")


def test_a_mistake_ends_with_1_and_a_pointer_and_no_traceback(cli, graph) -> None:
    done = cli("query", "-e", "query q() {\n  match { $p: Persn }\n  return { $p }\n}", "-s", "library", "--json")
    assert (done.code, done.json["line"], done.json["column"]) == (1, 2, 15)
    assert done.err.splitlines() == [
        "error: type error: T1: 2:15: unknown node type 'Persn'",
        "  2 |   match { $p: Persn }",
        "    |               ^",
        "hint: Did you mean 'Person'?",
    ]


def test_a_graph_that_cannot_be_read_is_unavailable(cli, graph: og.Graph, tmp_path) -> None:
    for file in (tmp_path / "library").glob("nodes/*/data/*"):
        file.unlink()
    assert ended(cli("query", "-e", ALL, "-s", "library"))[:2] == (6, b"")
