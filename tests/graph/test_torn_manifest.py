"""A power cut may leave the newest manifest version empty or cut: it was never acknowledged, and is no wedge."""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pytest

import omnigraph as og


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    graph = og.Graph.init(str(tmp_path / "g"), "node Person { name: String? }")
    graph.write({"node:Person": og.Append(pa.table({"id": ["ana"]}))})
    return graph


def tear_the_next_version(graph: og.Graph, length: int) -> Path:
    """The file of a publish that a power cut interrupted: there, and useless."""
    state = graph.context.manifest.state()
    whole = Path(graph.uri) / state.table.ref.version_file(state.version)
    torn = Path(graph.uri) / state.table.ref.version_file(state.version + 1)
    torn.write_bytes(whole.read_bytes()[:length])
    return torn


@pytest.mark.parametrize("length", [0, 100])
def test_readers_skip_a_torn_manifest_version_and_change_nothing(graph: og.Graph, length: int) -> None:
    torn = tear_the_next_version(graph, length)
    for reader in (graph, og.Graph.open(graph.uri, "r")):
        assert reader.snapshot().tables["node:Person"].row_count == 1
        assert len(reader.list_commits()) == 2
    assert torn.exists()


@pytest.mark.parametrize("length", [0, 100])
def test_a_read_write_open_removes_it_and_the_next_write_lands(graph: og.Graph, length: int) -> None:
    torn = tear_the_next_version(graph, length)
    reopened = og.Graph.open(graph.uri)
    assert not torn.exists()
    receipt = reopened.write({"node:Person": og.Append(pa.table({"id": ["bo"]}))})
    assert receipt.graph_version == 3
    assert og.Graph.open(graph.uri, "r").snapshot().tables["node:Person"].row_count == 2


def test_a_writer_that_is_open_already_removes_it_too(graph: og.Graph) -> None:
    tear_the_next_version(graph, 0)
    graph.write({"node:Person": og.Append(pa.table({"id": ["bo"]}))})
    assert graph.snapshot().tables["node:Person"].row_count == 2


def test_torn_commit_tables_are_mended(graph: og.Graph) -> None:
    graph.close()
    versions = sorted((Path(graph.uri) / "_graph_commits.lance" / "_versions").glob("*.manifest"))
    newest = int(versions[0].stem)
    (versions[0].parent / f"{newest - 1:020d}.manifest").write_bytes(b"")
    graph.write({"node:Person": og.Append(pa.table({"id": ["bo"]}))})
    with og.Graph.open(graph.uri) as reopened:
        assert reopened.status().branches[0].projection_lag == 0


def test_every_file_of_an_acknowledged_write_was_synced(graph: og.Graph, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: set[str] = set()
    fsync = os.fsync

    def noting(fd: int) -> None:
        synced.add(os.path.realpath(f"/proc/self/fd/{fd}"))
        fsync(fd)

    before = {str(p) for p in Path(graph.uri).rglob("*")}
    monkeypatch.setattr(os, "fsync", noting)
    graph.write({"node:Person": og.Append(pa.table({"id": ["bo"]}))})
    made = {str(p) for p in Path(graph.uri).rglob("*") if p.is_file() and str(p) not in before}
    derived = {p for p in made if "latest_version_hint" in p or "/__locks/" in p or "_graph_commit" in p}
    assert made - derived - synced == set()
    assert {os.path.dirname(p) for p in made - derived} - synced == set()
