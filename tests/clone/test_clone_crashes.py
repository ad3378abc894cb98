"""A clone that dies anywhere leaves a place that opens as nothing, or as the whole copy; a second clone finishes it."""

from __future__ import annotations

import os

import pytest
from clone_children import clone_and_die
from clone_scene import add, clone, content, ended, histories

import omnigraph as og
from graph_places import Home, Place, S3Place
from omnigraph.base import failpoints
from omnigraph.engine.verify.run import verify
from omnigraph.storage.failures import translated
from omnigraph.storage.objects import LocalObjectStore, Missing

pytestmark = pytest.mark.slow

BEFORE = (
    "clone.claimed",
    "clone.cut",
    "clone.branches_placed",
    "clone.file_copied",
    "clone.copied",
    "clone.forks_placed",
    "clone.pre_phase_a",
    "clone.post_phase_b_pre_manifest_commit",
    "clone.branches_noted",
    "clone.pre_manifest",
)
AFTER = ("clone.manifest_placed", "clone.born")


@pytest.fixture(autouse=True)
def nothing_stays_armed():
    yield
    failpoints.disarm_all()


@pytest.mark.slow
@pytest.mark.parametrize("point", BEFORE)
def test_a_clone_killed_before_its_last_step_is_no_graph_and_is_finished_by_another(
    point: str, furnished: Home, copy: Home
):
    assert ended(clone_and_die, furnished, copy, point) == -9
    with pytest.raises(og.Conflict, match="unfinished clone") as refused:
        copy.open("r")
    assert "omnigraph clone again" in refused.value.hint
    with pytest.raises(og.Conflict, match="unfinished clone"):
        copy.init("node A { name: String @key }")
    assert clone(furnished, copy).resumed
    _is_whole(furnished, copy)


@pytest.mark.slow
@pytest.mark.parametrize("point", AFTER)
def test_a_clone_killed_after_its_last_step_is_a_graph_and_a_second_one_says_so(
    point: str, furnished: Home, copy: Home
):
    assert ended(clone_and_die, furnished, copy, point) == -9
    assert content(copy.open("r")) == content(furnished.open("r"))
    done = clone(furnished, copy)
    assert (done.resumed, done.files) == (True, 0)
    _is_whole(furnished, copy)


def test_a_copy_that_is_in_use_is_left_alone_though_its_clone_died_at_the_very_end(furnished: Home, copy: Home):
    assert ended(clone_and_die, furnished, copy, "clone.born") == -9
    with copy.open() as graph:
        add(graph, "new")
        expected = content(graph)
    for _ in range(2):
        with pytest.raises(og.Conflict, match="is a graph already"):
            clone(furnished, copy)
    assert content(copy.open("r")) == expected


@pytest.mark.slow
def test_a_clone_on_a_store_killed_midway_is_finished_by_another(furnished: Home, s3_server):
    place = S3Place(s3_server)
    target = Home(place.fresh(), place.settings)
    assert ended(clone_and_die, furnished, target, "clone.file_copied", 5) == -9
    with pytest.raises(og.Conflict, match="unfinished clone"):
        target.open("r")
    assert clone(furnished, target).resumed
    assert content(target.open("r")) == content(furnished.open("r"))


def test_files_that_are_there_already_are_not_copied_again(furnished: Home, copy: Home):
    whole = clone(furnished, Home(f"{copy.uri}-other", copy.settings))
    _stopped(furnished, copy, "clone.copied")
    done = clone(furnished, copy)
    # Files of versions are small and may differ, so they are copied each time.
    assert done.bytes_copied < whole.bytes_copied / 2
    _is_whole(furnished, copy)


