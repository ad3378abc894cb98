"""What a process did to the files below one folder, in order, from the text that strace wrote.

Only calls that can change a disk are traced. One that cannot be replayed is an error, not a gap.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

MARK = "/omnigraph-mark"
CALLS = [
    "open",
    "openat",
    "openat2",
    "creat",
    "write",
    "pwrite64",
    "writev",
    "pwritev",
    "pwritev2",
    "lseek",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "unlink",
    "unlinkat",
    "mkdir",
    "mkdirat",
    "rmdir",
    "truncate",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "sync",
    "syncfs",
    "sync_file_range",
    "msync",
    "copy_file_range",
    "sendfile",
    "splice",
    "io_uring_setup",
    "mmap",
    "close",
    "dup",
    "dup2",
    "dup3",
]
DATA_BYTES_MAX = 1 << 24


class Kind(Enum):
    CREATE = "create"
    WRITE = "write"
    TRUNCATE = "truncate"
    MKDIR = "mkdir"
    RMDIR = "rmdir"
    RENAME = "rename"
    LINK = "link"
    COPY = "copy"
    UNLINK = "unlink"
    SYNC_BEGINS = "sync begins"
    SYNC_ENDS = "sync ends"
    MARK = "mark"


@dataclass(frozen=True)
class Event:
    """One change, with paths below the traced folder ("" is the folder itself)."""

    kind: Kind
    path: str
    target: str = ""
    data: bytes = b""
    offset: int = 0
    length: int = 0
    source_offset: int = 0
    thread: int = 0

    def __str__(self) -> str:
        return f"{self.kind.value} {self.path}{' -> ' + self.target if self.target else ''}"


class NotReplayable(Exception):
    """The trace holds a call below the folder that the disk model does not know."""


@dataclass(frozen=True)
class _Call:
    thread: int
    name: str
    arguments: str
    result: int

    @property
    def strings(self) -> list[bytes]:
        found = _STRING.findall(self.arguments)
        if any(cut for _, cut in found):
            raise NotReplayable(f"strace cut the data of {self.name} short")
        return [_unescaped(text) for text, _ in found]

    @property
    def fd(self) -> int:
        return int(self.arguments.split("<", 1)[0].split(",", 1)[0])

    @property
    def fd_path(self) -> str:
        """The path of the first descriptor; none for a file that has lost its name."""
        found = _FD_PATH.match(self.arguments)
        return found.group(1) if found and "(deleted)" not in found.group(0) else ""

    def paths(self) -> list[str]:
        """The named paths, those relative to a folder's descriptor made absolute."""
        folders = [f.group(1) for f in _FOLDER.finditer(_STRING.sub('""', self.arguments))]
        names = [s.decode() for s in self.strings]
        return [os.path.join(folders[i] if i < len(folders) else "/", n) for i, n in enumerate(names)]


_LINE = re.compile(r"^(\d+) +(\w+)\((.*)\) += (-?\d+|\?)", re.DOTALL)
_UNFINISHED = re.compile(r"^(\d+) +(\w+)\((.*?) *<unfinished \.\.\.>$", re.DOTALL)
_RESUMED = re.compile(r"^(\d+) +<\.\.\. \w+ resumed>(.*)$", re.DOTALL)
_STRING = re.compile(r'"((?:[^"\\]|\\.)*)"(\.\.\.)?')
_FD_PATH = re.compile(r"-?\d+<([^>]*)>(?:\(deleted\))?")
_COPY = re.compile(r"(?P<from>\d+)<(?P<source>[^>]*)>, NULL, (?P<to>\d+)<(?P<target>[^>]*)>, NULL,")
_FOLDER = re.compile(r"(?:AT_FDCWD|\d+)<([^>]*)>")


def _unescaped(text: str) -> bytes:
    return text.encode("latin-1").decode("unicode_escape").encode("latin-1")


def parse(lines: Iterable[str], root: str) -> list[Event]:
    """The changes below `root`, in the order in which their calls ended."""
    return list(_Parser(root).events(lines))


