"""The answer to a query depends on the rows of its snapshot and on nothing else: every case, in every state."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

import omnigraph as og
from omnigraph.engine.read import query as reading
from omnigraph.plan.lower import lower
from omnigraph.settings import Settings
from read.loaded_scenes import SCENES, broken_promises, made, made_in_pieces

pytestmark = pytest.mark.slow

Graphs = dict[str, og.Graph]
MUCH = 1 << 28


@pytest.fixture(scope="module")
def wholes(tmp_path_factory: pytest.TempPathFactory) -> Graphs:
    folder: Path = tmp_path_factory.mktemp("whole")
    return {name: made(folder, scene) for name, scene in SCENES.items()}


def reopened(graphs: Mapping[str, og.Graph], **settings: object) -> Graphs:
    chosen = Settings(**settings)  # type: ignore[arg-type]
    return {name: og.Graph.open(graph.uri, "r", settings=chosen) for name, graph in graphs.items()}


@pytest.mark.parametrize(
    ("hot_bytes", "csr_bytes", "mode"),
    [(0, 0, "auto"), (0, MUCH, "csr"), (MUCH, 0, "csr"), (1_500, 700, "auto")],
    ids=["nothing is kept", "only edges are kept", "only nodes are kept", "little is kept"],
)
def test_no_answer_depends_on_what_may_be_kept_in_memory(
    wholes: Graphs, hot_bytes: int, csr_bytes: int, mode: str
) -> None:
    graphs = reopened(wholes, cache_hot_bytes=hot_bytes, cache_csr_bytes=csr_bytes, read_traversal_mode=mode)

    assert broken_promises(graphs) == []


def test_no_answer_depends_on_the_rules_of_the_plan(wholes: Graphs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "planned", lower)

    assert broken_promises(reopened(wholes)) == []


def test_no_answer_depends_on_indexes_fragments_or_compaction(wholes: Graphs, tmp_path: Path) -> None:
    scattered = {name: made_in_pieces(tmp_path, wholes[name], scene) for name, scene in SCENES.items()}
    readers = reopened(scattered)
    assert broken_promises(readers) == []

    before = {name: fragments(graph) for name, graph in scattered.items()}
    for name, graph in scattered.items():
        keys = [key for key, count in before[name].items() if count > 1]
        if keys:
            graph.write({key: og.Compact() for key in keys})

    assert all(count <= 1 for graph in scattered.values() for count in fragments(graph).values())
    assert sum(sum(counts.values()) for counts in before.values()) > 30
    assert broken_promises(readers) == [], "a handle that read before the compaction"
    assert broken_promises(reopened(scattered)) == [], "a handle that was opened after it"


def fragments(graph: og.Graph) -> dict[str, int]:
    view = graph.view()
    return {key: len(view.table(key).dataset.get_fragments()) for key in view.entries}
