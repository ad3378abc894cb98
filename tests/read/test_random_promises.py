"""Random queries with text matches, over handles that may keep little or nothing: what the naive evaluator gives."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from test_query_random import NOW_MS, fixed_now, loaded  # noqa: F401

import omnigraph as og
from omnigraph.plan.check import compile_query
from omnigraph.plan.typed import ReadQuery
from omnigraph.settings import Settings
from read.agree import disagreement
from read.case_scenes import Rows
from read.graphs import CATALOG, graphs
from read.naive_tokens import INDEX_WORDS
from read.queries import AskedQuery, queries

QUIET = [HealthCheck.too_slow, HealthCheck.data_too_large, HealthCheck.large_base_example]
BUDGETS = st.sampled_from([(0, 0), (1 << 20, 0), (0, 1 << 20), (900, 400)])


def check(tables: Rows, asked: Sequence[AskedQuery], index: bool, budget: tuple[int, int], mode: str) -> None:
    chosen = Settings(cache_hot_bytes=budget[0], cache_csr_bytes=budget[1], read_traversal_mode=mode)
    with loaded(tables, index) as uri:
        graph = og.Graph.open(uri, "r", settings=chosen)
        for one in asked:
            checked = compile_query(CATALOG, one.source)
            assert isinstance(checked, ReadQuery)
            found = graph.query(one.source, one.params).to_json()["rows"]
            wrong = disagreement(checked, tables, found, one.params, NOW_MS, INDEX_WORDS)
            assert wrong is None, f"{budget}: {wrong}\n{one.source}\n{one.params}\n{graph.explain(one.source)}"


MANY = st.lists(queries(texts=True), min_size=4, max_size=8)
MODES = st.sampled_from(["auto", "csr", "indexed"])


@settings(max_examples=3, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate])
@given(graphs(), MANY, st.booleans(), BUDGETS, MODES)
def test_no_random_query_depends_on_budgets_or_indexes(
    tables: Rows, asked: list[AskedQuery], index: bool, budget: tuple[int, int], mode: str
) -> None:
    check(tables, asked, index, budget, mode)


@pytest.mark.full
@pytest.mark.timeout(3600)
@settings(max_examples=200, deadline=None, suppress_health_check=QUIET, phases=[Phase.generate])
@given(graphs(), MANY, st.booleans(), BUDGETS, MODES)
def test_no_random_query_depends_on_budgets_or_indexes_at_length(
    tables: Rows, asked: list[AskedQuery], index: bool, budget: tuple[int, int], mode: str
) -> None:
    check(tables, asked, index, budget, mode)
