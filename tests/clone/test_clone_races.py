"""A clone while others write, come and go, and clean up: each branch of the copy is one state that really was."""

from __future__ import annotations

import multiprocessing
import threading
from dataclasses import replace

import pytest
from clone_children import clean_up, clone_and_wait, come_and_go, count_up
from clone_scene import SCHEMA, WAIT_S, add, clone, content, exported, furnish, names, running

import omnigraph as og
from graph_places import DiskPlace, Home, Place, S3Place
from omnigraph.engine.verify.run import verify
from omnigraph.manifest.store import BranchState, ManifestStore
from processes import FORKED

pytestmark = pytest.mark.slow

TWINS = f"{SCHEMA}\nnode Twin {{ name: String @key  age: I32?  bio: String? }}"
BRANCHES = (None, "draft", "team/deep")


@pytest.fixture(params=["disk", pytest.param("s3", marks=pytest.mark.full)])
def here(request: pytest.FixtureRequest, tmp_path) -> Place:
    return S3Place(request.getfixturevalue("s3_server")) if request.param == "s3" else DiskPlace(tmp_path)


def counters(graph: og.Graph, branch: str | None) -> tuple[int, int]:
    """What the last write of a branch said of itself, in each of two tables."""
    found = [
        graph.view(branch).table(f"node:{type_}").find(["counter"], ["age"]).column("age").to_pylist()
        for type_ in ("Person", "Twin")
    ]
    return found[0][0], found[1][0]


@pytest.mark.slow
def test_a_copy_made_under_writers_and_cleanups_shows_whole_commits_between_its_start_and_its_end(here: Place):
    source = Home(here.fresh(), here.settings)
    with source.init(TWINS) as graph:
        add(graph, *(f"p{n}" for n in range(200)))
        graph.branch_create("draft")
        graph.branch_create_from("draft", "team/deep")
    with multiprocessing.Manager() as manager:
        stop, told = FORKED.Event(), manager.dict()
        workers = [running(count_up, source, branch, stop, told) for branch in BRANCHES]
        workers += [running(clean_up, source, stop), running(come_and_go, source, stop)]
        opened = [worker.__enter__() for worker in workers]
        try:
            while any(told.get(branch or "main", 0) < 3 for branch in BRANCHES):
                assert all(process.is_alive() for process in opened)
            for _ in range(2 if here.name == "disk" else 1):
                copy = Home(here.fresh(), here.settings)
                before = dict(told)
                clone(source, copy)
                after = dict(told)
                _is_a_state_between(copy, before, after)
            # Writers went on all the while.
            assert all(after[name] > before[name] for name in before)
        finally:
            stop.set()
            for process in opened:
                process.join(WAIT_S)
            for worker in workers:
                worker.__exit__(None, None, None)
        assert [process.exitcode for process in opened] == [0] * len(opened)
    assert verify(source.open().context).findings == ()


def _is_a_state_between(copy: Home, before: dict[str, int], after: dict[str, int]) -> None:
    graph = copy.open()
    for branch in BRANCHES:
        person, twin = counters(graph, branch)
        assert person == twin
        # A write that was not acknowledged yet may be in it already.
        assert before[branch or "main"] <= person <= after[branch or "main"] + 1
        add(graph, "new", branch=branch)
    assert verify(graph.context).findings == ()


@pytest.mark.slow
def test_a_branch_deleted_while_it_is_copied_is_left_out(furnished: Home, place: Place, copy: Home):
    source = Home(place.fresh(), place.settings)
    furnish(source)
    ready, go, told = FORKED.Event(), FORKED.Event(), FORKED.Queue()
    with running(clone_and_wait, source, copy, "clone.branches_placed", ready, go, told):
        assert ready.wait(WAIT_S)
        with source.open() as graph:
            graph.branch_delete("team/deep")
            expected = content(graph)
        go.set()
        assert told.get(timeout=WAIT_S) == ("cloned", ["main", "done", "draft", "idle"])
    with copy.open("r") as graph:
        assert content(graph) == expected
        assert verify(graph.context).findings == ()


