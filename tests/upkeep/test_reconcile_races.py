"""Cleanup beside living loads, writers and branch verbs in other processes: nobody loses anything."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from upkeep_children import load, write_and_die, write_many
from upkeep_scene import WAIT_S, both, die, grow_old, ids, kept, outlast_slack, removed, running, sweep

from graph_places import Home, Place
from omnigraph.commit.context import CommitContext
from omnigraph.commit.staging import list_heartbeats
from omnigraph.engine.upkeep.cleanup import cleanup
from omnigraph.manifest import layout
from omnigraph.storage.objects import ObjectStore
from processes import FORKED

pytestmark = pytest.mark.slow
WRITERS, ROUNDS = 2, {"disk": 25, "s3": 6}


@pytest.mark.parametrize("branch", [None, "draft"], ids=["main", "branch"])
def test_what_a_living_load_staged_survives_a_cleanup_that_spares_no_age(
    place: Place, home: Home, branch: str | None
) -> None:
    graph = home.open()
    if branch is not None:
        graph.branch_create(branch)
    grow_old(place, home.uri)
    with running(load, home, branch, "loaded", {}) as (process, ready, go):
        assert ready.wait(WAIT_S)
        outlast_slack()
        assert len(list_heartbeats(graph.context)) == 1
        for _ in range(2):
            done = sweep(home)
            assert (removed(done), kept(done)) == ([], {})
        go.set()
        process.join(WAIT_S)
        assert process.exitcode == 0
    assert "loaded" in ids(home.open(), branch)
    assert "loaded" in ids(home.open(), branch, "node:Right")
    assert list_heartbeats(graph.context) == []


def test_files_staged_without_a_sign_of_life_are_not_spared_by_that_of_a_later_load(place: Place, home: Home) -> None:
    graph = home.open()
    location = graph.snapshot().tables["node:Left"].location
    graph.context.objects.put(f"{location}/data/lost.lance", b"x")
    grow_old(place, home.uri)
    with running(load, home, None, "loaded", {}) as (process, ready, go):
        assert ready.wait(WAIT_S)
        assert removed(sweep(home)) == [location]
        assert not graph.context.objects.exists(f"{location}/data/lost.lance")
        go.set()
        process.join(WAIT_S)
    assert ids(home.open()) == ["first", "loaded"]


class Passing:
    """The objects of a graph, in which something happens right after a fork was found to have a version."""

    def __init__(self, inner: ObjectStore, fork: str, happens: Callable[[], None]) -> None:
        self._inner, self._fork, self._happens = inner, fork, happens
        self.happened = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def exists(self, key: str) -> bool:
        found = self._inner.exists(key)
        if found and key.startswith(f"{self._fork}/_versions/") and not self.happened:
            self.happened += 1
            self._happens()
        return found


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "made again"])
def test_a_fork_that_goes_with_its_branch_while_cleanup_looks_at_it_is_no_error(home: Home, again: bool) -> None:
    other = home.open()
    for _ in range(2):
        # The fork of a second life starts with versions of its own, which tell whose it is.
        other.branch_create("draft")
        other.write(both("of a first life"), branch="draft")
        other.branch_delete("draft")
    other.branch_create("draft")
    die(write_and_die, home, "stage.files_written", "draft", "lost")

    def happens() -> None:
        other.branch_delete("draft")
        if again:
            other.branch_create("draft")
            other.write(both("new"), branch="draft")

    root = home.open("r").context.root
    passing = Passing(root.objects, f"{layout.table_location('node', 'Left')}/tree/draft", happens)
    context = CommitContext.of(dataclasses.replace(root, objects=passing), home.settings)  # type: ignore[arg-type]
    done = cleanup(context, 1_000_000, None, True, home.settings.staging_grace)
    assert passing.happened == 1
    assert [table.error for table in done.tables if table.error is not None] == []
    assert ids(home.open()) == ["first"]
    if again:
        assert ids(home.open(), "draft") == ["first", "new"]
    assert kept(sweep(home)) == {}


def test_writers_and_branch_verbs_lose_nothing_to_cleanups_beside_them(place: Place, home: Home) -> None:
    done = FORKED.Queue()
    writers = [
        FORKED.Process(target=write_many, args=(home, number, ROUNDS[place.name], done)) for number in range(WRITERS)
    ]
    told: list[list[tuple[str | None, str]]] = []
    try:
        for writer in writers:
            writer.start()
        while len(told) < WRITERS and all(w.is_alive() or w.exitcode == 0 for w in writers):
            result = sweep(home, home.settings.staging_grace)
            assert [table.error for table in result.tables if table.error is not None] == []
            while not done.empty():
                told += [done.get()]
    finally:
        for writer in writers:
            writer.join(WAIT_S if len(told) == WRITERS else 0)
            if writer.is_alive():
                writer.kill()
                writer.join()
    assert [writer.exitcode for writer in writers] == [0] * WRITERS
    graph, rows = home.open(), [row for each in told for row in each]
    assert [row for row in rows if row[0] == "error"] == []
    for branch in {branch for branch, _ in rows}:
        wanted = {name for on, name in rows if on == branch}
        for key in ("node:Left", "node:Right"):
            assert wanted <= set(ids(graph, branch, key))
    assert kept(sweep(home)) == {}
    assert sorted(graph.branch_list()) == ["main", *(f"own{n}" for n in range(WRITERS))]
