"""Random queries over random graphs: every way of finding rows gives what the naive evaluator gives."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import omnigraph as og
from omnigraph.engine.read import query as reading
from omnigraph.plan.check import compile_query
from omnigraph.plan.lower import lower
from omnigraph.plan.typed import ReadQuery
from omnigraph.settings import Settings
from read.agree import disagreement
from read.case_scenes import Rows
from read.graphs import CATALOG, SCHEMA, graphs
from read.queries import AskedQuery, queries
from read.row_lines import write_lines

pytestmark = pytest.mark.slow

NOW_MS = 1_700_000_000_000
MODES = ("auto", "indexed", "csr")
QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]


@contextmanager
def loaded(tables: Rows, index: bool = True) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        file = write_lines(Path(folder) / "rows.jsonl", tables)
        graph = og.Graph.init(f"{folder}/graph", SCHEMA)
        if file.stat().st_size:
            graph.load(file, mode="append", index=index)
        yield graph.uri


def compare(graph: og.Graph, tables: Rows, asked: AskedQuery, way: str) -> None:
    checked = compile_query(CATALOG, asked.source)
    assert isinstance(checked, ReadQuery)
    found = graph.query(asked.source, asked.params).to_json()["rows"]
    wrong = disagreement(checked, tables, found, asked.params, NOW_MS)
    assert wrong is None, f"{way}: {wrong}\n{asked.source}\n{asked.params}\n{graph.explain(asked.source)}"


@pytest.fixture(autouse=True)
def fixed_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "now_us", lambda: NOW_MS * 1000)


def check_all(tables: Rows, asked: Sequence[AskedQuery], index: bool = True) -> None:
    with loaded(tables, index) as uri:
        for mode in MODES:
            graph = og.Graph.open(uri, "r", settings=Settings(read_traversal_mode=mode))
            for one in asked:
                compare(graph, tables, one, mode)


@settings(max_examples=25, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate])
@given(graphs(), st.lists(queries(), min_size=4, max_size=10), st.booleans())
def test_every_way_of_finding_rows_gives_what_the_naive_evaluator_gives(
    tables: Rows, asked: list[AskedQuery], index: bool
) -> None:
    check_all(tables, asked, index)


@pytest.mark.full
@pytest.mark.timeout(3600)
@settings(max_examples=400, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate])
@given(graphs(), st.lists(queries(), min_size=10, max_size=25), st.booleans())
def test_every_way_of_finding_rows_gives_what_the_naive_evaluator_gives_at_length(
    tables: Rows, asked: list[AskedQuery], index: bool
) -> None:
    check_all(tables, asked, index)


@settings(max_examples=10, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate])
@given(graphs(), st.lists(queries(), min_size=4, max_size=10))
def test_a_plan_without_rules_gives_the_same_rows(tables: Rows, asked: list[AskedQuery]) -> None:
    with pytest.MonkeyPatch.context() as patch, loaded(tables) as uri:
        patch.setattr(reading, "planned", lower)
        graph = og.Graph.open(uri, "r")
        for one in asked:
            compare(graph, tables, one, "plain")


@settings(max_examples=12, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate])
@given(graphs(), graphs(), st.lists(queries(), min_size=3, max_size=6), st.sampled_from(["auto", "csr"]))
def test_what_is_kept_in_memory_follows_every_commit(
    first: Rows, second: Rows, asked: list[AskedQuery], mode: str
) -> None:
    """One handle reads before and after a merge of other rows; what it kept must not show."""
    with loaded(first) as uri:
        graph = og.Graph.open(uri, settings=Settings(read_traversal_mode=mode))
        for one in asked:
            compare(graph, first, one, "before")
        file = write_lines(Path(uri).parent / "more.jsonl", second)
        if file.stat().st_size:
            graph.load(file, mode="merge", index=False)
        together = {key: merged(rows, second.get(key, [])) for key, rows in (first | second).items()}
        together = {key: merged(first.get(key, []), second.get(key, [])) for key in together}
        for one in asked:
            compare(graph, together, one, "after")
            compare(og.Graph.open(uri, "r"), together, one, "anew")


def merged(before: Sequence[dict[str, Any]], after: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    return list({row["id"]: row for row in (*before, *after)}.values())