class _Parser:
    def __init__(self, root: str) -> None:
        self._root = root
        self._positions: dict[int, int] = {}
        self._begun: dict[int, str] = {}

    def events(self, lines: Iterable[str]) -> Iterator[Event]:
        for line in lines:
            line = line.rstrip("\n")
            if unfinished := _UNFINISHED.match(line):
                thread, name, start = int(unfinished[1]), unfinished[2], unfinished[3]
                self._begun[thread] = f"{thread} {name}({start}"
                # What others write while a sync runs is not covered by it.
                if name in ("fsync", "fdatasync"):
                    yield from self._sync(Kind.SYNC_BEGINS, _Call(thread, name, start, 0))
                continue
            resumed = _RESUMED.match(line)
            if resumed:
                line = self._begun.pop(int(resumed[1]), "") + resumed[2]
            found = _LINE.match(line)
            if found is None or found[4] == "?":
                continue
            call = _Call(int(found[1]), found[2], found[3], int(found[4]))
            yield from self._event(call, was_split=resumed is not None)

    def _event(self, call: _Call, was_split: bool) -> Iterator[Event]:
        if MARK in call.arguments and call.name in ("open", "openat"):
            yield Event(Kind.MARK, call.paths()[0].removeprefix(f"{MARK}/"), thread=call.thread)
        elif call.result < 0:
            return
        elif call.name in ("fsync", "fdatasync"):
            if not was_split:
                yield from self._sync(Kind.SYNC_BEGINS, call)
            yield from self._sync(Kind.SYNC_ENDS, call)
        elif call.name in ("open", "openat", "openat2", "creat"):
            yield from self._opened(call)
        elif call.name in ("write", "pwrite64", "writev", "pwritev", "pwritev2"):
            yield from self._written(call)
        elif call.name == "copy_file_range":
            yield from self._copied(call)
        elif call.name == "lseek":
            self._positions[call.fd] = call.result
        elif call.name in ("dup", "dup2", "dup3"):
            self._positions[call.result] = self._positions.get(call.fd, 0)
        elif call.name in _NAME_CALLS:
            yield from self._renamed(call)
        elif call.name != "close":
            self._refuse(call)

    def _sync(self, kind: Kind, call: _Call) -> Iterator[Event]:
        path = self._below(call.fd_path)
        if path is not None:
            yield Event(kind, path, thread=call.thread)

    def _opened(self, call: _Call) -> Iterator[Event]:
        self._positions[call.result] = 0
        path = self._below(call.paths()[0])
        if path is None:
            return
        flags = _STRING.sub("", call.arguments)
        if "O_TMPFILE" in flags or "O_APPEND" in flags:
            raise NotReplayable(f"{call.name} {path} {flags}")
        if "O_CREAT" in flags or call.name == "creat":
            yield Event(Kind.CREATE, path)
        if "O_TRUNC" in flags or call.name == "creat":
            yield Event(Kind.TRUNCATE, path)

    def _written(self, call: _Call) -> Iterator[Event]:
        path = self._below(call.fd_path)
        if path is None:
            return
        data = b"".join(call.strings)[: call.result]
        if call.name.startswith("p"):
            offset = int(call.arguments.rsplit(",", 2 if call.name == "pwritev2" else 1)[1])
        else:
            offset = self._positions.get(call.fd, 0)
            self._positions[call.fd] = offset + call.result
        yield Event(Kind.WRITE, path, data=data, offset=offset)

    def _copied(self, call: _Call) -> Iterator[Event]:
        found = _COPY.match(call.arguments)
        if found is None:
            raise NotReplayable(f"copy_file_range({call.arguments})")
        source, target = self._below(found["source"]), self._below(found["target"])
        if source is None or target is None:
            if target is not None:
                raise NotReplayable(f"copy_file_range({call.arguments})")
            return
        ends = int(found["from"]), int(found["to"])
        start, offset = (self._positions.get(fd, 0) for fd in ends)
        self._positions |= {ends[0]: start + call.result, ends[1]: offset + call.result}
        yield Event(Kind.COPY, source, target, offset=offset, length=call.result, source_offset=start)

    def _renamed(self, call: _Call) -> Iterator[Event]:
        kind = _NAME_CALLS[call.name]
        if "AT_REMOVEDIR" in call.arguments:
            kind = Kind.RMDIR
        paths = [call.fd_path] if call.name == "ftruncate" else call.paths()
        below = [self._below(p) for p in paths]
        if all(p is None for p in below):
            return
        if None in below or "RENAME_EXCHANGE" in call.arguments:
            raise NotReplayable(f"{call.name}({call.arguments})")
        names = [p for p in below if p is not None]
        length = int(call.arguments.rsplit(",", 1)[1]) if kind is Kind.TRUNCATE else 0
        yield Event(kind, names[0], names[1] if len(names) > 1 else "", length=length)

    def _refuse(self, call: _Call) -> None:
        if call.name == "mmap" and not ("MAP_SHARED" in call.arguments and "PROT_WRITE" in call.arguments):
            return
        if self._root in call.arguments or call.name in ("sync", "io_uring_setup"):
            raise NotReplayable(f"{call.name}({call.arguments[:200]})")

    def _below(self, path: str) -> str | None:
        if path == self._root:
            return ""
        return path.removeprefix(f"{self._root}/") if path.startswith(f"{self._root}/") else None


_NAME_CALLS = {
    "rename": Kind.RENAME,
    "renameat": Kind.RENAME,
    "renameat2": Kind.RENAME,
    "link": Kind.LINK,
    "linkat": Kind.LINK,
    "unlink": Kind.UNLINK,
    "unlinkat": Kind.UNLINK,
    "mkdir": Kind.MKDIR,
    "mkdirat": Kind.MKDIR,
    "rmdir": Kind.RMDIR,
    "truncate": Kind.TRUNCATE,
    "ftruncate": Kind.TRUNCATE,
}
