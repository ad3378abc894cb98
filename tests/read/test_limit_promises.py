"""The limits of a query: rows, memory and time. A query that passes one says which, and gives nothing."""

from __future__ import annotations

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.settings import Settings

PEOPLE = 20_000
ALL = "query q() { match { $p: Person } return { $p.name, $p.text } order { $p.text desc, $p.name } }"
PAIRS = "query q() { match { $p: Person $q: Person } return { count($p) as n } }"
FEW = "query q() { match { $p: Person } return { $p.name } limit 7 }"
STEPS = "query q() { match { $p: Person $p next{1,2000} $q } return { count($q) as n } }"
HUB = 'query q() { match { $p: Person { name: "p00000" } $p next $q } return { count($q) as n } }'


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    """People in one long line; the first one also leads to every hundredth."""
    made = og.Graph.init(
        str(tmp_path_factory.mktemp("limits") / "graph"),
        "node Person { name: String @key  text: String? }\nedge Next: Person -> Person",
    )
    names = [f"p{n:05d}" for n in range(PEOPLE)]
    line = {"from": [*names[:-1], *[names[0]] * 198], "to": [*names[1:], *names[200::100]]}
    texts = [f"{n * 7919 % PEOPLE} {'x' * 50}" for n in range(PEOPLE)]
    made.load_frames({"Person": pa.table({"name": names, "text": texts}), "Next": pa.table(line)}, mode="append")
    return made


def limited(graph: og.Graph, **limits: int) -> og.Graph:
    return og.Graph.open(graph.uri, "r", settings=Settings(**limits))  # type: ignore[arg-type]


def refused(graph: og.Graph, source: str, **more: int) -> tuple[str, int]:
    """Which limit was passed and what it is; afterwards the handle answers as if nothing had been."""
    with pytest.raises(og.LimitExceeded) as told:
        graph.query(source, **more)
    assert "No part of the result was returned" in told.value.hint
    assert graph.query(FEW, timeout_ms=60_000).row_count == 7
    return told.value.limit, told.value.value


def test_a_result_of_more_rows_than_allowed_is_no_result(graph: og.Graph) -> None:
    strict = limited(graph, limits_result_rows=7)

    assert refused(strict, ALL) == ("limits.result_rows", 7)
    assert refused(strict, FEW.replace("7", "8")) == ("limits.result_rows", 7)


def test_rows_that_are_not_returned_count_against_no_limit_of_rows(graph: og.Graph) -> None:
    assert limited(graph, limits_result_rows=1).query(HUB).rows == [{"n": 199}]


def test_a_result_larger_than_the_memory_of_a_query_is_refused(graph: og.Graph) -> None:
    small = limited(graph, limits_query_memory_bytes=1 << 20)

    assert refused(small, ALL) == ("limits.query_memory_bytes", 1 << 20)
    assert small.query(ALL.replace("} }", "} limit 1000 }")).row_count == 1000


def test_pairs_that_would_not_fit_are_refused_before_they_are_made(graph: og.Graph) -> None:
    assert refused(graph, PAIRS) == ("limits.query_memory_bytes", 2 << 30)


@pytest.mark.parametrize("mode", ["csr", "auto"])
def test_a_step_along_edges_that_would_not_fit_is_refused(graph: og.Graph, mode: str) -> None:
    small = og.Graph.open(
        graph.uri, "r", settings=Settings(limits_query_memory_bytes=100_000, read_traversal_mode=mode)
    )
    everybody = "query q() { match { $p: Person $p next $q } return { max($q.text) as t } }"

    assert refused(small, everybody) == ("limits.query_memory_bytes", 100_000)


@pytest.mark.parametrize("source", [STEPS, ALL], ids=["while it walks", "while it orders"])
def test_a_query_that_takes_too_long_ends_without_a_result(graph: og.Graph, source: str) -> None:
    assert refused(graph, source, timeout_ms=1) == ("limits.query_timeout_ms", 1)


def test_the_timeout_of_the_settings_holds_where_none_is_given(graph: og.Graph) -> None:
    hasty = limited(graph, limits_query_timeout_ms=1)

    assert refused(hasty, STEPS) == ("limits.query_timeout_ms", 1)
    assert hasty.query(ALL, timeout_ms=60_000).row_count == PEOPLE
    assert hasty.query(ALL, timeout_ms=0).row_count == PEOPLE, "0 is no timeout"


def test_a_negative_timeout_is_refused(graph: og.Graph) -> None:
    with pytest.raises(og.BadRequest, match="timeout of -1 ms"):
        graph.query(FEW, timeout_ms=-1)


def test_explain_is_bound_by_no_limit_because_it_runs_nothing(graph: og.Graph) -> None:
    strict = limited(graph, limits_query_timeout_ms=1, limits_query_memory_bytes=1, limits_result_rows=1)

    assert "Person" in strict.explain(PAIRS)
