"""Looking and mending beside living writers: nothing false is told, and nothing that was acknowledged is lost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from damage_children import meddle_on, write_on
from damage_scene import PERSON, ids, kinds, reopened, repair, verify

import omnigraph as og
from graph_places import DISK, S3
from processes import FORKED

WAIT_S = 170
ENOUGH = 3
pytestmark = pytest.mark.slow


@contextmanager
def beside(worker: Callable[..., None], graph: og.Graph) -> Iterator[tuple[Any, Any, Any]]:
    """A process at work, the sign for it that it may end, and where it tells what it did."""
    enough, done = FORKED.Event(), FORKED.Queue()
    process = FORKED.Process(target=worker, args=(graph.uri, graph.settings, enough, done))
    process.start()
    try:
        yield process, enough, done
    finally:
        if process.is_alive():
            process.kill()
        process.join(WAIT_S)


def test_a_living_writer_is_no_damage(anywhere: og.Graph) -> None:
    looks = 0
    with beside(write_on, anywhere) as (process, enough, done):
        while process.is_alive() and looks < 200:
            result = verify(anywhere)
            assert kinds(result) == [], result.findings
            looks += 1
            if looks == ENOUGH:
                enough.set()
        names = done.get(timeout=WAIT_S)
        process.join(WAIT_S)
        assert process.exitcode == 0
    assert looks >= ENOUGH
    assert set(names) <= set(ids(reopened(anywhere), PERSON))
    assert kinds(verify(anywhere)) == []


@pytest.mark.parametrize("place", [DISK, pytest.param(S3, marks=pytest.mark.full)], indirect=True)
def test_a_repair_takes_nothing_from_a_living_writer(anywhere: og.Graph) -> None:
    with beside(write_on, anywhere) as (process, enough, done):
        mends = 0
        while process.is_alive() and mends < 200:
            result = repair(anywhere, confirm=True, force=True)
            assert not result.failed, result.tables
            assert {t.action.value for t in result.tables} == {"no_op"}
            mends += 1
            if mends == ENOUGH:
                enough.set()
        names = done.get(timeout=WAIT_S)
        process.join(WAIT_S)
        assert process.exitcode == 0
    assert mends >= ENOUGH
    assert set(names) <= set(ids(reopened(anywhere), PERSON))
    assert kinds(verify(anywhere)) == []


def test_a_writer_and_a_repair_settle_the_same_drift_once(graph: og.Graph) -> None:
    """Both adopt what another tool compacted; whoever comes second finds it done."""
    with beside(meddle_on, graph) as (process, _enough, done):
        while process.is_alive():
            repair(graph, confirm=True)
        names = done.get(timeout=WAIT_S)
        process.join(WAIT_S)
        assert process.exitcode == 0
    assert names
    repair(graph, confirm=True)
    assert set(names) <= set(ids(reopened(graph), PERSON))
    assert kinds(verify(graph)) == []
