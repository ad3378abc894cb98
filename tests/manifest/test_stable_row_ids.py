"""A dataset without stable row ids: the graph stays readable, every write is refused by name."""

import itertools
from pathlib import Path

import lance
import pytest
from forge import A, B, forge
from manifest_helpers import CITY, PERSON, SCHEMA, commit_ids, disk_image, people, publish, raw_manifest

from omnigraph import Conflict, Graph, Upsert

REFUSED = "has no stable row ids; export the graph and load it into a new one"


def without_row_ids(place: Path) -> None:
    """The same dataset, version by version, without the flag."""
    old = lance.dataset(str(place))
    contents = [lance.dataset(str(place), version=v).to_table() for v in range(1, old.version + 1)]
    kept = place.with_name(place.name + "-kept")
    place.rename(kept)
    lance.write_dataset(contents[0], str(place), schema=old.schema, enable_stable_row_ids=False)
    for before, after in itertools.pairwise(contents):
        lance.write_dataset(after.slice(before.num_rows), str(place), mode="append")


@pytest.fixture
def written(tmp_path) -> Graph:
    with Graph.init(str(tmp_path / "graph"), SCHEMA) as graph:
        graph.write({"node:Person": Upsert(people("ana"))})
        graph.write({"node:Person": Upsert(people("bob"))})
    return graph


@pytest.mark.parametrize("version", [1, 2, 3])
def test_old_graph_whose_manifest_lacks_them_is_read_and_never_migrated(tmp_path, version: int):
    uri = forge(tmp_path / "graph", version, stable_row_ids=False)
    before = raw_rows(uri)
    for mode in ("r", "rw"):
        graph = Graph.open(uri, mode)
        assert commit_ids(graph) == [B, A]
        assert graph.snapshot().tables["node:Person"].row_count == 2
        assert dict(graph.snapshot_at_version(1).tables)["node:Person"].table_version == 1
        assert "node:Old" in graph.snapshot_at_version(1).tables
    with pytest.raises(Conflict, match=f"__manifest {REFUSED}"):
        publish(graph)
    with pytest.raises(Conflict, match=REFUSED):
        graph.write({"node:Person": Upsert(people("dora"))})
    assert raw_rows(uri) == before


def test_manifest_of_today_without_them_is_read_and_refuses_writes(written: Graph, tmp_path):
    without_row_ids(tmp_path / "graph" / "__manifest")
    graph = Graph.open(written.uri)
    assert commit_ids(graph) == commit_ids(written)
    assert graph.snapshot().tables["node:Person"].row_count == 2
    assert graph.snapshot_at_version(2).tables["node:Person"].row_count == 1
    before = disk_image(tmp_path / "graph" / "__manifest")
    with pytest.raises(Conflict, match=f"__manifest {REFUSED}"):
        graph.write({"node:Person": Upsert(people("cleo"))})
    with pytest.raises(Conflict, match=f"__manifest {REFUSED}"):
        publish(graph)
    assert disk_image(tmp_path / "graph" / "__manifest") == before


def test_data_table_without_them_is_read_and_refuses_writes(written: Graph, tmp_path):
    without_row_ids(tmp_path / "graph" / CITY)
    for mode in ("r", "rw"):
        graph = Graph.open(written.uri, mode)
        assert graph.view().table("node:City").count_rows() == 0
    before = raw_manifest(written.uri)
    with pytest.raises(Conflict, match=f"node:City {REFUSED}"):
        graph.write({"node:City": Upsert(people("Rom"))})
    assert raw_manifest(written.uri) == before


def test_handle_that_follows_a_manifest_without_them_lists_each_commit_once(written: Graph, tmp_path):
    """An old writer goes on while we read; without row ids no row says which version brought it."""
    place = tmp_path / "graph" / "__manifest"
    without_row_ids(place)
    reader = Graph.open(written.uri, "r")
    before = commit_ids(reader)
    newest = lance.dataset(str(place)).to_table(filter="object_type = 'graph_commit'").slice(2, 1)
    row = newest.to_pylist()[0]
    text = row["metadata"].replace(before[0], before[0][:-1] + "Z").replace(before[1], before[0])
    following = {**row, "object_id": f"graph_commit:after:{before[0]}", "metadata": text}
    lance.write_dataset(newest.from_pylist([following], newest.schema), str(place), mode="append")
    assert len(set(commit_ids(reader))) == len(commit_ids(reader)) == len(before) + 1
    assert PERSON in {e.location for e in reader.snapshot().tables.values()}


def raw_rows(uri: str) -> list:
    return lance.dataset(f"{uri}/__manifest").to_table().to_pylist()
