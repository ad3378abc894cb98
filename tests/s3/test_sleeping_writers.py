"""A writer that fell asleep is not gone: another takes its lease over, and what the sleeper does late stays invisible.

Every case goes: the sleeper begins a write of both tables and stops; its lease runs out; a rival takes over, settles
what it finds and commits to one table; the sleeper goes on and is told something true; the next writer finds
head == pin and no sidecar.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from s3_scene import FOLLOWS, PERSON, Scene, both, drifted, people, shown
from sleepers import Sleeper, Watcher

import omnigraph as og
from fault_proxy import Fate, FaultProxy, Request, Rule
from omnigraph.base import failpoints
from omnigraph.base.errors import Conflict, ExpectedVersionMismatch
from omnigraph.engine.write.changes import Change
from omnigraph.settings import Settings
from s3_server import S3Server

pytestmark = pytest.mark.slow
SHORT = {"write_lease_lifetime_ms": 1200, "write_lease_heartbeat_ms": 300}
LONG = {"write_lease_lifetime_ms": 30_000, "write_lease_heartbeat_ms": 10_000}
HOUR_S = 3600
NOTHING: set[str] = set()
FULL = pytest.mark.full


@pytest.fixture(scope="module")
def sleeper() -> Iterator[Sleeper]:
    process = Sleeper()
    yield process
    process.end()


@pytest.fixture
def proxy(s3_server: S3Server) -> Iterator[FaultProxy]:
    with FaultProxy(s3_server.port) as running:
        yield running


@pytest.fixture
def scene(s3_server: S3Server, proxy: FaultProxy) -> Iterator[Scene]:
    yield Scene.made(s3_server, proxy, **LONG)
    failpoints.disarm_all()


def short_lease(scene: Scene, **more: object) -> Settings:
    return scene.server.settings(aws_endpoint_url=scene.proxy.endpoint, **{**SHORT, **more})


def asks(kind: str, place: str) -> Callable[[Request], bool]:
    return lambda request: request.kind == kind and f"/graph/{place}" in request.key


def commits(graph: og.Graph, changes: dict[str, Change]) -> None:
    """A writer that finds late effects loses its preparation, never its way."""
    for _ in range(3):
        try:
            graph.write(changes)
            return
        except ExpectedVersionMismatch:
            continue
    raise AssertionError("a writer that is awake lost to one that was asleep")


def rival_commits(scene: Scene) -> None:
    """To one table only, so that the sleeper's late commit to the other one may land."""
    commits(scene.direct, {PERSON: og.Append(people("rival"))})


@dataclass
class Night:
    """What became of one sleeping write: `status` as the rival left it, `told` as the sleeper heard it.

    `late` are the tables that the sleeper moved after the rival had settled its write.
    """

    scene: Scene
    operation_id: str
    base: list[str]
    watcher: Watcher
    status: str = ""
    told: dict[str, str] = field(default_factory=dict)
    late: set[str] = field(default_factory=set)

    def check(self, becomes: str, told: str) -> None:
        """The answer is true, readers saw whole states only, and the next writer leaves nothing behind."""
        graph, landed = self.scene.direct, [*self.base, *(["sleepy"] if becomes == "committed" else [])]
        assert self.told["outcome"] == told, self.told
        assert told != "in doubt" or self.told["operation"] == self.operation_id
        after = {PERSON: sorted([*landed, "rival"]), FOLLOWS: sorted(landed)}
        assert shown(graph) == after, "the sleeper's late work shows"
        opened = og.Graph.open(self.scene.uri, settings=graph.settings)
        assert (drifted(opened), opened.recoveries().pending) == (set(), ()), "an open for writing heals"
        commits(opened, both("next"))
        assert graph.operation(self.operation_id).status == becomes
        final = {PERSON: sorted([*landed, "rival", "next"]), FOLLOWS: sorted([*landed, "next"])}
        assert shown(graph) == final
        assert (drifted(graph), graph.recoveries().pending) == (set(), ())
        before = {PERSON: sorted(self.base), FOLLOWS: sorted(self.base)}
        between = {PERSON: sorted(landed), FOLLOWS: sorted(landed)}
        assert self.watcher.failures == []
        assert [s for s in self.watcher.states if s not in (before, between, after, final)] == []


def slept(scene: Scene, sleeper: Sleeper, stop: str, skew_s: int = 0, blind: bool = False) -> Night:
    """The sleeper stops itself at `stop`; it wakes when the rival has committed."""
    with Watcher(scene) as watcher:
        operation_id = sleeper.begin(scene.uri, short_lease(scene), "sleepy", stop, skew_s, blind)
        sleeper.wait_until_asleep()
        night = Night(scene, operation_id, list(scene.rows), watcher)
        rival_commits(scene)
        night.status = scene.direct.operation(operation_id).status
        sleeper.wake()
        night.told, night.late = sleeper.answer(), drifted(scene.direct)
    return night


# ---- stopped between two steps


