"""A trace is read as what happened below one folder, in order; what cannot be replayed is refused."""

from __future__ import annotations

import pytest
from power_recorder import Recorder
from power_trace import Event, Kind, NotReplayable, parse

CREATED = '7 openat(AT_FDCWD</x>, "/d/a", O_WRONLY|O_CREAT|O_EXCL|O_CLOEXEC, 0666) = 3</d/a>'


def read(*lines: str) -> list[Event]:
    return parse(lines, "/d")


def test_bytes_are_told_exactly_and_follow_each_other() -> None:
    events = read(CREATED, r'7 write(3</d/a>, "\1\0002\"\n\377", 6) = 6', '8 write(3</d/a>, "end", 3) = 3')
    assert [(e.kind, e.offset, e.data) for e in events[1:]] == [
        (Kind.WRITE, 0, b'\x01\x002"\n\xff'),
        (Kind.WRITE, 6, b"end"),
    ]


def test_a_write_that_was_not_finished_counts_as_far_as_it_came() -> None:
    (_, event) = read(CREATED, '7 write(3</d/a>, "12345", 5) = 2')
    assert event.data == b"12"


def test_names_and_positions_are_understood() -> None:
    events = read(
        CREATED,
        "7 lseek(3</d/a>, 10, SEEK_SET) = 10",
        '7 write(3</d/a>, "x", 1) = 1',
        '7 pwrite64(3</d/a>, "y", 1, 4) = 1',
        "7 ftruncate(3</d/a>, 9) = 0",
        '7 renameat(AT_FDCWD</x>, "/d/a", AT_FDCWD</x>, "/d/b") = 0',
        '7 linkat(AT_FDCWD</x>, "/d/b", AT_FDCWD</x>, "/d/c", 0) = 0',
        '7 unlinkat(5</d>, "b", 0) = 0',
        '7 unlinkat(5</d>, "sub", AT_REMOVEDIR) = 0',
        '7 mkdir("/d/sub/e", 0777) = 0',
    )
    assert [(e.kind, e.path, e.target, e.offset, e.length) for e in events[1:]] == [
        (Kind.WRITE, "a", "", 10, 0),
        (Kind.WRITE, "a", "", 4, 0),
        (Kind.TRUNCATE, "a", "", 0, 9),
        (Kind.RENAME, "a", "b", 0, 0),
        (Kind.LINK, "b", "c", 0, 0),
        (Kind.UNLINK, "b", "", 0, 0),
        (Kind.RMDIR, "sub", "", 0, 0),
        (Kind.MKDIR, "sub/e", "", 0, 0),
    ]


def test_a_sync_that_others_interrupt_begins_before_them_and_ends_after_them() -> None:
    events = read(
        "7 fsync(4</d/a> <unfinished ...>",
        '8 mkdir("/d/b", 0777) = 0',
        "7 <... fsync resumed>) = 0",
    )
    assert [(e.kind, e.path, e.thread) for e in events] == [
        (Kind.SYNC_BEGINS, "a", 7),
        (Kind.MKDIR, "b", 0),
        (Kind.SYNC_ENDS, "a", 7),
    ]


def test_failures_other_folders_and_files_without_a_name_are_left_out() -> None:
    assert read('7 mkdir("/d/b", 0777) = -1 EEXIST (File exists)', '7 mkdir("/dd/b", 0777) = 0') == []
    assert read('7 write(3</d/a>(deleted), "1", 1) = 1', "7 fsync(3</e/a>) = 0") == []


def test_marks_are_kept_though_their_files_are_not_there() -> None:
    (mark,) = read('7 openat(AT_FDCWD</x>, "/omnigraph-mark/3/load.pre_phase_a", O_RDONLY) = -1 ENOENT (No such file)')
    assert (mark.kind, mark.path) == (Kind.MARK, "3/load.pre_phase_a")


@pytest.mark.parametrize(
    "line",
    [
        '7 write(3</d/a>, "12"..., 5) = 5',
        "7 sendfile(3</d/a>, 4</d/b>, NULL, 10) = 10",
        "7 mmap(NULL, 4096, PROT_READ|PROT_WRITE, MAP_SHARED, 3</d/a>, 0) = 0",
        '7 rename("/d/a", "/elsewhere") = 0',
        "7 io_uring_setup(8, {flags=0}) = 3",
        "7 sync() = 0",
    ],
)
def test_what_cannot_be_replayed_is_refused(line: str) -> None:
    with pytest.raises(NotReplayable):
        read(line)


@pytest.mark.slow
def test_the_trace_of_a_real_init_replays_to_the_files_it_left(recorder: Recorder) -> None:
    """`record` compares the replay with the disk; the last look here is that there was something to compare."""
    recording = recorder.record({}, {"does": "init"})
    assert recording.said == "done"
    assert any(path.startswith("g/__manifest/_versions/") for path in recording.disk_at(len(recording.events)).live())
