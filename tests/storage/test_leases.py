"""A leased lock: one holder at a time, tokens that only grow, no trust in clocks, and no harm from lost answers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from faulty_objects import Fault, FaultyObjects, on
from omnigraph.base.errors import Conflict, Unavailable
from omnigraph.commit import lease
from omnigraph.commit.lease import LeaseLocks
from omnigraph.commit.locks import FileLocks, LockLost, holder_name
from omnigraph.manifest import layout
from omnigraph.storage.objects import LocalObjectStore

pytestmark = pytest.mark.slow

KEY = f"{layout.LOCK_DIR}/{layout.lock_name(None)}.json"
LIFETIME_MS, HEARTBEAT_MS = 30_000, 10_000
ELSEWHERE = "another-host:4711:99"


class Clock:
    """Our own monotonic clock, moved by hand."""

    def __init__(self) -> None:
        self.now_ms = 1_000_000

    def __call__(self) -> int:
        return self.now_ms

    def pass_ms(self, ms: int) -> None:
        self.now_ms += ms


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(lease, "monotonic_ms", clock)
    return clock


@pytest.fixture
def objects(tmp_path: Path) -> FaultyObjects:
    return FaultyObjects(LocalObjectStore(str(tmp_path)))


def locks_on(objects: FaultyObjects, timeout_ms: int = 0) -> LeaseLocks:
    return LeaseLocks(objects, timeout_ms, LIFETIME_MS, HEARTBEAT_MS)


@pytest.fixture
def locks(objects: FaultyObjects) -> LeaseLocks:
    return locks_on(objects)


def stored(objects: FaultyObjects) -> dict[str, Any]:
    found = objects.inner.get(KEY)
    assert found is not None
    return json.loads(found.data)


def put_lease(objects: FaultyObjects, **members: Any) -> None:
    known = {"branch": "main", "holder": ELSEWHERE, "token": 7, "nonce": "theirs", "lifetime_ms": LIFETIME_MS}
    objects.inner.put(KEY, json.dumps({**known, **members}).encode())


def is_free(locks: LeaseLocks) -> bool:
    with locks.try_hold(None) as lock:
        return lock is not None


# ---- taking, giving back, taking over


def test_a_held_lease_is_refused_by_the_name_of_its_holder(objects: FaultyObjects, locks: LeaseLocks) -> None:
    with locks.hold(None), pytest.raises(Conflict, match=f"locked by {holder_name()}") as refused, locks.hold(None):
        pass
    assert "omnigraph lock break" in refused.value.hint
    assert is_free(locks)


def test_every_taking_raises_the_token_and_giving_back_keeps_it(objects: FaultyObjects, locks: LeaseLocks) -> None:
    tokens = []
    for _ in range(3):
        with locks.hold(None) as lock:
            lock.check()
            tokens.append(lock.token)
        assert (stored(objects)["holder"], stored(objects)["token"]) == ("", tokens[-1])
    assert tokens == [1, 2, 3]


def test_a_token_raised_by_the_branch_is_kept_in_the_lease(objects: FaultyObjects, locks: LeaseLocks) -> None:
    with locks.hold(None) as lock:
        lock.raise_token(41)
        assert (lock.token, stored(objects)["token"]) == (42, 42)
        lock.raise_token(5)
        assert lock.token == 42
    with locks.hold(None) as lock:
        assert lock.token == 43


def test_the_lease_of_a_process_of_this_host_that_is_gone_is_taken_at_once(
    objects: FaultyObjects, locks: LeaseLocks
) -> None:
    host, pid, _ = holder_name().split(":")
    put_lease(objects, holder=f"{host}:{pid}:1")
    assert locks.holder(None).looks == "gone"
    with locks.hold(None) as lock:
        assert lock.token == 8


YEARS_OFF = {
    "ten-years-ahead": "2091-01-01T00:00:00.000000Z",
    "long-past": "1971-01-01T00:00:00.000000Z",
    "no-time-at-all": "when the cock crows",
    "a-number": 17,
    "nothing": None,
}


@pytest.mark.parametrize("when", YEARS_OFF.values(), ids=YEARS_OFF.keys())
def test_the_clock_of_another_machine_decides_nothing(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock, when: object
) -> None:
    put_lease(objects, since=when, renewed_at=when, expires_at=when)
    assert not is_free(locks), "it was taken at first sight"
    clock.pass_ms(LIFETIME_MS - 1)
    assert not is_free(locks), "it was taken before a lifetime by our own clock"
    clock.pass_ms(1)
    assert is_free(locks), "it was not taken after a lifetime by our own clock"
    assert stored(objects)["token"] == 8


@pytest.mark.parametrize("when", YEARS_OFF.values(), ids=YEARS_OFF.keys())
def test_a_lease_that_is_renewed_is_never_taken_whatever_its_times_say(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock, when: object
) -> None:
    for renewals in range(5):
        put_lease(objects, since=when, renewed_at=when, expires_at=when, renewals=renewals)
        assert not is_free(locks)
        clock.pass_ms(LIFETIME_MS - 1)


def test_our_own_clock_set_back_or_forth_does_not_end_our_lease(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locks.hold(None) as lock:
        for now_us in (1, 4_000_000_000_000_000):
            monkeypatch.setattr(lease, "now_us", lambda now_us=now_us: now_us)
            clock.pass_ms(HEARTBEAT_MS)
            lock.raise_token(lock.token)
            lock.check()


def test_a_holder_that_could_not_renew_for_a_lifetime_counts_itself_out(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock
) -> None:
    with locks.hold(None) as lock:
        objects.when(Fault.BEFORE, on(), times=None)
        clock.pass_ms(LIFETIME_MS - 1)
        lock.check()
        clock.pass_ms(1)
        with pytest.raises(LockLost, match="ran out") as lost:
            lock.check()
        assert lost.value.hint


# ---- breaking on purpose


def test_breaking_frees_the_lease_raises_its_token_and_its_holder_finds_out(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock
) -> None:
    with locks.hold(None) as lock:
        broken = locks_on(objects).break_lock(None)
        assert (broken.holder, broken.token, broken.looks) == (holder_name(), lock.token, "alive")
        assert (stored(objects)["holder"], stored(objects)["token"]) == ("", lock.token + 1)
        clock.pass_ms(1_000)
        with pytest.raises(LockLost, match="broken"):
            lock.check()
        with locks_on(objects).hold(None) as next_one:
            assert next_one.token == lock.token + 2
            lock.raise_token(lock.token)
            next_one.check()
    assert stored(objects)["token"] == next_one.token, "the former holder wrote over a later lease"


def test_a_former_holder_that_gives_back_leaves_the_later_lease_alone(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock
) -> None:
    with locks.hold(None):
        locks.break_lock(None)
        later = locks_on(objects).hold(None)
        held = later.__enter__()
    clock.pass_ms(1_000)
    held.check()
    later.__exit__(None, None, None)


@pytest.mark.parametrize("content", [None, b"", b"nonsense", b'{"holder": "", "token": 3}'])
def test_a_lease_that_nobody_holds_cannot_be_broken(
    objects: FaultyObjects, locks: LeaseLocks, content: bytes | None
) -> None:
    if content is not None:
        objects.inner.put(KEY, content)
    assert locks.break_lock(None) is None
    assert (objects.inner.get(KEY).data if content is not None else None) == content


def test_breaking_whose_answer_was_lost_is_done_once(objects: FaultyObjects, locks: LeaseLocks) -> None:
    put_lease(objects)
    objects.when(Fault.LOST, on("put_if_match"))
    assert locks.break_lock(None).holder == ELSEWHERE
    assert stored(objects)["token"] == 8


def test_breaking_a_lease_that_changes_all_the_time_gives_up_and_says_so(
    objects: FaultyObjects, locks: LeaseLocks
) -> None:
    put_lease(objects)
    objects.remember(layout.LOCK_DIR)
    put_lease(objects, renewals=1)
    objects.when(Fault.STALE, on("get"), times=None)
    with pytest.raises(Conflict, match="changed during every attempt") as refused:
        locks.break_lock(None)
    assert refused.value.hint


def test_the_file_lock_of_a_living_process_is_refused_with_its_pid(tmp_path: Path) -> None:
    files = FileLocks(str(tmp_path), 0)
    assert files.break_lock(None) is None
    with files.hold(None) as lock:
        with pytest.raises(Conflict, match=rf"process {holder_name().split(':')[1]} on .*running") as refused:
            files.break_lock(None)
        assert "end process" in refused.value.hint
        assert files.holder(None).looks == "alive"
        lock.check()
    assert files.break_lock(None) is None
    assert files.holder(None).looks == "free"


# ---- what a lease object may hold

MALFORMED: dict[str, bytes] = {
    "nothing": b"",
    "no-json": b"\x00garbage",
    "cut": b'{"holder": "a:1:1", "tok',
    "a-list": b"[1]",
    "null": b"null",
    "no-members": b"{}",
    "token-in-words": b'{"holder": "", "token": "seven"}',
    "token-negative": b'{"holder": "", "token": -3}',
    "token-a-truth": b'{"holder": "", "token": true}',
    "token-a-fraction": b'{"holder": "", "token": 1.5}',
    "token-beyond-numbers": b'{"holder": "", "token": 99999999999999999999999999}',
    "holder-a-number": b'{"holder": 7, "token": 2}',
    "holder-an-object": b'{"holder": {"a": 1}, "token": 2}',
    "holder-null": b'{"holder": null, "token": null, "lifetime_ms": null}',
}


@pytest.mark.parametrize("content", MALFORMED.values(), ids=MALFORMED.keys())
def test_an_object_that_is_no_lease_is_nobody_s_and_is_replaced(
    objects: FaultyObjects, locks: LeaseLocks, content: bytes
) -> None:
    objects.inner.put(KEY, content)
    told = locks.holder(None)
    assert (told.held, told.looks) == (False, "free")
    with locks.hold(None) as lock:
        assert lock.token in (1, 3)
        lock.raise_token(40)
    assert stored(objects)["token"] == 41


@pytest.mark.parametrize("lifetime", ["soon", -1, 0, 10**15, None, [1], 1.5])
def test_a_senseless_lifetime_counts_as_our_own(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock, lifetime: object
) -> None:
    put_lease(objects, lifetime_ms=lifetime)
    assert not is_free(locks)
    clock.pass_ms(LIFETIME_MS - 1)
    assert not is_free(locks)
    clock.pass_ms(1)
    assert is_free(locks)


def test_a_holder_whose_object_was_replaced_by_garbage_or_deleted_finds_out(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock
) -> None:
    for spoil in (lambda: objects.inner.put(KEY, b"garbage"), lambda: objects.inner.delete(KEY)):
        with locks.hold(None) as lock:
            spoil()
            clock.pass_ms(1_000)
            with pytest.raises(LockLost):
                lock.check()
        assert is_free(locks)


# ---- lost answers and silence


@pytest.fixture(params=[Fault.BEFORE, Fault.LOST], ids=lambda f: f.name.lower())
def fault(request: pytest.FixtureRequest) -> Fault:
    return request.param


@pytest.mark.parametrize("verb", ["put_if_absent", "put_if_match"])
def test_taking_whose_answer_was_lost_is_a_taking(objects: FaultyObjects, locks: LeaseLocks, verb: str) -> None:
    if verb == "put_if_match":
        assert is_free(locks)
    rule = objects.when(Fault.LOST, on(verb))
    with locks.hold(None) as lock:
        lock.check()
        assert stored(objects)["token"] == lock.token
    assert rule.fired


def test_taking_that_fails_says_so_and_this_process_may_try_again_at_once(
    objects: FaultyObjects, locks: LeaseLocks, fault: Fault
) -> None:
    objects.when(fault, on("put_if_absent"))
    objects.when(Fault.BEFORE, on("get"), skip=1)
    with pytest.raises(Unavailable), locks.hold(None):
        pass
    objects.heal()
    assert is_free(locks)


def test_a_renewal_that_failed_does_not_cost_the_lease(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock, fault: Fault
) -> None:
    with locks.hold(None) as lock:
        objects.when(fault, on("put_if_match"))
        with pytest.raises(Unavailable):
            lock.raise_token(50)
        lock.raise_token(60)
        clock.pass_ms(LIFETIME_MS - 1)
        lock.check()
    assert (stored(objects)["holder"], stored(objects)["token"]) == ("", 61)


def test_giving_back_that_fails_does_not_lock_this_process_out(
    objects: FaultyObjects, locks: LeaseLocks, fault: Fault
) -> None:
    with locks.hold(None):
        objects.when(fault, on("put_if_match"))
    objects.heal()
    assert is_free(locks)


def test_giving_back_that_fails_leaves_a_lease_that_runs_out_for_others(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with locks.hold(None):
        objects.when(Fault.BEFORE, on("put_if_match"))
    objects.heal()
    monkeypatch.setattr(lease, "_abandoned", set())
    assert not is_free(locks)
    clock.pass_ms(LIFETIME_MS)
    assert is_free(locks)


def test_a_store_that_is_silent_for_a_moment_does_not_cost_the_lease(
    objects: FaultyObjects, locks: LeaseLocks, clock: Clock
) -> None:
    with locks.hold(None) as lock:
        objects.when(Fault.BEFORE, on("get"))
        clock.pass_ms(1_000)
        lock.check()
        lock.check()


def test_a_stale_look_never_makes_two_holders(objects: FaultyObjects, locks: LeaseLocks) -> None:
    """Seen free while it is held: the conditional put is what decides."""
    assert is_free(locks)
    objects.remember(layout.LOCK_DIR)
    with locks_on(objects).hold(None) as lock:
        objects.when(Fault.STALE, on("get", key=KEY), times=None)
        assert not is_free(locks)
        objects.heal()
        assert stored(objects)["token"] == lock.token
