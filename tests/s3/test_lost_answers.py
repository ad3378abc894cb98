"""A store that does what it is asked and whose answer gets lost, at every request of a write, an init and an open.

A client that retries then finds its own object in the way; one that gives up does not know what happened. Either way
the caller is told the truth, or is told that it is in doubt and finds the truth by the operation id.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import count

import pytest
from s3_scene import FOLLOWS, LEASE, PERSON, SCHEMA, Scene, attempt, both, drifted, shown
from sleepers import Sleeper

import omnigraph as og
from fault_proxy import Fate, FaultProxy, Request, Rule
from omnigraph.base import failpoints
from omnigraph.base.errors import Conflict, OmniError, Unavailable
from omnigraph.storage import places
from s3_server import S3Server

pytestmark = pytest.mark.slow
FOR_EVER = 1 << 30
SWEEP_S_MAX = 1200
EVERY_KIND = {"GET", "HEAD", "LIST", "PUT", "PUT if-absent", "PUT if-match", "DELETE"}


def any_request(_request: Request) -> bool:
    return True


def asks(kind: str, place: str) -> Callable[[Request], bool]:
    return lambda request: request.kind == kind and f"/graph/{place}" in request.key


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(s3_server.port) as running:
        yield running


@pytest.fixture
def unprobed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each open asks the store what it can do, as the first one of a process does."""
    monkeypatch.setattr(places, "_probed", set())


# ---- a commit


def swept_commit(scene: Scene, graph_of: Callable[[], og.Graph]) -> Counter[str]:
    """Write again and again, losing the answer to the first, the second, … request, until none is left to lose."""
    lost: Counter[str] = Counter()
    for n in count(1):
        graph = graph_of()
        scene.proxy.calm()
        rule = scene.proxy.add(Rule(any_request, Fate.LOSE_ANSWER, nth=n))
        told = attempt(graph, f"row-{n}")
        log = list(scene.proxy.requests)
        scene.proxy.calm()
        assert scene.check_told(told, f"row-{n}") == "committed", f"{scene.short(log[n - 1])}: {told}"
        assert told.outcome == "committed", f"{scene.short(log[n - 1])}: {told}"
        if not rule.arrived.is_set():
            return lost
        lost[log[n - 1].kind] += 1
    return lost


def test_a_commit_survives_the_loss_of_any_one_answer(s3_server: S3Server, proxy: FaultProxy) -> None:
    scene = Scene.made(s3_server, proxy, write_lease_lifetime_ms=30_000)
    graph = scene.through_proxy(write_lease_lifetime_ms=30_000)
    lost = swept_commit(scene, lambda: graph)
    assert set(lost) == EVERY_KIND, "the sweep met every kind of request"
    assert lost["PUT if-absent"] >= 4, "sidecar, both tables, manifest"


@pytest.mark.full
@pytest.mark.timeout(SWEEP_S_MAX)
def test_the_first_commit_of_a_handle_survives_the_loss_of_any_one_answer(
    s3_server: S3Server, proxy: FaultProxy
) -> None:
    """With housekeeping at every commit: the manifest is compacted, the commit tables catch up."""
    often = {"manifest_compact_fragments": 2, "projections_max_lag": 1, "write_lease_lifetime_ms": 30_000}
    scene = Scene.made(s3_server, proxy, **often)
    lost = swept_commit(scene, lambda: scene.through_proxy(**often))
    assert set(lost) == EVERY_KIND
    assert lost.total() > 40


# ---- a commit whose client gives up

STEPS = {
    "lease_taken": (asks("PUT if-match", "__locks/"), 1),
    "staged_file": (asks("PUT", "nodes/"), 1),
    "sidecar_written": (asks("PUT if-absent", "__recovery/"), 1),
    "first_table_transaction": (asks("PUT", "edges/35570fa59a9bc199/_transactions/"), 1),
    "first_table_moved": (asks("PUT if-absent", "edges/"), 1),
    "second_table_moved": (asks("PUT if-absent", "nodes/"), 1),
    "rows_of_the_manifest": (asks("PUT", "__manifest/data/"), 1),
    "manifest_moved": (asks("PUT if-absent", "__manifest/_versions/"), 1),
    "sidecar_deleted": (asks("DELETE", "__recovery/"), 1),
    "lease_given_back": (asks("PUT if-match", "__locks/"), 2),
}
OUTAGES = ("of_one_object", "of_everything")
ALWAYS = {("manifest_moved", "of_one_object"), ("second_table_moved", "of_one_object")}


