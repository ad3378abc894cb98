"""What every object store owes the commit protocol, whichever store it is."""

import os
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from object_children import compete

from omnigraph import Unavailable
from omnigraph.storage.objects import LocalObjectStore, Missing, ObjectStore
from omnigraph.storage.s3 import S3ObjectStore
from processes import FORKED

KEY = "__recovery/one.json"


@pytest.fixture(params=["local", "synced", pytest.param("s3", marks=pytest.mark.slow)])
def store(request, tmp_path: Path) -> ObjectStore:
    if request.param == "s3":
        server = request.getfixturevalue("s3_server")
        return S3ObjectStore(server.uri(), server.access())
    return LocalObjectStore(str(tmp_path), syncs=request.param == "synced")


def rounds(store: ObjectStore) -> int:
    """A server under contention is slow, so it gets fewer."""
    return 20 if isinstance(store, LocalObjectStore) else 3


def at_once(count: int, act: Callable[[int], object]) -> list[object]:
    """What `count` threads got that all started at one moment."""
    start = threading.Barrier(count)

    def run(number: int) -> object:
        start.wait(30)
        return act(number)

    with ThreadPoolExecutor(count) as pool:
        return list(pool.map(run, range(count)))


def test_object_reads_back_as_it_was_put(store: ObjectStore):
    data = bytes(range(256)) * 1000
    store.put(KEY, data)
    found = store.get(KEY)
    assert found is not None
    assert found.data == data
    assert store.exists(KEY)


@pytest.mark.parametrize("key", ["nowhere", "no/such/place", f"{KEY}/below-a-file"])
def test_missing_object_is_none(store: ObjectStore, key: str):
    store.put(KEY, b"x")
    assert store.get(key) is None
    assert not store.exists(key)
    assert store.put_if_match(key, b"new", "any") is None
    store.delete(key)


def test_tag_names_the_content(store: ObjectStore):
    first = store.put_if_absent(KEY, b"one")
    found = store.get(KEY)
    assert found is not None
    assert found.etag == first
    assert store.put_if_match(KEY, b"two", found.etag) not in (None, first)


def test_put_if_absent_keeps_what_is_there(store: ObjectStore):
    store.put(KEY, b"old")
    assert store.put_if_absent(KEY, b"new") is None
    assert store.get(KEY).data == b"old"


def test_put_if_match_replaces_only_the_object_it_names(store: ObjectStore):
    tag = store.put_if_absent(KEY, b"one")
    assert store.put_if_match(KEY, b"two", "another") is None
    assert store.get(KEY).data == b"one"
    second = store.put_if_match(KEY, b"two", tag)
    assert store.get(KEY).data == b"two"
    assert store.put_if_match(KEY, b"three", tag) is None
    assert store.put_if_match(KEY, b"three", second) is not None


def test_put_if_match_never_re_creates_a_deleted_object(store: ObjectStore):
    tag = store.put_if_absent(KEY, b"one")
    store.delete(KEY)
    assert store.put_if_match(KEY, b"two", tag) is None
    assert not store.exists(KEY)


def test_deleting_twice_is_deleting_once(store: ObjectStore):
    store.put(KEY, b"x")
    store.delete(KEY)
    store.delete(KEY)
    assert not store.exists(KEY)


def test_list_names_the_objects_directly_below_sorted(store: ObjectStore):
    for name in ("b", "a", "c"):
        store.put(f"__recovery/{name}.json", b"x")
    store.put("__recoveryother/d.json", b"x")
    assert store.list("__recovery") == [f"__recovery/{n}.json" for n in "abc"]
    assert store.list("nowhere") == []


def test_remove_tree_takes_a_folder_a_file_or_nothing(store: ObjectStore):
    store.put("nodes/a/b", b"x")
    store.put("nodes/c", b"x")
    store.remove_tree("nodes/c")
    assert store.list("nodes") == ["nodes/a"]
    store.remove_tree("nodes")
    store.remove_tree("nodes")
    assert store.list("nodes", limit=10) == []
    assert not store.exists("nodes/a/b")


# ---- at once


def test_of_sixteen_threads_that_create_one_object_exactly_one_wins(store: ObjectStore):
    for number in range(rounds(store)):
        won = at_once(16, lambda me, key=f"k/{number}": (me, store.put_if_absent(key, f"{me}".encode())))
        winners = [me for me, tag in won if tag is not None]
        assert len(winners) == 1
        assert store.get(f"k/{number}").data == f"{winners[0]}".encode()


def test_of_sixteen_threads_that_replace_one_object_exactly_one_wins(store: ObjectStore):
    tag = store.put_if_absent(KEY, b"start")
    for number in range(rounds(store)):
        won = at_once(16, lambda me, t=tag, n=number: store.put_if_match(KEY, f"{n}-{me}".encode(), t))
        winners = [t for t in won if t is not None]
        assert len(winners) == 1
        tag = winners[0]
        assert store.get(KEY).etag == tag


