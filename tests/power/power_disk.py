"""A disk that forgets: what certainly survives a power cut, and everything that may.

The rules, stricter than any one file system:
  1. The bytes of a file survive from the last sync of that file on. Of bytes written later any part may be there:
     none, the first half, zeros in their place, all of them.
  2. A name in a folder survives from the last sync of that folder on, whether or not its file was synced. Of the names
     made, moved and removed later any subset may have happened; a move within a folder happens as a whole.
  3. A folder whose own name is lost is lost with everything in it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from power_trace import Event, Kind

# Every file by its path; folders have no bytes.
Image = dict[str, bytes | None]


@dataclass
class _File:
    now: bytes = b""
    synced: bytes | None = None


@dataclass
class _Folder:
    names: dict[str, int] = field(default_factory=dict)
    synced: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class _Change:
    """Names of one folder that change together, the `order`-th change of all; None takes a name away."""

    order: int
    folder: int
    names: tuple[tuple[str, int | None], ...]


@dataclass(frozen=True)
class Choice:
    """What of the unsynced the disk kept: of the changes of names by their number, of each file's bytes by a rule."""

    name: str
    keeps: Callable[[int], bool]
    bytes_of: Callable[[bytes | None, bytes], bytes]


class Disk:
    """Files and folders as running processes see them, and as they were last synced."""

    def __init__(self, before: Mapping[str, bytes | None]) -> None:
        """Everything in `before` is durable."""
        self._nodes: dict[int, _File | _Folder] = {0: _Folder()}
        self._changes = 0
        self._pending: list[_Change] = []
        self._syncing: dict[int, tuple[int, bytes | int]] = {}
        for path, data in sorted(before.items()):
            node: _File | _Folder = _Folder() if data is None else _File(data, data)
            folder, name = self._parent(path)
            folder.names[name] = folder.synced[name] = self._added(node)

    def play(self, event: Event) -> None:
        if event.kind is not Kind.MARK:
            _PLAYS[event.kind](self, event)

    def live(self) -> Image:
        """What a process sees: the disk if only the processes had died."""
        return self._image(lambda f: f.names, lambda f: f.now)

    def after(self, choice: Choice) -> Image:
        """What is there when the power comes back."""
        names = {i: dict(n.synced) for i, n in self._nodes.items() if isinstance(n, _Folder)}
        for number, change in enumerate(self._pending):
            if choice.keeps(number):
                _change(names[change.folder], change)
        by_folder = {id(self._nodes[i]): entries for i, entries in names.items()}

        def content(file: _File) -> bytes:
            return file.now if file.now == file.synced else choice.bytes_of(file.synced, file.now)

        return self._image(lambda f: by_folder[id(f)], content)

    @property
    def unsynced_names(self) -> int:
        return len(self._pending)

    def _image(self, names: Callable[[_Folder], Mapping[str, int]], content: Callable[[_File], bytes]) -> Image:
        found: Image = {}

        def walk(number: int, path: str) -> None:
            node = self._nodes[number]
            if isinstance(node, _File):
                found[path] = content(node)
                return
            if path:
                found[path] = None
            for name, child in names(node).items():
                walk(child, f"{path}/{name}" if path else name)

        walk(0, "")
        return found

    def _added(self, node: _File | _Folder) -> int:
        number = len(self._nodes)
        self._nodes[number] = node
        return number

    def _number(self, path: str) -> int:
        number = 0
        for name in path.split("/") if path else ():
            node = self._nodes[number]
            assert isinstance(node, _Folder)
            number = node.names[name]
        return number

    def _parent(self, path: str) -> tuple[_Folder, str]:
        above, _, name = path.rpartition("/")
        node = self._nodes[self._number(above)]
        assert isinstance(node, _Folder)
        return node, name

    def _file(self, path: str) -> _File:
        node = self._nodes[self._number(path)]
        assert isinstance(node, _File)
        return node

    def _rename_in(self, path: str, *names: tuple[str, int | None]) -> None:
        folder, _ = self._parent(path)
        self._changes += 1
        change = _Change(self._changes, self._number(path.rpartition("/")[0]), names)
        _change(folder.names, change)
        self._pending.append(change)

    def _create(self, event: Event) -> None:
        folder, name = self._parent(event.path)
        if name not in folder.names:
            self._rename_in(event.path, (name, self._added(_File())))

    def _mkdir(self, event: Event) -> None:
        self._rename_in(event.path, (event.path.rpartition("/")[2], self._added(_Folder())))

    def _write(self, event: Event) -> None:
        self._put(self._file(event.path), event.offset, event.data)

    def _copy(self, event: Event) -> None:
        data = self._file(event.path).now[event.source_offset :][: event.length]
        self._put(self._file(event.target), event.offset, data)

    def _put(self, file: _File, offset: int, data: bytes) -> None:
        padded = file.now.ljust(offset, b"\0")
        file.now = padded[:offset] + data + padded[offset + len(data) :]

    def _truncate(self, event: Event) -> None:
        file = self._file(event.path)
        file.now = file.now[: event.length].ljust(event.length, b"\0")

    def _rename(self, event: Event) -> None:
        (above, _, old), (target, _, new) = event.path.rpartition("/"), event.target.rpartition("/")
        assert above == target, f"a move between folders is not modelled: {event}"
        self._rename_in(event.path, (old, None), (new, self._number(event.path)))

    def _link(self, event: Event) -> None:
        self._rename_in(event.target, (event.target.rpartition("/")[2], self._number(event.path)))

    def _unlink(self, event: Event) -> None:
        self._rename_in(event.path, (event.path.rpartition("/")[2], None))

    def _sync_begins(self, event: Event) -> None:
        number = self._number(event.path)
        node = self._nodes[number]
        self._syncing[event.thread] = (number, node.now if isinstance(node, _File) else self._changes)

    def _sync_ends(self, event: Event) -> None:
        number, seen = self._syncing.pop(event.thread)
        node = self._nodes[number]
        if isinstance(node, _File):
            assert isinstance(seen, bytes)
            node.synced = seen
            return
        assert isinstance(seen, int)
        done = [c for c in self._pending if c.folder == number and c.order <= seen]
        for change in done:
            _change(node.synced, change)
        self._pending = [c for c in self._pending if c not in done]