def outage(scene: Scene, step: str, which: str) -> Rule:
    """The answer to `step` is lost, and from then on one object, or everything, is out of reach."""
    matches, nth = STEPS[step]
    first = scene.proxy.add(Rule(matches, Fate.LOSE_ANSWER, nth=nth))
    if which == "of_one_object":
        scene.proxy.add(Rule(matches, Fate.REFUSE, nth=nth + 1, times=FOR_EVER))
    else:
        scene.proxy.add(Rule(lambda _: first.arrived.is_set(), Fate.REFUSE, nth=2, times=FOR_EVER))
    return first


@pytest.mark.parametrize(
    ("step", "which"),
    [
        pytest.param(step, which, marks=() if (step, which) in ALWAYS else pytest.mark.full)
        for step in STEPS
        for which in OUTAGES
    ],
)
def test_a_commit_whose_client_gives_up_is_told_truly_or_in_doubt(
    s3_server: S3Server, proxy: FaultProxy, step: str, which: str
) -> None:
    scene = Scene.made(s3_server, proxy)
    graph = scene.through_proxy(storage_retry_timeout_ms=1000)
    rule = outage(scene, step, which)
    told = attempt(graph, "row")
    assert rule.passed_on.is_set(), "the server did what it was asked"
    before = scene.direct.operation(told.operation_id).status
    assert told.outcome != "refused" or before in ("refused", "rolled_back")
    proxy.calm()
    after = scene.check_told(told, "row")
    assert before in ("pending", after), "an outcome that was told stays"
    assert attempt(graph, "next").outcome == "committed", "the writer's own handle goes on"


# ---- a store that takes everything and hands out one thing no more


@pytest.mark.full
def test_a_read_that_the_store_does_not_answer_is_unavailable(s3_server: S3Server, proxy: FaultProxy) -> None:
    scene = Scene.made(s3_server, proxy)
    graph = scene.through_proxy(storage_retry_timeout_ms=1000)
    scene.commit("next")
    proxy.add(Rule(asks("GET", "nodes/40d76f1f51639ec0/data/"), Fate.REFUSE, times=FOR_EVER))
    with pytest.raises(Unavailable):
        shown(graph)


@pytest.mark.full
def test_a_manifest_that_cannot_be_read_is_not_taken_for_torn(s3_server: S3Server, proxy: FaultProxy) -> None:
    """By a process that never read it: nobody passes over the newest commit, and nobody removes it."""
    scene = Scene.made(s3_server, proxy)
    scene.commit("next")
    newest = graph_file(scene.direct)
    proxy.add(Rule(lambda r: r.method == "GET" and r.key.endswith(newest), Fate.REFUSE, times=FOR_EVER))
    settings = s3_server.settings(aws_endpoint_url=proxy.endpoint, storage_retry_timeout_ms=1000, **LEASE)
    sleeper = Sleeper()
    try:
        sleeper.begin(scene.uri, settings, "row")
        told = sleeper.answer()
    finally:
        sleeper.end()
    assert told["outcome"] == "refused", told
    assert [r for r in proxy.requests if r.kind == "DELETE" and "_versions" in r.key] == []
    scene.check_converged()


def graph_file(graph: og.Graph) -> str:
    """The object that makes the newest graph version exist."""
    state = graph.context.manifest.state()
    return state.table.ref.version_file(state.version)


# ---- an init


def made_or_not(scene_uri: str, server: S3Server, init: Callable[[], og.Graph]) -> OmniError | None:
    """Run an init; whatever it said, a graph is there whole or can be made."""
    direct = server.settings(**LEASE)
    try:
        init()
    except OmniError as error:
        try:
            og.Graph.open(scene_uri, settings=direct)
        except OmniError:
            og.Graph.init(scene_uri, SCHEMA, force=True, settings=direct)
        failed: OmniError | None = error
    else:
        failed = None
    graph = og.Graph.open(scene_uri, settings=direct)
    assert [c.kind for c in graph.list_commits()] == ["init"]
    graph.write(both("ana"))
    assert shown(graph) == {PERSON: ["ana"], FOLLOWS: ["ana"]}
    assert drifted(graph) == set()
    return failed


@pytest.mark.full
@pytest.mark.timeout(SWEEP_S_MAX)
@pytest.mark.usefixtures("unprobed")
def test_an_init_survives_the_loss_of_any_one_answer(s3_server: S3Server, proxy: FaultProxy) -> None:
    settings = s3_server.settings(aws_endpoint_url=proxy.endpoint, **LEASE)
    for n in count(1):
        places._probed.clear()
        uri = s3_server.uri()
        proxy.calm()
        rule = proxy.add(Rule(any_request, Fate.LOSE_ANSWER, nth=n))
        failed = made_or_not(uri, s3_server, lambda uri=uri: og.Graph.init(uri, SCHEMA, settings=settings))
        assert failed is None, f"{proxy.requests[n - 1]}: {failed}"
        if not rule.arrived.is_set():
            return