def test_replacement_and_deletion_at_once_never_leave_a_resurrected_object(store: ObjectStore):
    for number in range(2 * rounds(store)):
        key = f"k/{number}"
        tag = store.put_if_absent(key, b"one")

        def act(me: int, key: str = key, tag: str = tag) -> object:
            return store.delete(key) if me % 2 else store.put_if_match(key, f"{me}".encode(), tag)

        results = at_once(8, act)
        assert len([r for r in results[::2] if r is not None]) <= 1
        assert not store.exists(key)


def test_reader_sees_a_whole_object_or_none(store: ObjectStore):
    wholes = [bytes([n]) * (1 + n * 40_000) for n in range(8)]
    stop = threading.Event()

    def write(_me: int) -> None:
        for turn in range(60):
            store.put(KEY, wholes[turn % len(wholes)])
            if turn % 7 == 0:
                store.delete(KEY)
        stop.set()

    def read(_me: int) -> None:
        while not stop.is_set():
            found = store.get(KEY)
            assert found is None or found.data in wholes

    at_once(3, lambda me: write(me) if me == 0 else read(me))


def test_list_and_read_ignore_writes_in_progress(store: ObjectStore):
    stop, seen = threading.Event(), Counter()

    def write(me: int) -> None:
        for turn in range(60):
            store.put_if_absent(f"k/{me}-{turn}", b"x" * 50_000)
        stop.set()

    def look(_me: int) -> None:
        while not stop.is_set():
            seen.update(store.list("k"))

    at_once(3, lambda me: look(me) if me == 0 else write(me))
    assert set(seen) <= {f"k/{me}-{turn}" for me in (1, 2) for turn in range(60)}


@pytest.mark.slow
def test_eight_processes_create_each_object_once_and_lose_no_replacement(tmp_path: Path):
    start, results, keys = FORKED.Barrier(8), FORKED.Queue(), [f"k/{i}" for i in range(25)]
    store = LocalObjectStore(str(tmp_path))
    store.put("counter", b"0")
    children = [FORKED.Process(target=compete, args=(str(tmp_path), me, keys, start, results)) for me in range(8)]
    for child in children:
        child.start()
    told = [answer for _ in children for answer in results.get(timeout=120)]
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    winners = [(key, me) for key, me, won in told if won]
    assert sorted(key for key, _ in winners) == sorted(keys)
    assert all(store.get(key).data == f"{me}".encode() for key, me in winners)
    assert store.get("counter").data == f"{8 * len(keys)}".encode()


# ---- the local store


def test_temporary_file_of_a_dead_writer_is_no_object(tmp_path: Path):
    store = LocalObjectStore(str(tmp_path))
    store.put(KEY, b"x")
    (tmp_path / "__recovery" / ".tmp-01HZZZZZZZZZZZZZZZZZZZZZZZ").write_bytes(b"hal")
    assert store.list("__recovery") == [KEY]


def test_no_write_leaves_a_temporary_file(tmp_path: Path):
    store = LocalObjectStore(str(tmp_path))
    tag = store.put_if_absent(KEY, b"one")
    store.put_if_absent(KEY, b"two")
    store.put_if_match(KEY, b"three", tag)
    store.put_if_match(KEY, b"four", tag)
    store.put(KEY, b"five")
    assert os.listdir(tmp_path / "__recovery") == ["one.json"]


@pytest.mark.parametrize("step", ["replace", "link", "fsync"])
def test_write_that_fails_leaves_the_old_object_and_no_temporary_file(tmp_path: Path, step: str, monkeypatch):
    store = LocalObjectStore(str(tmp_path), syncs=True)
    tag = store.put_if_absent(KEY, b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, step, full)
    writes = {
        "replace": [lambda: store.put(KEY, b"new"), lambda: store.put_if_match(KEY, b"new", tag)],
        "link": [lambda: store.put_if_absent("__recovery/two.json", b"new")],
        "fsync": [lambda: store.put(KEY, b"new"), lambda: store.put_if_absent("__recovery/two.json", b"new")],
    }[step]
    for write in writes:
        with pytest.raises(Unavailable, match="the disk is full"):
            write()
    monkeypatch.undo()
    assert os.listdir(tmp_path / "__recovery") == ["one.json"]
    assert store.get(KEY).data == b"old"


@pytest.mark.parametrize("sizes", [[], [3], [5 << 20, 5 << 20, 1]])
def test_a_streamed_file_comes_back_part_by_part(store: ObjectStore, sizes: list[int]) -> None:
    parts = [bytes([number]) * size for number, size in enumerate(sizes)]
    store.put_stream(KEY, iter(parts), sum(sizes))
    assert b"".join(store.stream(KEY)) == b"".join(parts)


def test_a_stream_that_ends_early_leaves_nothing_and_a_missing_file_is_told(store: ObjectStore) -> None:
    with pytest.raises(Missing):
        store.put_stream(KEY, iter([b"12"]), 3)
    assert not store.exists(KEY)
    with pytest.raises(Missing):
        next(store.stream(KEY))
