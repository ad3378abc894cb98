"""The pages on queries and on schemas are followed: they show what is printed, and what they write is accepted."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from test_readme import ROOT, replay

import omnigraph as og

QUERIES = (ROOT / "docs" / "query.md").read_text(encoding="utf-8")
SCHEMA = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")


@pytest.mark.slow
def test_the_page_on_queries_prints_what_it_shows(tmp_path: Path) -> None:
    shown, printed = replay(QUERIES, tmp_path)
    assert len(shown) > 40
    assert printed == shown


def test_the_schema_rows_and_changes_of_the_page_on_schemas_work(tmp_path: Path) -> None:
    [schema] = re.findall(r"```pg\n(.*?)```", SCHEMA, re.DOTALL)
    [rows] = re.findall(r"```jsonl\n(.*?)```", SCHEMA, re.DOTALL)
    [changes] = re.findall(r"```\n(query.*?)```", SCHEMA, re.DOTALL)
    (tmp_path / "rows.jsonl").write_text(rows)
    graph = og.Graph.init(str(tmp_path / "graph"), schema)
    assert repr(graph) == f"<Graph {tmp_path}/graph on branch main>"
    assert graph.load(str(tmp_path / "rows.jsonl"), mode="append").total_entities == 3
    hired = graph.mutate(changes, {"code": "bolt", "name": "Bolt", "sku": "tube"}, name="hire")
    assert (hired.affected_nodes, hired.affected_edges) == (1, 1)
    assert graph.mutate(changes, {"code": "bolt", "sku": "tube", "price": 4.0}, name="reprice").affected_edges == 1
    assert graph.mutate(changes, {"code": "bolt"}, name="fire").affected_edges == 1
    prices = "query q() { match { $s: Supplier  $s $o:supplies $p } return { $s.code, $o.price } }"
    assert graph.query(prices).rows == [{"s.code": "acme", "o.price": 5.2}]