@pytest.mark.usefixtures("unprobed")
@pytest.mark.parametrize(
    ("kind", "place"),
    [
        ("PUT if-absent", "__init_claim.json"),
        ("PUT if-absent", "nodes/"),
        ("PUT if-absent", "__manifest/"),
        ("DELETE", "__init_claim.json"),
        ("PUT if-absent", "__probe/"),
        ("PUT if-match", "__probe/"),
    ],
)
def test_an_init_recognises_what_it_did_itself(s3_server: S3Server, proxy: FaultProxy, kind: str, place: str) -> None:
    rule = proxy.add(Rule(asks(kind, place), Fate.LOSE_ANSWER))
    uri, settings = s3_server.uri(), s3_server.settings(aws_endpoint_url=proxy.endpoint, **LEASE)
    assert made_or_not(uri, s3_server, lambda: og.Graph.init(uri, SCHEMA, settings=settings)) is None
    assert rule.passed_on.is_set()


@pytest.mark.full
@pytest.mark.parametrize("place", ["__init_claim.json", "nodes/", "__manifest/_versions/"])
def test_an_init_whose_client_gives_up_leaves_a_graph_or_a_place_for_one(
    s3_server: S3Server, proxy: FaultProxy, place: str
) -> None:
    first = proxy.add(Rule(asks("PUT if-absent", place), Fate.LOSE_ANSWER))
    proxy.add(Rule(lambda _: first.arrived.is_set(), Fate.REFUSE, nth=2, times=FOR_EVER))
    uri = s3_server.uri()
    settings = s3_server.settings(aws_endpoint_url=proxy.endpoint, storage_retry_timeout_ms=1000, **LEASE)
    failed = made_or_not(uri, s3_server, lambda: og.Graph.init(uri, SCHEMA, settings=settings))
    assert isinstance(failed, Unavailable | Conflict)


def test_an_init_whose_last_request_arrives_late_is_whole(s3_server: S3Server, proxy: FaultProxy) -> None:
    late = proxy.add(Rule(asks("PUT if-absent", "__manifest/"), Fate.HOLD, times=FOR_EVER))
    impatient = {"storage_timeout_ms": 300, "storage_retry_timeout_ms": 1000}
    uri, settings = s3_server.uri(), s3_server.settings(aws_endpoint_url=proxy.endpoint, **LEASE, **impatient)
    with pytest.raises(Unavailable):
        og.Graph.init(uri, SCHEMA, settings=settings)
    with pytest.raises(Conflict, match="half initialized"):
        og.Graph.open(uri, settings=s3_server.settings(**LEASE))
    late.release()
    assert late.passed_on.wait(30)
    graph = og.Graph.open(uri, settings=s3_server.settings(**LEASE))
    graph.write(both("ana"))
    assert shown(graph) == {PERSON: ["ana"], FOLLOWS: ["ana"]}


# ---- an open that has something to settle

LEFT_BY = {
    "nothing": None,
    "a_write_that_landed": "post_phase_b_pre_manifest_commit",
    "half_a_write": "mid_phase_b",
    "a_write_that_did_not_begin": "post_phase_a_pre_phase_b",
    "a_published_write": "post_manifest_commit_pre_phase_d",
}


class Died(BaseException):
    """A process that stops here."""


def die() -> None:
    raise Died


@pytest.mark.full
@pytest.mark.timeout(SWEEP_S_MAX)
@pytest.mark.usefixtures("unprobed")
@pytest.mark.parametrize("left", LEFT_BY)
def test_an_open_that_settles_survives_the_loss_of_any_one_answer(
    s3_server: S3Server, proxy: FaultProxy, left: str
) -> None:
    for n in count(1):
        # A graph of its own each time: an open reads the whole history, and would have more requests each time.
        scene = Scene.made(s3_server, proxy)
        proxy.calm()
        places._probed.clear()
        if window := LEFT_BY[left]:
            failpoints.arm(f"load.{window}", die)
            with pytest.raises(Died):
                scene.direct.write(both(f"row-{n}"))
            if left in ("a_write_that_landed", "a_published_write"):
                scene.rows.append(f"row-{n}")
        rule = proxy.add(Rule(any_request, Fate.LOSE_ANSWER, nth=n))
        scene.through_proxy()
        arrived = rule.arrived.is_set()
        proxy.calm()
        scene.check_converged()
        if not arrived:
            return
