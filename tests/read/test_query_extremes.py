"""The smallest and the largest numbers are found by the store's own filters too."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og

SCHEMA = "node Thing { name: String @key  low: I64? @index  high: U64? @index }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    things = {"name": ["a", "b"], "low": [-(2**63), 5], "high": pa.array([2**64 - 1, 3], pa.uint64())}
    made.load_frames({"Thing": pa.table(things)}, mode="append")
    return made


@pytest.mark.parametrize("match", ["low: -9223372036854775808", "high: 18446744073709551615"])
def test_a_query_finds_the_extremes_of_integers(graph: og.Graph, match: str) -> None:
    found = graph.query(f"query q() {{ match {{ $t: Thing {{ {match} }} }} return {{ $t.name }} }}")

    assert found.rows == [{"t.name": "a"}]


@pytest.mark.parametrize("where", ["low = -9223372036854775808", "high = 18446744073709551615"])
def test_a_mutation_finds_the_extremes_of_integers(graph: og.Graph, where: str) -> None:
    graph.mutate(f"query m() {{ delete Thing where {where} }}")

    assert graph.query("query q() { match { $t: Thing } return { $t.name } }").rows == [{"t.name": "b"}]