def test_what_an_earlier_run_left_and_nobody_needs_goes(furnished: Home, copy: Home):
    _stopped(furnished, copy, "clone.copied")
    strays = ["nodes/left/data/stray.lance", "__manifest/stray.json", "nodes/left/_versions/1.manifest"]
    for stray in strays:
        os.makedirs(os.path.dirname(f"{copy.uri}/{stray}"), exist_ok=True)
        with open(f"{copy.uri}/{stray}", "wb") as file:
            file.write(b"x")
    data = next(f for f in _files(copy.uri) if "/data/" in f and f.startswith("nodes/") and f not in strays)
    with open(f"{copy.uri}/{data}", "ab") as file:
        file.write(b"torn")
    clone(furnished, copy)
    assert not any(os.path.exists(f"{copy.uri}/{stray}") for stray in strays)
    _is_whole(furnished, copy)


def test_the_rest_of_one_graph_is_not_finished_with_another(furnished: Home, copy: Home, place: Place):
    _stopped(furnished, copy, "clone.copied")
    other = Home(place.fresh(), place.settings)
    other.init("node A { name: String @key }").close()
    with pytest.raises(og.Conflict, match="unfinished clone of another graph"):
        clone(other, copy)


def test_a_file_that_the_source_lost_is_named_and_the_copy_is_no_graph(furnished: Home, place: Place, copy: Home):
    source = Home(place.copy(furnished.uri), furnished.settings)
    lost = next(f for f in _files(source.uri) if f.startswith("nodes/") and "/data/" in f and "/tree/" not in f)
    os.unlink(f"{source.uri}/{lost}")
    with pytest.raises(og.Conflict, match="is missing") as refused:
        clone(source, copy)
    assert os.path.basename(lost).split(".")[0] in str(refused.value)
    with pytest.raises(og.Conflict, match="unfinished clone"):
        copy.open("r")


def test_a_copy_that_does_not_pass_is_no_graph(furnished: Home, copy: Home):
    """A file that vanishes after it was copied is found at the end."""

    def lose() -> None:
        data = next(f for f in _files(copy.uri) if f.startswith("nodes/") and "/data/" in f and "/tree/" not in f)
        os.unlink(f"{copy.uri}/{data}")

    failpoints.arm("clone.born", lose)
    with pytest.raises(og.Conflict, match="the copy is not whole"):
        clone(furnished, copy)
    with pytest.raises(og.Conflict, match="unfinished clone"):
        copy.open("r")
    clone(furnished, copy)
    _is_whole(furnished, copy)


def test_a_store_that_fails_while_copying_is_told_and_the_next_clone_goes_on(
    furnished: Home, copy: Home, monkeypatch: pytest.MonkeyPatch
):
    put = LocalObjectStore.put_stream
    seen = []

    def full(self, key, chunks, size):
        seen.append(key)
        if len(seen) == 9:
            raise OSError(28, "No space left on device")
        put(self, key, chunks, size)

    with monkeypatch.context() as broken:
        broken.setattr(LocalObjectStore, "put_stream", _translated(full))
        with pytest.raises(og.Unavailable, match="disk is full"):
            clone(furnished, copy)
    clone(furnished, copy)
    _is_whole(furnished, copy)


def test_a_file_shorter_than_it_was_listed_is_not_taken(tmp_path):
    store = LocalObjectStore(str(tmp_path))
    with pytest.raises(Missing):
        store.put_stream("nodes/a", iter([b"12"]), 3)
    assert _files(str(tmp_path)) == []


def _translated(act):
    def wrapped(self, key, chunks, size):
        with translated(f"write {key}"):
            act(self, key, chunks, size)

    return wrapped


def _stopped(source: Home, target: Home, point: str) -> None:
    failpoints.arm(point, failpoints.fail)
    with pytest.raises(failpoints.FailpointHit):
        clone(source, target)


def _is_whole(source: Home, target: Home) -> None:
    before, after = source.open("r"), target.open()
    assert content(after) == content(before)
    assert histories(after) == histories(before)
    assert not os.path.exists(f"{target.uri}/__clone_claim.json")
    assert verify(after.context).findings == ()


def _files(uri: str) -> list[str]:
    return sorted(os.path.relpath(os.path.join(f, name), uri) for f, _, names in os.walk(uri) for name in names)
