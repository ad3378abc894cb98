"""A list may hold a NULL, written by an older program; it is equal to nothing."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og
from omnigraph.settings import Settings


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> og.Graph:
    place: Path = tmp_path_factory.mktemp("lists") / "graph"
    made = og.Graph.init(str(place), "node Thing { name: String @key  tags: [String]?  nums: [I64]? }")
    schema = made.catalog.arrow_schema("node:Thing")
    columns = {
        "id": ["holed", "whole"],
        "name": ["holed", "whole"],
        "tags": [["x", None], ["x", "y"]],
        "nums": [[None, 3], [0]],
    }
    # A load would refuse the NULL; a raw write does not look into lists.
    made.write({"node:Thing": og.Append(pa.table(columns, schema=schema))})
    return made


@pytest.mark.parametrize("mode", ["auto", "indexed"])
@pytest.mark.parametrize(
    ("clause", "names"),
    [
        ('$t.tags contains "x"', ["holed", "whole"]),
        ('$t.tags contains ""', []),
        ("$t.tags contains $n", []),
        ("not { $t.tags contains $n }", ["holed", "whole"]),
        ("$t.nums contains 0", ["whole"]),
        ("$t.nums contains 3", ["holed"]),
    ],
)
def test_a_null_in_a_list_matches_no_membership(graph: og.Graph, mode: str, clause: str, names: list[str]) -> None:
    reader = og.Graph.open(graph.uri, "r", settings=Settings(read_traversal_mode=mode))
    found = reader.query(f"query q($n: String?) {{ match {{ $t: Thing {clause} }} return {{ $t.name }} }}")

    assert sorted(row["t.name"] for row in found) == names
