"""A store that goes wrong by rules: without a rule it keeps what every store owes, with one it does just that."""

from __future__ import annotations

import inspect
import time
from pathlib import Path

import pyarrow as pa
import pytest
import test_objects

from faulty_objects import READS, WRITES, Fault, FaultyObjects, of_graph, on
from omnigraph import Append, Graph, Unavailable
from omnigraph.storage.objects import LocalObjectStore, ObjectStore
from omnigraph.storage.s3 import S3ObjectStore

pytestmark = pytest.mark.slow

KEY = test_objects.KEY

# The contract of every store, asked of this one: pytest collects the tests here and gives them the store below.
globals().update(
    {
        name: promise
        for name, promise in vars(test_objects).items()
        if name.startswith("test_") and "store" in inspect.signature(promise).parameters
    }
)


@pytest.fixture(params=["local", pytest.param("s3", marks=[pytest.mark.slow, pytest.mark.full])])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectStore:
    if request.param == "s3":
        server = request.getfixturevalue("s3_server")
        return FaultyObjects(S3ObjectStore(server.uri(), server.access()))
    return FaultyObjects(LocalObjectStore(str(tmp_path)))


@pytest.fixture
def faulty(tmp_path: Path) -> FaultyObjects:
    return FaultyObjects(LocalObjectStore(str(tmp_path)))


def test_the_whole_contract_is_asked_here() -> None:
    assert sum(1 for name in globals() if name.startswith("test_") and hasattr(test_objects, name)) >= 14


def test_a_call_that_fails_before_has_done_nothing(faulty: FaultyObjects) -> None:
    faulty.when(Fault.BEFORE, on("put_if_absent"))
    with pytest.raises(Unavailable, match="no answer"):
        faulty.put_if_absent(KEY, b"one")
    assert not faulty.exists(KEY)
    assert faulty.put_if_absent(KEY, b"two") is not None


def test_a_lost_answer_leaves_the_work_done(faulty: FaultyObjects) -> None:
    faulty.when(Fault.LOST, on("put_if_absent"))
    with pytest.raises(Unavailable):
        faulty.put_if_absent(KEY, b"one")
    assert faulty.get(KEY).data == b"one"
    assert faulty.put_if_absent(KEY, b"two") is None


def test_a_rule_names_its_calls_and_how_many_pass_first_and_go_wrong(faulty: FaultyObjects) -> None:
    rule = faulty.when(Fault.BEFORE, on("get", key="a/"), skip=1, times=2)
    answers = []
    for key in ("a/1", "b/1", "a/2", "a/3", "a/4"):
        try:
            answers.append(faulty.get(key))
        except Unavailable:
            answers.append("error")
    assert answers == [None, None, "error", "error", None]
    assert [c.key for c in rule.fired] == ["a/2", "a/3"]
    assert [str(c) for c in faulty.calls[:2]] == ["0 get a/1", "1 get b/1"]


def test_stale_reads_answer_as_things_were(faulty: FaultyObjects) -> None:
    faulty.put("k/old", b"1")
    faulty.remember("k")
    faulty.put("k/old", b"2")
    faulty.put("k/new", b"1")
    faulty.when(Fault.STALE, on("get", "exists", "list", key="k"), times=None)
    assert (faulty.get("k/old").data, faulty.get("k/new"), faulty.exists("k/new")) == (b"1", None, False)
    assert faulty.list("k") == ["k/old"]
    faulty.heal()
    assert (faulty.get("k/old").data, faulty.list("k")) == (b"2", ["k/new", "k/old"])


def test_large_files_go_wrong_by_the_same_rules(faulty: FaultyObjects) -> None:
    faulty.when(Fault.BEFORE, on("put_stream"))
    with pytest.raises(Unavailable):
        faulty.put_stream(KEY, iter([b"on", b"e"]), 3)
    assert not faulty.exists(KEY)
    faulty.when(Fault.LOST, on("put_stream"))
    with pytest.raises(Unavailable):
        faulty.put_stream(KEY, iter([b"on", b"e"]), 3)
    assert b"".join(faulty.stream(KEY)) == b"one"
    faulty.remember(KEY)
    faulty.put_stream(KEY, iter([b"two"]), 3)
    faulty.when(Fault.STALE, on("stream"))
    assert [b"".join(faulty.stream(KEY)) for _ in range(2)] == [b"one", b"two"]
    faulty.when(Fault.BEFORE, on("stream"))
    with pytest.raises(Unavailable):
        next(faulty.stream(KEY))


def test_it_has_every_verb_of_a_store() -> None:
    verbs = {name for name in vars(ObjectStore) if not name.startswith("_")}
    assert verbs == {*READS, *WRITES}
    assert all(callable(getattr(FaultyObjects, verb, None)) for verb in verbs)


def test_a_late_answer_is_the_right_one(faulty: FaultyObjects, monkeypatch: pytest.MonkeyPatch) -> None:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    faulty.put(KEY, b"x")
    faulty.when(Fault.LATE, on("get"), seconds=7.0)
    assert faulty.get(KEY).data == b"x"
    assert waits == [7.0]


@pytest.mark.parametrize("place", ["local", pytest.param("s3", marks=pytest.mark.slow)])
def test_a_graph_runs_over_it_and_every_small_object_passes_through(
    request: pytest.FixtureRequest, tmp_path: Path, place: str
) -> None:
    schema = "node Person { name: String? }"
    if place == "s3":
        server = request.getfixturevalue("s3_server")
        made = Graph.init(server.uri(), schema, settings=server.settings())
    else:
        made = Graph.init(str(tmp_path / "graph"), schema)
    graph, faulty = of_graph(made, leased=True)
    receipt = graph.write({"node:Person": Append(_person(graph, "ana"))})
    assert made.operation(receipt.operation_id).status == "committed"
    touched = {(c.verb, c.key.split("/")[0]) for c in faulty.calls}
    assert {("put_if_absent", "__recovery"), ("delete", "__recovery")} <= touched
    assert {v for v, k in touched if k == "__locks"} >= {"get", "put_if_match"}


def _person(graph: Graph, name: str) -> pa.Table:
    schema = graph.catalog.arrow_schema("node:Person")
    return pa.table({f.name: [name] for f in schema}, schema=schema)
