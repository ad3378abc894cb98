"""Small objects beside the tables: schema files, sidecars, claims. The condition is in the verb.

Holds for every store:
  1. A reader sees a whole object or none; a write that dies leaves the old object or the new one.
  2. `put_if_absent` has exactly one winner; `put_if_match` never re-creates a deleted object.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from omnigraph.base.errors import Conflict
from omnigraph.base.ids import new_ulid
from omnigraph.storage.failures import translated

STREAM_BYTES = 8 << 20
"""How much of a large file is in memory at a time."""


@dataclass(frozen=True)
class Stored:
    """An object's bytes and the tag that names exactly this content."""

    data: bytes
    etag: str


@dataclass(frozen=True)
class FoundFile:
    """A file below the root as a listing tells of it; the time is the store's."""

    key: str
    size: int
    modified_us: int


class ObjectStore(Protocol):
    """What the commit protocol needs of a place that keeps small objects."""

    def get(self, key: str) -> Stored | None: ...
    def exists(self, key: str) -> bool: ...
    def put(self, key: str, data: bytes) -> None: ...
    def put_if_absent(self, key: str, data: bytes) -> str | None: ...
    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None: ...
    def delete(self, key: str) -> None: ...
    def list(self, prefix: str, limit: int | None = None) -> list[str]: ...
    def remove_tree(self, prefix: str) -> None: ...
    def walk(self, prefix: str) -> Iterator[FoundFile]: ...
    def delete_files(self, keys: Sequence[str]) -> None: ...
    def stream(self, key: str) -> Iterator[bytes]: ...
    def put_stream(self, key: str, chunks: Iterator[bytes], size: int) -> None: ...


class Missing(Conflict):
    """A file that was listed is not there any more."""


def own_etag(objects: ObjectStore, key: str, data: bytes) -> str | None:
    """The tag of our own object, when a put reported as refused had landed and only its answer was lost.

    `data` must be content that nobody else could have put there.
    """
    found = objects.get(key)
    return found.etag if found is not None and found.data == data else None


def _etag(data: bytes) -> str:
    return hashlib.blake2b(data, digest_size=16).hexdigest()


