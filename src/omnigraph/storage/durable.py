"""Makes what Lance wrote survive a power cut; Lance itself syncs nothing on a local disk.

The caller keeps the order that recovery relies on: staged files before the sidecar, the sidecar before table commits,
tables before the publish, the publish before the answer. On an object store, and with durability `os`, nothing is done.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from omnigraph.storage.failures import translated
from omnigraph.storage.objects import sync_directory
from omnigraph.storage.stage import StagedWrite
from omnigraph.storage.tables import Table, TableRef

TRANSACTIONS = "_transactions"
_DATA, _INDICES = "data", "_indices"


def sync_staged(staged: StagedWrite) -> None:
    """The files a staged write refers to."""
    if not staged.ref.root.syncs:
        return
    files = staged_files(staged)
    for folder in staged_folders(staged):
        files += _tree(staged.ref, folder)
    if files:
        _sync(staged.ref, files)
        # Lance makes a folder with its first file, so the names of the folders may be as new as the files.
        sync_directory(staged.ref.uri)


def staged_files(staged: StagedWrite) -> list[str]:
    """The files a staged write brings, below its table; those of indexes lie in `staged_folders`."""
    if staged.files is not None:
        return list(staged.files)
    files: list[str] = []
    if staged.rewrites:
        for rewrite in staged.rewrites:
            files += _fragment_files(rewrite.new_fragments)
    elif staged.transaction is not None:
        for name in ("fragments", "new_fragments", "updated_fragments"):
            fragments = getattr(staged.transaction.operation, name, None) or ()
            files += _fragment_files(fragments, deletions_only=name == "updated_fragments")
        for group in getattr(staged.transaction.operation, "groups", None) or ():
            files += _fragment_files(group.new_fragments)
    return files


def staged_folders(staged: StagedWrite) -> list[str]:
    """The folders of the indexes a staged write brings."""
    if staged.rewrites or staged.transaction is None:
        return []
    indexes = getattr(staged.transaction.operation, "new_indices", None) or ()
    return [f"{_INDICES}/{index.uuid}" for index in indexes]


def sync_commit(staged: StagedWrite, version: int) -> None:
    """The versions a staged write made, up to `version`."""
    if not staged.ref.root.syncs:
        return
    if staged.rewrites:
        sync_landed(staged.ref, staged.read_version, version)
        return
    transaction = f"{TRANSACTIONS}/{staged.read_version}-{staged.uuid}.txn"
    _sync(staged.ref, [*_versions(staged.ref, version, version), transaction])
    if staged.read_version == 0:
        _sync_way(staged.ref)


def sync_landed(ref: TableRef, expected: int, planned: int) -> None:
    """The versions after `expected` up to `planned`, whoever committed them."""
    if ref.root.syncs:
        _sync(ref, [*_versions(ref, expected + 1, planned), *_transactions(ref, planned - expected)])
        if expected == 0:
            _sync_way(ref)


def sync_files(ref: TableRef, fragments: Iterable[Any]) -> None:
    """The data files of fragments."""
    if ref.root.syncs:
        _sync(ref, _fragment_files(fragments))


def sync_version(table: Table, transaction: str | None = None) -> None:
    """One version of a table; `transaction` is the name of its transaction file, where it is known."""
    if table.ref.root.syncs:
        # A commit that Lance moved over a reservation writes its transaction under another name.
        known = transaction is not None and os.path.exists(f"{table.ref.uri}/{TRANSACTIONS}/{transaction}")
        names = [f"{TRANSACTIONS}/{transaction}"] if known else _transactions(table.ref)
        _sync(table.ref, [*_versions(table.ref, table.version, table.version), *names])


def sync_whole(table: Table) -> None:
    """A small table with all its files: another process may have died before it synced them."""
    sync_files(table.ref, table.fragments())
    sync_version(table)


def sync_place(ref: TableRef, below: str) -> None:
    """Everything in one folder of a table, "" being the table itself; what is removed meanwhile is not missed."""
    if ref.root.syncs and os.path.isdir(ref.uri):
        _sync(ref, _tree(ref, below), may_be_gone=True)
        _sync_way(ref)


def sync_name(ref: TableRef, file: str) -> None:
    """One file of a table, or that it is gone, and its name on the way down from the table."""
    if not ref.root.syncs or not os.path.isdir(ref.uri):
        return
    path = f"{ref.uri}/{file}"
    if os.path.exists(path):
        _sync(ref, [file])
    elif os.path.isdir(os.path.dirname(path)):
        sync_directory(os.path.dirname(path))
    sync_directory(ref.uri)


def _sync_way(ref: TableRef) -> None:
    """The names on the way from the root to a table."""
    with translated(f"sync {ref.location}"):
        folder = ref.uri
        while folder != ref.root.uri:
            sync_directory(folder)
            folder = os.path.dirname(folder)
        sync_directory(folder)


def _fragment_files(fragments: Iterable[Any], deletions_only: bool = False) -> list[str]:
    files = []
    for fragment in fragments:
        if not deletions_only:
            files += [f"{_DATA}/{file.path}" for file in fragment.files if getattr(file, "base_id", None) is None]
        if fragment.deletion_file is not None and fragment.deletion_file.base_id is None:
            files.append(str(fragment.deletion_file.path(fragment.id)))
    return files


def _versions(ref: TableRef, first: int, last: int) -> list[str]:
    return [ref.version_file(v).removeprefix(f"{ref.path}/") for v in range(first, last + 1)]


def _transactions(ref: TableRef, versions: int = 1) -> list[str]:
    """The newest transaction files; which of them belong to a version is not worth opening it for."""
    names = _names(f"{ref.uri}/{TRANSACTIONS}")
    reads = sorted(names, key=lambda n: int(n.split("-", 1)[0]) if n.split("-", 1)[0].isdigit() else -1)
    return [f"{TRANSACTIONS}/{n}" for n in reads[-3 - versions :]]


def _tree(ref: TableRef, below: str) -> list[str]:
    top = f"{ref.uri}/{below}" if below else ref.uri
    return [os.path.relpath(os.path.join(folder, name), ref.uri) for folder, _, names in os.walk(top) for name in names]


def _names(path: str) -> list[str]:
    try:
        return os.listdir(path)
    except FileNotFoundError:
        return []


def _sync(ref: TableRef, files: Iterable[str], may_be_gone: bool = False) -> None:
    """Sync files below a table and every folder between them and it, without the table's own."""
    folders: set[str] = set()
    gone = (FileNotFoundError,) if may_be_gone else ()
    with translated(f"sync {ref.location}"):
        for file in dict.fromkeys(files):
            path = f"{ref.uri}/{file}"
            with suppress(*gone):
                _sync_file(path)
            folder = os.path.dirname(path)
            while folder != ref.uri:
                folders.add(folder)
                folder = os.path.dirname(folder)
        for folder in sorted(folders, reverse=True):
            with suppress(*gone):
                sync_directory(folder)


def _sync_file(path: str) -> None:
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
