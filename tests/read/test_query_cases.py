"""Graph.query gives the rows that were worked out by hand, in every way of finding them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import omnigraph as og
from omnigraph.settings import Settings
from read import case_search
from read.agree import misfit
from read.cases import Case, all_cases
from read.row_lines import write_lines

CASES = [case for case in (*all_cases(), *case_search.CASES) if case.scene.loadable]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder: Path = tmp_path_factory.mktemp("scenes")
    made = {}
    for scene in {case.scene.name: case.scene for case in CASES}.values():
        file = write_lines(folder / f"{scene.name}.jsonl", scene.rows)
        graph = og.Graph.init(str(folder / scene.name), scene.schema)
        graph.load(file, mode="append")
        made[scene.name] = graph.uri
    return made


@pytest.fixture(scope="module", params=["auto", "indexed", "csr"])
def graphs(request: pytest.FixtureRequest, places: dict[str, str]) -> dict[str, Any]:
    settings = Settings(read_traversal_mode=request.param)
    return {name: og.Graph.open(uri, "r", settings=settings) for name, uri in places.items()}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_query_gives_the_expected_rows(case: Case, graphs: dict[str, Any]) -> None:
    found = graphs[case.scene.name].query(case.source, case.params).to_json()["rows"]

    assert misfit(case.query, case.expected, found) is None