_PLAYS: dict[Kind, Callable[[Disk, Event], None]] = {
    Kind.CREATE: Disk._create,
    Kind.WRITE: Disk._write,
    Kind.TRUNCATE: Disk._truncate,
    Kind.MKDIR: Disk._mkdir,
    Kind.RMDIR: Disk._unlink,
    Kind.RENAME: Disk._rename,
    Kind.LINK: Disk._link,
    Kind.COPY: Disk._copy,
    Kind.UNLINK: Disk._unlink,
    Kind.SYNC_BEGINS: Disk._sync_begins,
    Kind.SYNC_ENDS: Disk._sync_ends,
}


def _change(entries: dict[str, int], change: _Change) -> None:
    for name, number in change.names:
        if number is None:
            entries.pop(name, None)
        else:
            entries[name] = number


def _kept(synced: bytes | None, now: bytes) -> bytes:
    """The bytes that are sure: what was synced, unless the file was cut or written over since."""
    return synced if synced is not None and now.startswith(synced) else b""


def stale(synced: bytes | None, now: bytes) -> bytes:
    return synced or b""


def emptied(synced: bytes | None, now: bytes) -> bytes:
    return _kept(synced, now)


def halved(synced: bytes | None, now: bytes) -> bytes:
    sure = len(_kept(synced, now))
    return now[: sure + (len(now) - sure) // 2]


def zeroed(synced: bytes | None, now: bytes) -> bytes:
    return _kept(synced, now).ljust(len(now), b"\0")


def whole(synced: bytes | None, now: bytes) -> bytes:
    return now


TEARS = (stale, emptied, halved, zeroed, whole)
LOST = Choice("lost", lambda _: False, stale)
EMPTIED = Choice("emptied", lambda _: True, emptied)
HALVED = Choice("halved", lambda _: True, halved)
ZEROED = Choice("zeroed", lambda _: True, zeroed)
WHOLE = Choice("whole", lambda _: True, whole)


def by_chance(seed: str) -> Choice:
    """Each unsynced thing kept, lost or torn by the throw of a die."""
    dice = random.Random(seed)
    share = dice.choice((0.2, 0.5, 0.8))
    kept = [dice.random() < share for _ in range(1000)]
    return Choice(f"chance {seed}", lambda n: kept[n % 1000], lambda s, n: dice.choice(TEARS)(s, n))


def in_order(disk: Disk) -> Iterator[Choice]:
    """The names written back from the oldest on, from the newest on, all but one, and one alone."""
    total = disk.unsynced_names
    yield Choice("newest half lost", lambda n: n < total // 2, whole)
    yield Choice("oldest half lost", lambda n: n >= total // 2, whole)
    for one in range(total):
        yield Choice(f"name {one} lost", lambda n, one=one: n != one, whole)
        yield Choice(f"name {one} lost, bytes too", lambda n, one=one: n != one, emptied)
        yield Choice(f"name {one} alone", lambda n, one=one: n == one, whole)