@pytest.mark.parametrize(
    ("stop", "becomes", "told", "late"),
    [
        pytest.param("load.pre_phase_a", "refused", "refused", NOTHING, id="before_its_sidecar"),
        pytest.param(
            "load.post_phase_a_pre_phase_b", "rolled_back", "in doubt", NOTHING, id="before_the_lease_check", marks=FULL
        ),
        pytest.param("commit_staged:1", "rolled_back", "in doubt", {FOLLOWS}, id="before_the_first_table"),
        pytest.param("load.mid_phase_b", "rolled_back", "in doubt", NOTHING, id="between_the_tables"),
        pytest.param("commit_staged:2", "rolled_back", "in doubt", {PERSON}, id="before_the_second_table"),
        pytest.param(
            "load.post_phase_b_pre_manifest_commit", "committed", "in doubt", NOTHING, id="before_the_last_check"
        ),
        pytest.param("publish:1", "committed", "committed", NOTHING, id="before_the_publish"),
        pytest.param("load.post_manifest_commit_pre_phase_d", "committed", "committed", NOTHING, id="before_phase_d"),
        pytest.param("load.post_phase_d", "committed", "committed", NOTHING, id="before_the_release", marks=FULL),
    ],
)
def test_a_writer_that_slept_changes_nothing_and_is_told_the_truth(
    scene: Scene, sleeper: Sleeper, stop: str, becomes: str, told: str, late: set[str]
) -> None:
    night = slept(scene, sleeper, stop)
    assert night.status == becomes, "the rival decided, the sleeper did not"
    assert night.late == late
    night.check(becomes, told)


@pytest.mark.parametrize("skew_s", [HOUR_S, pytest.param(-HOUR_S, marks=FULL)])
def test_a_clock_that_is_wrong_by_an_hour_changes_nothing(scene: Scene, sleeper: Sleeper, skew_s: int) -> None:
    slept(scene, sleeper, "load.mid_phase_b", skew_s).check("rolled_back", "in doubt")
    times = [c.created_at for c in scene.direct.list_commits()]
    assert times == sorted(set(times), reverse=True), "time grows along the history"


@pytest.mark.parametrize(
    ("stop", "becomes", "told", "late"),
    [
        pytest.param("load.pre_phase_a", "rolled_back", "in doubt", {FOLLOWS, PERSON}, id="before_its_sidecar"),
        pytest.param("commit_staged:1", "rolled_back", "refused", {FOLLOWS, PERSON}, id="before_the_first_table"),
        pytest.param("commit_staged:2", "rolled_back", "refused", {PERSON}, id="before_the_second_table"),
        pytest.param("publish:1", "committed", "committed", NOTHING, id="before_the_publish", marks=FULL),
    ],
)
def test_a_sleeper_that_never_looks_at_its_lease_harms_nothing(
    scene: Scene, sleeper: Sleeper, stop: str, becomes: str, told: str, late: set[str]
) -> None:
    """The lease saves work; what keeps commits apart is the publish."""
    night = slept(scene, sleeper, stop, blind=True)
    assert night.late == late
    night.check(becomes, told)


# ---- stopped with a request under way


@dataclass(frozen=True)
class Held:
    """A request that waits on its way, and where the rival is when it arrives: at a failpoint, or done."""

    kind: str
    place: str
    arrives_at: str
    becomes: str
    told: str
    late: frozenset[str] = frozenset()


HELD = {
    "first_table_after_the_rival": Held("PUT if-absent", "edges/", "", "rolled_back", "in doubt", frozenset({FOLLOWS})),
    "first_table_before_the_roll_back_is_published": Held(
        "PUT if-absent",
        "edges/",
        "recovery.post_phase_b_pre_manifest_commit",
        "rolled_back",
        "in doubt",
        frozenset({FOLLOWS}),
    ),
    "second_table_into_the_rivals_slot": Held(
        "PUT if-absent", "nodes/", "load.post_phase_a_pre_phase_b", "rolled_back", "in doubt"
    ),
    "publish_after_the_rival": Held("PUT if-absent", "__manifest/", "", "committed", "committed"),
    "publish_before_the_roll_forward": Held(
        "PUT if-absent", "__manifest/", "recovery.post_phase_b_pre_manifest_commit", "committed", "committed"
    ),
    "sidecar_after_the_rival": Held("PUT if-absent", "__recovery/", "", "rolled_back", "in doubt"),
}
SELDOM = {
    "first_table_during_the_roll_back": Held(
        "PUT if-absent", "edges/", "recovery.post_phase_a_pre_phase_b", "rolled_back", "in doubt"
    ),
    "second_table_after_the_rival": Held("PUT if-absent", "nodes/", "", "rolled_back", "in doubt"),
    "sidecar_deleted_after_the_rival": Held("DELETE", "__recovery/", "", "committed", "committed"),
}


