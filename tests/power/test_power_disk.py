"""The disk that forgets keeps what was synced, and nothing else for sure."""

from __future__ import annotations

import random

import pytest
from power_disk import EMPTIED, HALVED, LOST, WHOLE, ZEROED, Choice, Disk, by_chance, in_order, whole
from power_trace import Event, Kind


def wrote(path: str, data: bytes, offset: int = 0) -> list[Event]:
    return [Event(Kind.CREATE, path), Event(Kind.WRITE, path, data=data, offset=offset)]


def synced(path: str, thread: int = 1) -> list[Event]:
    return [Event(Kind.SYNC_BEGINS, path, thread=thread), Event(Kind.SYNC_ENDS, path, thread=thread)]


def disk_after(*events: list[Event] | Event, before: dict[str, bytes | None] | None = None) -> Disk:
    disk = Disk(before or {})
    for event in events:
        for each in event if isinstance(event, list) else [event]:
            disk.play(each)
    return disk


def test_a_file_that_was_not_synced_may_be_gone_empty_cut_zeroed_or_whole() -> None:
    disk = disk_after(wrote("a", b"1234"))
    images = [disk.after(c) for c in (LOST, EMPTIED, HALVED, ZEROED, WHOLE)]
    assert images == [{}, {"a": b""}, {"a": b"12"}, {"a": bytes(4)}, {"a": b"1234"}]
    assert disk.live() == {"a": b"1234"}


def test_a_synced_file_keeps_its_bytes_and_may_lose_its_name() -> None:
    disk = disk_after(wrote("a", b"1234"), synced("a"))
    assert (disk.after(LOST), disk.after(EMPTIED)) == ({}, {"a": b"1234"})


def test_a_name_in_a_synced_folder_stays_and_its_bytes_may_not() -> None:
    disk = disk_after(wrote("a", b"1234"), synced(""))
    assert disk.after(LOST) == {"a": b""}


def test_a_synced_file_in_a_synced_folder_is_sure() -> None:
    disk = disk_after(wrote("a", b"1234"), synced("a"), synced(""))
    assert {str(disk.after(c)) for c in (LOST, EMPTIED, HALVED, ZEROED, by_chance("x"))} == {str({"a": b"1234"})}


def test_a_folder_whose_name_is_lost_takes_synced_files_with_it() -> None:
    disk = disk_after(Event(Kind.MKDIR, "d"), wrote("d/a", b"1"), synced("d/a"), synced("d"))
    assert disk.after(LOST) == {}
    for event in synced(""):
        disk.play(event)
    assert disk.after(LOST) == {"d": None, "d/a": b"1"}


def test_a_move_happens_as_a_whole_or_not_at_all() -> None:
    disk = disk_after(Event(Kind.RENAME, "a", "b"), before={"a": b"new", "b": b"old"})
    assert (disk.after(LOST), disk.after(EMPTIED)) == ({"a": b"new", "b": b"old"}, {"b": b"new"})


def test_a_moved_file_that_was_not_synced_may_replace_a_good_one_by_nothing() -> None:
    disk = disk_after(wrote("a", b"new"), Event(Kind.RENAME, "a", "b"), before={"b": b"old"})
    assert (disk.after(LOST), disk.after(EMPTIED)) == ({"b": b"old"}, {"b": b""})


def test_a_removed_name_may_come_back() -> None:
    disk = disk_after(Event(Kind.UNLINK, "a"), before={"a": b"1"})
    assert (disk.after(LOST), disk.after(WHOLE)) == ({"a": b"1"}, {})


def test_a_second_name_shares_the_bytes_of_the_first() -> None:
    disk = disk_after(wrote("a", b"1"), Event(Kind.LINK, "a", "b"), Event(Kind.UNLINK, "a"), synced("b"), synced(""))
    assert disk.after(LOST) == {"b": b"1"}


def test_bytes_added_after_a_sync_are_torn_where_the_synced_ones_end() -> None:
    disk = disk_after(Event(Kind.WRITE, "a", data=b"5678", offset=4), before={"a": b"1234"})
    assert [disk.after(c)["a"] for c in (LOST, EMPTIED, HALVED, ZEROED)] == [
        b"1234",
        b"1234",
        b"123456",
        b"1234" + bytes(4),
    ]


def test_bytes_written_over_synced_ones_are_not_sure_either_way() -> None:
    disk = disk_after(Event(Kind.WRITE, "a", data=b"99"), before={"a": b"1234"})
    assert [disk.after(c)["a"] for c in (LOST, EMPTIED, WHOLE)] == [b"1234", b"", b"9934"]


def test_what_is_written_while_a_sync_runs_is_not_covered_by_it() -> None:
    begins, ends = synced("a", thread=7)
    folder_begins, folder_ends = synced("", thread=8)
    disk = disk_after(
        wrote("a", b"12"), begins, folder_begins, wrote("a", b"34", 2), wrote("b", b"1"), ends, folder_ends
    )
    assert disk.after(LOST) == {"a": b"12"}


def test_a_copy_takes_the_bytes_the_source_has_at_that_time() -> None:
    disk = disk_after(
        wrote("b", b"x"),
        Event(Kind.COPY, "a", "b", offset=1, length=2, source_offset=1),
        Event(Kind.TRUNCATE, "a", length=1),
        before={"a": b"1234"},
    )
    assert disk.live() == {"a": b"1", "b": b"x23"}


def test_single_names_are_lost_and_kept_alone() -> None:
    disk = disk_after(wrote("a", b"1"), wrote("b", b"2"))
    images = {c.name: set(disk.after(c)) for c in in_order(disk)}
    assert images["name 0 lost"] == images["name 1 alone"] == images["oldest half lost"] == {"b"}
    assert images["name 1 lost"] == images["newest half lost"] == {"a"}


@pytest.mark.parametrize("seed", range(20))
def test_whatever_was_synced_last_survives_every_choice(seed: int) -> None:
    """Random lives of a few files; then everything is synced, changed again, and cut."""
    dice, disk, names = random.Random(seed), Disk({}), ["a", "b", "c"]
    for step in range(40):
        name = dice.choice(names)
        events = wrote(name, bytes([step]) * 3) if dice.random() < 0.7 or name not in disk.live() else synced(name)
        for event in events:
            disk.play(event)
    for path in ["", *disk.live()]:
        for event in synced(path):
            disk.play(event)
    sure = disk.live()
    for event in wrote("d", b"late"):
        disk.play(event)
    for choice in (LOST, EMPTIED, HALVED, ZEROED, by_chance(str(seed)), Choice("all", lambda _: True, whole)):
        assert sure.items() <= disk.after(choice).items()
