"""Files of one root copied to another: several at once, part by part, and none that is there already."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass

from omnigraph.base.failpoints import reach
from omnigraph.engine.clone.carry import TableCopy
from omnigraph.engine.clone.result import Tell
from omnigraph.manifest import layout
from omnigraph.storage.files import unit_of
from omnigraph.storage.objects import FoundFile
from omnigraph.storage.places import Root
from omnigraph.storage.s3 import S3ObjectStore

_THREADS = 8
_WAITING_MAX = 64
_TOLD_BYTES = 1 << 20
_TABLES = ("nodes", "edges")
_MADE = frozenset(
    {
        *_TABLES,
        layout.MANIFEST,
        layout.COMMITS,
        layout.COMMIT_ACTORS,
        layout.RECOVERIES,
        layout.RECOVERY_DIR,
        layout.TAG_DIR,
        layout.SCHEMA_SOURCE,
        layout.SCHEMA_IR,
        layout.SCHEMA_STATE,
    }
)
"""What a clone makes below the root, but its locks and its claim."""


@dataclass(frozen=True)
class Copied:
    files: int
    bytes: int


def left_by_an_earlier_run(target: Root) -> dict[str, int]:
    """Data files that lie in the target, with their sizes. Everything else that a clone makes goes.

    Names of data files are never used twice, so one of the same name and size has the same content.
    """
    kept, gone = {}, []
    for file in target.objects.walk(""):
        place = file.key.split("/", 1)[0]
        if place not in _MADE:
            continue
        if place in _TABLES and _is_named_once(file.key):
            kept[file.key] = file.size
        else:
            gone.append(file.key)
    target.objects.delete_files(gone)
    return kept


def _is_named_once(key: str) -> bool:
    parts = key.split("/")
    return any(unit_of("/".join(parts[at:])) is not None for at in range(1, len(parts) - 1))


def still_to_copy(target: Root, copies: Sequence[TableCopy], there: Mapping[str, int]) -> list[FoundFile]:
    """The files that an earlier run did not copy; what it copied and is not needed any more is removed."""
    locations = {copy.location for copy in copies}
    files = [file for copy in copies for file in copy.files]
    wanted = {file.key: file.size for file in files}
    target.objects.delete_files([key for key, size in there.items() if wanted.get(key) != size])
    for place in (place for kind in _TABLES for place in target.objects.list(kind)):
        if place not in locations:
            target.objects.remove_tree(place)
    return [file for file in files if there.get(file.key) != file.size]


def copy_files(source: Root, target: Root, files: Sequence[FoundFile], tell: Tell) -> Copied:
    """Copy all of them; the first failure ends it, after the files that are under way."""
    total, done, told = sum(file.size for file in files), 0, 0
    tell("copy", 0, total)
    with ThreadPoolExecutor(_THREADS, "omnigraph-clone") as threads:
        running: dict[Future[None], int] = {}
        waiting = iter(files)
        try:
            while True:
                while len(running) < _WAITING_MAX and (file := next(waiting, None)) is not None:
                    running[threads.submit(_copy, source, target, file)] = file.size
                if not running:
                    break
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    done += running.pop(ended)
                    ended.result()
                if done - told >= _TOLD_BYTES:
                    tell("copy", done, total)
                    told = done
        except BaseException:
            threads.shutdown(wait=True, cancel_futures=True)
            raise
    tell("copy", total, total)
    return Copied(len(files), total)


def _copy(source: Root, target: Root, file: FoundFile) -> None:
    """One file; between places of one store by the store itself."""
    from_, to = source.objects, target.objects
    if isinstance(from_, S3ObjectStore) and isinstance(to, S3ObjectStore) and to.copy_from(from_, file.key, file.size):
        return
    to.put_stream(file.key, from_.stream(file.key), file.size)
    reach("clone.file_copied")