@pytest.mark.parametrize(
    "case",
    [
        *(pytest.param(case, id=name) for name, case in HELD.items()),
        *(pytest.param(case, id=name, marks=FULL) for name, case in SELDOM.items()),
    ],
)
def test_a_request_that_arrives_after_the_take_over_changes_nothing(scene: Scene, sleeper: Sleeper, case: Held) -> None:
    held = scene.proxy.add(Rule(asks(case.kind, case.place), Fate.HOLD))

    def arrive() -> None:
        held.release()
        assert held.passed_on.wait(30), "the late request did not reach the server"

    with Watcher(scene) as watcher:
        operation_id = sleeper.begin(scene.uri, short_lease(scene), "sleepy")
        assert held.arrived.wait(30)
        sleeper.put_to_sleep()
        night = Night(scene, operation_id, list(scene.rows), watcher)
        if case.arrives_at:
            failpoints.arm(case.arrives_at, arrive)
        rival_commits(scene)
        arrive()
        sleeper.wake()
        night.told, night.late = sleeper.answer(), drifted(scene.direct)
    assert night.late == case.late
    night.check(case.becomes, case.told)
    audited = [r.recovery_kind for r in scene.direct.recoveries().records if r.operation_id == operation_id]
    own = scene.direct.operation(operation_id).commit
    assert own is not None
    assert len(audited) == (own.actor_id == "omnigraph:recovery"), "only what recovery did is on its record"


# ---- a recoverer that sleeps


class Died(BaseException):
    """A process that stops here."""


def die() -> None:
    raise Died


@pytest.mark.parametrize(
    ("left", "stop", "becomes"),
    [
        pytest.param("load.mid_phase_b", "recovery.post_phase_a_pre_phase_b", "rolled_back", id="before_its_restore"),
        pytest.param(
            "load.mid_phase_b",
            "recovery.post_phase_b_pre_manifest_commit",
            "rolled_back",
            id="after_its_restore",
            marks=FULL,
        ),
        pytest.param(
            "load.post_phase_b_pre_manifest_commit",
            "recovery.post_phase_b_pre_manifest_commit",
            "committed",
            id="before_its_roll_forward",
            marks=FULL,
        ),
    ],
)
def test_a_recoverer_that_slept_undoes_no_acknowledged_commit(
    scene: Scene, sleeper: Sleeper, left: str, stop: str, becomes: str
) -> None:
    failpoints.arm(left, die)
    with pytest.raises(Died):
        scene.direct.write(both("half"))
    (interrupted,) = scene.direct.recoveries().pending
    if becomes == "committed":
        scene.rows.append("half")
    with Watcher(scene) as watcher:
        operation_id = sleeper.begin(scene.uri, short_lease(scene), "sleepy", stop)
        sleeper.wait_until_asleep()
        night = Night(scene, operation_id, list(scene.rows), watcher)
        rival_commits(scene)
        acknowledged = shown(scene.direct)
        sleeper.wake()
        night.told, night.late = sleeper.answer(), drifted(scene.direct)
        assert shown(scene.direct) == acknowledged
    watcher.states = [s for s in watcher.states if s != {PERSON: ["ana"], FOLLOWS: ["ana"]}]
    night.check("refused", "refused")
    assert scene.direct.operation(interrupted.operation_id).status == becomes
    audited = [r for r in scene.direct.recoveries().records if r.operation_id == interrupted.operation_id]
    assert len(audited) == 1


# ---- hearts that beat and hearts that do not


def test_a_slow_writer_whose_heart_beats_keeps_its_lease(scene: Scene, sleeper: Sleeper) -> None:
    held = scene.proxy.add(Rule(asks("PUT if-absent", "nodes/"), Fate.HOLD))
    sleeper.begin(scene.uri, short_lease(scene), "slow")
    assert held.arrived.wait(30)
    patience_ms = 2 * SHORT["write_lease_lifetime_ms"]
    settings = scene.server.settings(**LONG, write_lock_timeout_ms=patience_ms)
    rival = og.Graph.open(scene.uri, "r", settings=settings)
    with pytest.raises(Conflict, match=f"is locked by .*:{sleeper.pid}:"):
        og.Graph(rival.context, og.OpenMode.READ_WRITE).write(both("rival"))
    held.release()
    assert sleeper.answer()["outcome"] == "committed"
    scene.rows.append("slow")
    scene.check_converged()


def test_a_writer_whose_heart_stops_gives_up_by_its_own_clock(scene: Scene, sleeper: Sleeper) -> None:
    """It is awake all the time; only its renewals do not get through, and its table commit takes too long."""
    held = scene.proxy.add(Rule(asks("PUT if-absent", "edges/"), Fate.HOLD))
    scene.proxy.add(Rule(asks("PUT if-match", "__locks/"), Fate.REFUSE, nth=2, times=1 << 30))
    scene.proxy.add(Rule(asks("GET", "__locks/"), Fate.REFUSE, nth=2, times=1 << 30))
    with Watcher(scene) as watcher:
        operation_id = sleeper.begin(scene.uri, short_lease(scene, storage_retry_timeout_ms=1000), "sleepy")
        assert held.arrived.wait(30)
        night = Night(scene, operation_id, list(scene.rows), watcher)
        rival_commits(scene)
        held.release()
        night.told, night.late = sleeper.answer(), drifted(scene.direct)
    night.check("rolled_back", "in doubt")