class LocalObjectStore:
    """Objects as files below one directory."""

    def __init__(self, root: str, syncs: bool = False) -> None:
        self.root = root
        self._syncs = syncs
        self._reached: set[str] = set()

    def _path(self, key: str) -> str:
        return os.path.join(self.root, key)

    def get(self, key: str) -> Stored | None:
        with translated(f"read {key}"):
            try:
                with open(self._path(key), "rb") as file:
                    data = file.read()
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
            return Stored(data, _etag(data))

    def exists(self, key: str) -> bool:
        return os.access(f"{self.root}/{key}", os.F_OK)

    def put(self, key: str, data: bytes) -> None:
        with translated(f"write {key}"), self._written(key, data) as temporary:
            os.replace(temporary, self._path(key))

    def put_if_absent(self, key: str, data: bytes) -> str | None:
        """The new object's tag, or None when the key is taken."""
        with translated(f"write {key}"), self._written(key, data) as temporary:
            try:
                os.link(temporary, self._path(key))
            except FileExistsError:
                return None
            return _etag(data)

    def put_if_match(self, key: str, data: bytes, etag: str) -> str | None:
        """The new tag, or None when the object is gone or is not the one named."""
        with translated(f"rewrite {key}"), self._locked(key) as current:
            if current is None or _etag(current) != etag:
                return None
            with self._written(key, data) as temporary:
                os.replace(temporary, self._path(key))
            return _etag(data)

    def delete(self, key: str) -> None:
        with translated(f"delete {key}"), self._locked(key) as current:
            if current is not None:
                os.unlink(self._path(key))

    def list(self, prefix: str, limit: int | None = None) -> list[str]:
        """The keys directly below `prefix`, sorted; temporary files are not objects."""
        with translated(f"list {prefix}"):
            try:
                names = os.listdir(self._path(prefix))
            except (FileNotFoundError, NotADirectoryError):
                return []
            keys = sorted(f"{prefix}/{n}" if prefix else n for n in names if not n.startswith(".tmp-"))
            return keys[:limit]

    def remove_tree(self, prefix: str) -> None:
        with translated(f"remove {prefix}"):
            path = self._path(prefix)
            if os.path.isdir(path):
                shutil.rmtree(path)
            else:
                with suppress(FileNotFoundError):
                    os.unlink(path)

    def walk(self, prefix: str) -> Iterator[FoundFile]:
        """Every file below `prefix`, at any depth, temporary ones included; files that go meanwhile are left out."""
        with translated(f"list {prefix}"):
            for folder, _, names in os.walk(self._path(prefix)):
                for name in names:
                    path = os.path.join(folder, name)
                    try:
                        stat = os.lstat(path)
                    except FileNotFoundError:
                        continue
                    yield FoundFile(os.path.relpath(path, self.root), stat.st_size, stat.st_mtime_ns // 1000)

    def delete_files(self, keys: Sequence[str]) -> None:
        """Remove files that nobody rewrites; one that is gone already is fine."""
        for key in keys:
            with translated(f"delete {key}"), suppress(FileNotFoundError, NotADirectoryError):
                os.unlink(self._path(key))

    def stream(self, key: str) -> Iterator[bytes]:
        """The bytes of a large file, part by part; Missing when there is none."""
        with translated(f"read {key}"):
            try:
                with open(self._path(key), "rb") as file:
                    while part := file.read(STREAM_BYTES):
                        yield part
            except (FileNotFoundError, NotADirectoryError) as error:
                raise Missing(f"{key} is missing in '{self.root}'") from error

    def put_stream(self, key: str, chunks: Iterator[bytes], size: int) -> None:
        """A large file, there as a whole or not at all. The names of its folders are not synced."""
        path = self._path(key)
        with translated(f"write {key}"):
            os.makedirs(os.path.dirname(path), exist_ok=True)
            temporary = os.path.join(os.path.dirname(path), f".tmp-{new_ulid()}")
            try:
                with open(temporary, "xb") as file:
                    for part in chunks:
                        file.write(part)
                    if file.tell() != size:
                        raise Missing(f"{key} has {file.tell()} bytes and not {size}")
                    if self._syncs:
                        file.flush()
                        os.fsync(file.fileno())
                os.replace(temporary, path)
            finally:
                with suppress(FileNotFoundError):
                    os.unlink(temporary)

    @contextmanager
    def _written(self, key: str, data: bytes) -> Iterator[str]:
        """A complete temporary file beside `key`, gone afterwards."""
        path = self._path(key)
        self._make_folder(os.path.dirname(path))
        temporary = os.path.join(os.path.dirname(path), f".tmp-{new_ulid()}")
        try:
            with open(temporary, "xb") as file:
                file.write(data)
                if self._syncs:
                    file.flush()
                    os.fsync(file.fileno())
            yield temporary
            if self._syncs:
                sync_directory(os.path.dirname(path))
        finally:
            with suppress(FileNotFoundError):
                os.unlink(temporary)

    def _make_folder(self, folder: str) -> None:
        """Make a folder whose name is durable before anything is put into it."""
        above, made = folder, []
        while not os.path.isdir(above):
            made.append(above)
            above = os.path.dirname(above)
        os.makedirs(folder, exist_ok=True)
        if not self._syncs:
            return
        for new in made:
            sync_directory(os.path.dirname(new))
        if folder not in self._reached:
            # Whoever made it before us may have died before the sync. The root may lie where we may not look.
            with suppress(PermissionError):
                sync_directory(os.path.dirname(folder))
            self._reached.add(folder)

    @contextmanager
    def _locked(self, key: str) -> Iterator[bytes | None]:
        """The object's bytes while nobody else may rewrite or delete it; None when there is none."""
        path = self._path(key)
        while True:
            try:
                fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except OSError as error:
                if error.errno in (errno.ENOENT, errno.ENOTDIR):
                    yield None
                    return
                raise
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                if _same_file(fd, path):
                    with os.fdopen(os.dup(fd), "rb") as file:
                        yield file.read()
                    return
            finally:
                os.close(fd)


def _same_file(fd: int, path: str) -> bool:
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    here = os.fstat(fd)
    return (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino)


def sync_directory(path: str) -> None:
    """Make the names in a directory as durable as their files."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