def test_a_branch_deleted_between_its_listing_and_its_reading_is_left_out(
    place: Place, copy: Home, monkeypatch: pytest.MonkeyPatch
):
    source = Home(place.fresh(), place.settings)
    furnish(source)
    read, left = ManifestStore.state, ["team/deep"]

    def gone_when_read(store: ManifestStore, branch: str | None = None) -> BranchState:
        if branch in left:
            left.remove(branch)
            with source.open() as graph:
                graph.branch_delete(branch)
        return read(store, branch)

    monkeypatch.setattr(ManifestStore, "state", gone_when_read)
    clone(source, copy)
    monkeypatch.undo()
    assert left == []
    with copy.open("r") as graph, source.open("r") as origin:
        assert "team/deep" not in graph.branch_list()
        assert content(graph) == content(origin)


@pytest.mark.slow
def test_a_cleanup_takes_nothing_that_a_clone_under_way_still_reads(place: Place, copy: Home):
    source = Home(place.fresh(), place.settings)
    furnish(source)
    with source.open("r") as graph:
        commits = [c.graph_commit_id for c in graph.list_commits()]
        expected = {commit: exported(graph, snapshot=commit) for commit in commits}
    ready, go, told = FORKED.Event(), FORKED.Event(), FORKED.Queue()
    with running(clone_and_wait, source, copy, "clone.cut", ready, go, told):
        assert ready.wait(WAIT_S)
        with source.open() as graph:
            graph.cleanup(1, confirm=True)
        go.set()
        assert told.get(timeout=WAIT_S)[0] == "cloned"
    with copy.open("r") as graph:
        assert {commit: exported(graph, snapshot=commit) for commit in commits} == expected
    with source.open() as graph:
        assert graph.cleanup(1, confirm=True).versions_removed > 0, "the clone left its sign of life"


def test_writers_wait_for_no_copying(place: Place, copy: Home):
    """While files are copied, everybody writes, makes branches and tags."""
    source = Home(place.fresh(), place.settings)
    furnish(source)
    graph = source.open()
    done = []

    def write(stage: str, at: int, total: int) -> None:
        if stage == "copy" and not done:
            done.append(stage)
            add(graph, "late", branch="draft")
            graph.branch_create("late")
            graph.tag_create("late-tag")

    result = clone(source, copy, progress=write)
    assert done == ["copy"]
    after = copy.open("r")
    assert "late" not in [b.name for b in result.branches]
    assert "late" not in names(after, branch="draft")
    assert "late-tag" not in [tag.name for tag in after.tag_list()]


def test_two_clones_never_fill_one_place_at_once(furnished: Home, copy: Home):
    refused: list[Exception] = []
    impatient = Home(copy.uri, _hasty(copy))

    def second() -> None:
        try:
            clone(furnished, impatient)
        except og.OmniError as error:
            refused.append(error)

    def meanwhile(stage: str, at: int, total: int) -> None:
        if stage == "copy" and not refused:
            other = threading.Thread(target=second)
            other.start()
            other.join()

    clone(furnished, copy, progress=meanwhile)
    assert [type(error) for error in refused] == [og.Conflict]
    assert content(copy.open("r")) == content(furnished.open("r"))


def _hasty(home: Home) -> og.Settings:
    return replace(home.settings, write_lock_timeout_ms=200)


def test_progress_tells_every_byte_in_order(furnished: Home, copy: Home):
    told: list[tuple[str, int, int]] = []
    done = clone(furnished, copy, progress=lambda *step: told.append(step))
    copied = [step for step in told if step[0] == "copy"]
    assert copied == sorted(copied)
    assert copied[-1][1] == copied[-1][2] == done.bytes_copied
    assert [*dict.fromkeys(step[0] for step in told)] == ["look", "copy", "check", "verify"]
