"""Several processes make and delete tags and branches of the same names while others write and clean up."""

from __future__ import annotations

import multiprocessing
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path

import pytest
from tag_children import NAMES, live
from travel_scene import NAMES as NAMES_QUERY
from travel_scene import SCHEMA, Past, add, clean, people

import omnigraph as og
from omnigraph.base import failpoints

pytestmark = pytest.mark.slow

WORKERS, ROUNDS = 4, 30
KNOWN = {"Conflict", "NotFound", "ExpectedVersionMismatch", "RowLevelCasContention", "BadRequest"}


def test_racing_tags_and_branches_never_share_a_name_and_tagged_commits_stay(tmp_path: Path) -> None:
    graph = og.Graph.init(str(tmp_path / "graph"), SCHEMA)
    add(graph, "first")
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(WORKERS, spawn) as pool:
        running = [pool.submit(live, graph.uri, number, ROUNDS) for number in range(WORKERS)]
        done = [future.result(timeout=250) for future in running]

    again = og.Graph.open(graph.uri)
    tags = {tag.name for tag in again.tag_list()}
    assert tags.isdisjoint(again.branch_list())
    own = {name: rows for d in done for name, rows in d.own.items()}
    assert own.keys() <= tags
    for name, rows in own.items():
        assert len(again.query(NAMES_QUERY, snapshot=name).rows) == rows
    assert {e.split(": ")[1] for d in done for e in d.errors} <= KNOWN, [d.errors for d in done]
    for what in ("tag", "branch", "deleted"):
        assert sum(d.made[what] for d in done) > 0, what
    assert own
    assert {n for n in tags if not n.startswith("kept/")} <= set(NAMES)


def test_of_many_who_make_the_same_tag_one_does(past: Past) -> None:
    handles = [og.Graph.open(past.graph.uri) for _ in range(8)]
    start = threading.Barrier(len(handles))

    def make(number: int) -> str:
        start.wait()
        try:
            return handles[number].tag_create("v1", f"main~{number % 3}").graph_commit_id
        except og.Conflict as error:
            assert "already exists" in str(error)
            return ""

    with ThreadPoolExecutor(len(handles)) as pool:
        told = [answer for answer in pool.map(make, range(len(handles))) if answer]
    assert told == [tag.graph_commit_id for tag in past.graph.tag_list()]


def test_a_tag_and_a_branch_of_one_name_made_at_once_are_one_of_them(past: Past) -> None:
    makers = [og.Graph.open(past.graph.uri), og.Graph.open(past.graph.uri)]
    for turn in range(6):
        name, start = f"n{turn}", threading.Barrier(2)

        def make(kind: int, name: str = name, start: threading.Barrier = start) -> bool:
            start.wait()
            try:
                makers[kind].tag_create(name) if kind else makers[kind].branch_create(name)
            except og.Conflict:
                return False
            return True

        with ThreadPoolExecutor(2) as pool:
            assert sorted(pool.map(make, range(2))) == [False, True]
        tagged = name in [tag.name for tag in past.graph.tag_list()]
        assert tagged != (name in past.graph.branch_list())


def let_go_on(thread: threading.Thread) -> None:
    """Time to do its work before the tag is there, if nothing keeps it: the tag's maker has already looked."""
    thread.start()
    thread.join(1)


def test_a_commit_that_is_being_tagged_is_not_collected(past: Past) -> None:
    """Cleanup decided that the version goes, and the tag comes before it does."""
    graph, other = past.graph, og.Graph.open(past.graph.uri)
    add(graph, "zoe")
    cleaned = threading.Event()

    def clean_meanwhile() -> None:
        clean(other)
        cleaned.set()

    thread = threading.Thread(target=clean_meanwhile)
    failpoints.arm("tag_create.pre_put", lambda: let_go_on(thread))
    graph.tag_create("v1", past.ids["ana"])
    failpoints.disarm_all()
    thread.join()
    assert cleaned.is_set()
    assert people(og.Graph.open(graph.uri), snapshot="v1") == past.shown["ana"]


def test_a_branch_that_is_being_tagged_is_not_deleted(past: Past) -> None:
    graph, other = past.graph, og.Graph.open(past.graph.uri)
    told: list[str] = []

    def delete_meanwhile() -> None:
        try:
            other.branch_delete("draft")
        except og.Conflict as error:
            told.append(str(error))

    thread = threading.Thread(target=delete_meanwhile)
    failpoints.arm("tag_create.pre_put", lambda: let_go_on(thread))
    graph.tag_create("v1", "draft~1")
    failpoints.disarm_all()
    thread.join()
    assert "tag 'v1' still depends on it" in told[0]
    assert people(graph, snapshot="v1") == past.shown["di"]
