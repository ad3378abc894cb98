"""An apply on an object store falls asleep, loses its lease, and wakes when others have gone on: it harms nothing."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import orjson
import pytest
from apply_sleeper import LEASE_TIMES, Bed, SleepingApply

import omnigraph as og
from omnigraph.base import failpoints
from omnigraph.manifest import layout
from s3_server import S3Server

pytestmark = pytest.mark.slow
FILES = (layout.SCHEMA_SOURCE, layout.SCHEMA_IR, layout.SCHEMA_STATE)
FIRST = "node A { name: String @key  note: String? }\n"
WITH_X = "node A { name: String @key  note: String?  x: I32? }\n"
WITH_XY = "node A { name: String @key  note: String?  x: I32?  y: I32? }\n"
RENAMED = 'node B @rename_from("A") { name: String @key  text: String? @rename_from("note") }\n'


@pytest.fixture(autouse=True)
def _disarmed() -> Iterator[None]:
    yield
    failpoints.disarm_all()


@pytest.fixture
def graph(s3_server: S3Server) -> og.Graph:
    graph = og.Graph.init(s3_server.uri(), FIRST, settings=s3_server.settings(**LEASE_TIMES))
    graph.mutate('query q() { insert A { name: "a", note: "n" } }')
    return graph


def _opened(graph: og.Graph, mode: str = "rw") -> og.Graph:
    return og.Graph.open(graph.uri, mode, settings=graph.settings)


def _names(graph: og.Graph) -> list[str]:
    return [orjson.loads(line)["data"]["name"] for line in b"".join(graph.export()).splitlines()]


def _check(graph: og.Graph, source: str, names: list[str]) -> None:
    """Every reader has this schema and these rows, before and after somebody opens the graph to write."""
    for mode in ("r", "rw", "r"):
        seen = _opened(graph, mode)
        assert seen.schema().source == source
        assert _names(seen) == names
    assert og.verify(graph.uri, settings=graph.settings).findings == ()
    files = [graph.context.objects.get(key) for key in FILES]
    assert [found.data if found else None for found in files] == [
        seen.schema().source_bytes,
        seen.schema().ir_json,
        seen.schema().state_json,
    ]


@pytest.mark.parametrize("later", [WITH_XY, FIRST], ids=["another", "the first again"])
@pytest.mark.parametrize("key", FILES)
def test_an_apply_that_wakes_late_puts_no_file_in_place_of_a_later_one(graph: og.Graph, key: str, later: str) -> None:
    asleep = SleepingApply(graph, WITH_X, Bed(key=f"^{re.escape(key)}$", verbs=("put", "put_if_match")))
    try:
        rival = _opened(graph)
        assert rival.schema().source == WITH_X, "it is published"
        rival.mutate('query q() { insert A { name: "r" } }')
        rival.refresh()
        assert rival.schema_apply(later).applied
        assert asleep.wake() == "applied"
    finally:
        asleep.end()
    _check(graph, later, ["a", "r"])


def test_an_apply_that_takes_itself_back_late_removes_nothing_of_a_later_one(graph: og.Graph) -> None:
    asleep = SleepingApply(graph, WITH_X, Bed(key=r"ir\.json", verbs=("delete",), fails_at="schema_apply.mid_phase_b"))
    told: list[str] = []
    try:
        rival = _opened(graph)
        rival.refresh()
        failpoints.arm("schema_apply.post_manifest_commit_pre_phase_d", lambda: told.append(asleep.wake()))
        assert rival.schema_apply(WITH_XY).applied
    finally:
        asleep.end()
    assert "RecoveryRequired" in told[0]
    _check(graph, WITH_XY, ["a"])


def test_an_apply_that_wakes_late_does_not_end_the_turn_of_another(graph: og.Graph) -> None:
    asleep = SleepingApply(graph, WITH_X, Bed(point="schema_apply.lock_made"))
    third, rival = _opened(graph), _opened(graph)
    told: list[str] = []

    def between() -> None:
        told.append(asleep.wake())
        with pytest.raises(og.Conflict, match="a schema apply is running"):
            third.branch_create("b")

    try:
        failpoints.arm("stage.files_written", between)
        for _ in range(20):
            try:
                assert rival.schema_apply(RENAMED).applied
                break
            except og.Conflict as error:
                assert "in progress" in str(error)
                time.sleep(0.3)
    finally:
        asleep.end()
    assert "locked by" in told[0]
    assert _opened(graph).branch_list() == ["main"]
    _check(graph, RENAMED, ["a"])
    third.branch_create("b")


def test_even_without_its_branch_an_apply_that_runs_keeps_branches_from_being_made(graph: og.Graph) -> None:
    """A store deletes without a condition: a sleeper that had looked already may take the branch of another."""
    third, met = _opened(graph), []

    def between() -> None:
        graph.context.objects.delete("__manifest/_refs/branches/__schema_apply_lock__.json")
        with pytest.raises(og.Conflict, match="a schema apply is running"):
            third.branch_create("b")
        met.append("refused")

    failpoints.arm("stage.files_written", between)
    with pytest.raises(og.Conflict, match="took over"):
        graph.schema_apply(RENAMED)
    assert met == ["refused"]
    _check(graph, FIRST, ["a"])
    assert _opened(graph).schema_apply(RENAMED).applied
