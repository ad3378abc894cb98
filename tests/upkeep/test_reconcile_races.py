"""Cleanup beside living loads, writers and branch verbs in other processes: nobody loses anything."""

from __future__ import annotations

import pytest
from upkeep_children import load, write_many
from upkeep_scene import grow_old, ids, kept, outlast_slack, removed, running, sweep

from graph_places import Home, Place
from omnigraph.commit.staging import list_heartbeats
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
        assert ready.wait(60)
        outlast_slack()
        assert len(list_heartbeats(graph.context)) == 1
        for _ in range(2):
            done = sweep(home)
            assert (removed(done), kept(done)) == ([], {})
        go.set()
        process.join(60)
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
        assert ready.wait(60)
        assert removed(sweep(home)) == [location]
        assert not graph.context.objects.exists(f"{location}/data/lost.lance")
        go.set()
        process.join(60)
    assert ids(home.open()) == ["first", "loaded"]


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
            writer.join(60 if len(told) == WRITERS else 0)
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
