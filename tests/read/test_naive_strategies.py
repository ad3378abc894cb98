"""Random graphs load, random queries pass the checker, and the evaluator answers them all."""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings

import omnigraph as og
from omnigraph.plan.check import compile_query
from omnigraph.plan.typed import ReadQuery
from read.agree import disagreement
from read.case_scenes import Rows
from read.graphs import CATALOG, SCHEMA, graphs
from read.naive import evaluate
from read.queries import AskedQuery, queries
from read.row_lines import write_lines

pytestmark = pytest.mark.slow

BOUNDED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
FEATURES = {
    "a map": r"\$\w+: [A-Z]\w+ \{ \w+:",
    "hops": r"\w\{\d,\d\} \$",
    "an undirected edge": r"<\w+>",
    "undirected hops": r"<\w+>\{\d,\d\}",
    "an edge variable": r"\$\w+:[<\w]",
    "an anonymous end": r"\$_",
    "a negation": r"not \{",
    "a negation in a negation": r"not \{[^}]*not \{",
    "two components": r": [A-Z]\w+( \{[^}]*\})? \$\w+: [A-Z]",
    "a parameter in a list": r"\$x\d contains \$\w+\.",
    "now": r"now\(\)",
    "a sum": r"sum\(",
    "groups": r"as g0, .*\(",
    "order and limit": r"order \{.*desc.*\} limit",
    "limit without order": r"return \{[^}]*\} limit",
}


@BOUNDED
@given(queries())
def test_every_generated_query_passes_the_checker(asked: AskedQuery) -> None:
    assert isinstance(compile_query(CATALOG, asked.source), ReadQuery)


@BOUNDED
@given(queries(texts=True), graphs())
def test_the_evaluator_answers_every_generated_query(asked: AskedQuery, tables: Rows) -> None:
    query = compile_query(CATALOG, asked.source)
    assert isinstance(query, ReadQuery)

    found = evaluate(query, tables, asked.params, 1)

    assert disagreement(query, tables, found, asked.params, 1) is None


@pytest.fixture(scope="module")
def many() -> list[str]:
    """The texts of many generated queries, the same ones in every run."""
    found: list[str] = []

    @settings(BOUNDED, max_examples=400, phases=[Phase.generate], derandomize=True, database=None)
    @given(queries())
    def collect(asked: AskedQuery) -> None:
        found.append(asked.source)

    collect()
    return found


@pytest.mark.parametrize("pattern", FEATURES.values(), ids=list(FEATURES))
def test_the_generator_reaches(pattern: str, many: list[str]) -> None:
    assert any(re.search(pattern, source) for source in many)


@pytest.mark.slow
@settings(BOUNDED, max_examples=15)
@given(graphs())
def test_every_generated_graph_loads(tables: Rows) -> None:
    with tempfile.TemporaryDirectory() as place:
        graph = og.Graph.init(f"{place}/graph", SCHEMA)

        done = graph.load(write_lines(Path(place) / "rows.jsonl", tables), mode="append", index=False)

    assert done.total_entities == sum(len(rows) for rows in tables.values())
