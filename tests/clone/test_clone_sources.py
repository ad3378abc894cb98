"""Sources in every condition: with an interrupted write, with a past of recoveries, read-only, with large files."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from clone_scene import SCHEMA, WIDER, add, clone, content, ended, exported, names

import omnigraph as og
from graph_places import Home, Place, S3Place
from omnigraph.base import failpoints
from omnigraph.base.errors import Unavailable
from omnigraph.engine.clone.claim import refuse_same_place
from omnigraph.engine.verify.run import verify
from omnigraph.storage.objects import STREAM_BYTES
from omnigraph.storage.places import open_root

pytestmark = pytest.mark.slow


def write_and_die(home: Home, point: str, branch: str | None) -> None:
    graph = home.open()
    failpoints.arm(point, failpoints.kill_now)
    add(graph, "lost", branch=branch)


def apply_and_die(home: Home, point: str) -> None:
    graph = home.open()
    failpoints.arm(point, failpoints.kill_now)
    graph.schema_apply(WIDER)


@pytest.fixture
def source(place: Place) -> Home:
    home = Home(place.fresh(), place.settings)
    with home.init(SCHEMA) as graph:
        add(graph, "ann")
        graph.branch_create("draft")
        add(graph, "bob", branch="draft")
    return home


@pytest.mark.parametrize("branch", [None, "draft"])
@pytest.mark.parametrize("point", ["load.post_phase_a_pre_phase_b", "load.post_phase_b_pre_manifest_commit"])
def test_of_an_interrupted_write_the_copy_has_nothing(source: Home, copy: Home, point: str, branch: str | None):
    with source.open("r") as graph:
        expected = content(graph)
    assert ended(write_and_die, source, point, branch) == -9
    pending = os.listdir(f"{source.uri}/__recovery")
    assert clone(source, copy).findings == ()
    assert os.listdir(f"{source.uri}/__recovery") == pending, "the source was touched"
    with copy.open() as graph:
        assert content(graph) == expected
        add(graph, "lost", branch=branch)
        assert graph.recoveries().pending == ()
    with source.open() as graph:
        assert graph.recoveries().pending == ()


def test_the_record_of_recoveries_comes_along(source: Home, copy: Home):
    assert ended(write_and_die, source, "load.post_phase_b_pre_manifest_commit", None) == -9
    with source.open() as graph:
        told = graph.recoveries()
    assert len(told.records) == 1
    clone(source, copy)
    assert copy.open("r").recoveries() == told


def test_a_source_that_cannot_be_written_is_copied_without_locks(
    source: Home, copy: Home, monkeypatch: pytest.MonkeyPatch
):
    def refused(*_):
        raise Unavailable("no permission to write there", what="permissions")

    with monkeypatch.context() as read_only:
        read_only.setattr("omnigraph.engine.clone.cut.staging_heartbeat", refused)
        before = sorted(os.listdir(source.uri))
        assert clone(source, copy).findings == ()
        assert sorted(os.listdir(source.uri)) == before
    assert content(copy.open("r")) == content(source.open("r"))


def test_a_store_that_is_down_is_not_taken_for_a_read_only_one(
    source: Home, copy: Home, monkeypatch: pytest.MonkeyPatch
):
    def refused(*_):
        raise Unavailable("no network", what="store")

    monkeypatch.setattr("omnigraph.engine.clone.cut.staging_heartbeat", refused)
    with pytest.raises(og.Unavailable, match="no network"):
        clone(source, copy)


def test_what_staged_and_never_committed_stays_behind(source: Home, copy: Home):
    stray = next(f for f in _files(source.uri) if f.startswith("nodes/") and "/data/" in f)
    with open(f"{source.uri}/{os.path.dirname(stray)}/staged.lance", "wb") as file:
        file.write(b"never committed")
    clone(source, copy)
    assert not any(name.endswith("staged.lance") for name in _files(copy.uri))


def test_files_larger_than_a_part_are_the_same(place: Place, copy: Home):
    source, large = Home(place.fresh(), place.settings), os.urandom(STREAM_BYTES + 1_000_000)
    with source.init("node File { name: String @key  body: Blob? }") as graph:
        _put(graph, large)
    clone(source, copy)
    assert exported(copy.open("r")) == exported(source.open("r"))


def test_files_larger_than_a_part_are_the_same_on_a_store(place: Place, s3_server):
    store = S3Place(s3_server)
    source = Home(place.fresh(), store.settings)
    there, back = (Home(p.fresh(), store.settings) for p in (store, place))
    with source.init("node File { name: String @key  body: Blob? }") as graph:
        _put(graph, os.urandom(2 * STREAM_BYTES + 1_000_000))
    clone(source, there)
    clone(there, back)
    assert exported(back.open("r")) == exported(source.open("r"))
    assert verify(there.open("r").context).findings == ()


def test_places_are_told_apart_by_whole_names(tmp_path):
    root = f"{tmp_path}/graph"
    for source, target in (("s3://b/graph", "s3://b/graph2"), ("s3://b/g", "s3://c/g"), (root, f"{root}2")):
        refuse_same_place(open_root(source), open_root(target))
    for source, target in (
        ("s3://b/graph", "s3://b/graph/"),
        ("s3://b/graph", "s3://b/graph/copy"),
        ("s3://b/graph/copy", "s3://b/graph"),
        (root, f"file://{root}"),
    ):
        with pytest.raises(og.BadRequest):
            refuse_same_place(open_root(source), open_root(target))


def test_a_link_to_the_graph_is_the_graph_itself(source: Home, tmp_path):
    os.symlink(source.uri, tmp_path / "link")
    with pytest.raises(og.BadRequest, match="is the graph itself"):
        clone(source, Home(str(tmp_path / "link"), source.settings))


def test_an_init_that_begins_during_a_clone_is_refused(source: Home, copy: Home):
    refused = []

    def begin() -> None:
        with pytest.raises(og.Conflict, match="unfinished clone"):
            copy.init("node A { name: String @key }")
        refused.append(True)

    failpoints.arm("clone.copied", begin)
    clone(source, copy)
    assert refused == [True]
    assert names(copy.open("r")) == ["ann"]


def test_while_a_schema_apply_runs_nothing_is_copied(source: Home, copy: Home):
    refused = []

    def begin() -> None:
        with pytest.raises(og.Conflict, match="a schema apply is running"):
            clone(source, copy)
        refused.append(True)

    failpoints.arm("schema_apply.lock_made", begin)
    source.open().schema_apply(f"{SCHEMA}\nnode Late {{ name: String @key }}\n")
    assert refused == [True]
    assert not os.path.exists(copy.uri)
    clone(source, copy)
    assert "Late" in copy.open("r").schema().source


@pytest.mark.parametrize("point", ["schema_apply.lock_made", "schema_apply.post_phase_b_pre_manifest_commit"])
def test_a_schema_apply_that_died_is_settled_by_an_open_and_then_the_source_is_copied(
    source: Home, copy: Home, point: str
):
    assert ended(apply_and_die, source, point) == -9
    with pytest.raises(og.Conflict, match="a schema apply is running") as refused:
        clone(source, copy)
    assert "open the graph again" in refused.value.hint
    source.open().close()
    assert clone(source, copy).findings == ()
    assert copy.open("r").schema().source == source.open("r").schema().source
    assert content(copy.open("r")) == content(source.open("r"))


def _put(graph: og.Graph, body: bytes) -> None:
    schema = graph.view().table("node:File").schema
    values = {"id": "f", "name": "f", "body": body}
    rows = pa.table({f.name: pa.array([values[f.name]], f.type) for f in schema}, schema=schema)
    graph.write({"node:File": og.Append(rows)})


def _files(uri: str) -> list[str]:
    return sorted(os.path.relpath(os.path.join(f, name), uri) for f, _, names in os.walk(uri) for name in names)
