"""Which rows of a fragment are deleted, read from the small file that says so, whatever the size of the fragment.

Holds at every return: the offsets are as many as the table's metadata counts; a file that says otherwise, or that is of
a kind not known here, is passed over and Lance is asked for the rows that are left.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.storage.failures import translated
from omnigraph.storage.tables import Table

Offsets = npt.NDArray[np.uint32]

_WITHOUT_RUNS, _WITH_RUNS = 12346, 12347
_ARRAY_MAX = 4096
_BITMAP_BYTES = 8192
_OFFSETS_FROM = 4
_OFFSET_BITS = np.uint64(0xFFFFFFFF)


def deletion_key(metadata: Any) -> tuple[int, int] | None:
    """Two states of a fragment with equal keys have the same rows deleted."""
    found = metadata.deletion_file
    # A fork names the place of a file it shares with its base, so the place is no part of what the file is.
    return None if found is None else (int(found.id), int(found.read_version))


def deleted_offsets(table: Table, fragment: Any) -> Offsets:
    """Offsets of deleted rows within the fragment, ascending."""
    file = fragment.metadata.deletion_file
    if file is None:
        return np.empty(0, np.uint32)
    with translated(f"read {table.ref.location}"):
        found = table.ref.root.objects.get(_file_key(table, fragment, file))
        offsets = _parsed(file.file_type, found.data) if found is not None else None
        if offsets is None or len(offsets) != file.num_deleted_rows:
            return _by_scan(table, fragment)
        return np.sort(offsets)


def _file_key(table: Table, fragment: Any, file: Any) -> str:
    name = str(fragment.deletion_file())
    if file.base_id is None:
        return f"{table.ref.path}/{name}"
    base = str(table.dataset.base_paths()[file.base_id].path)
    root, below = _bare(table.ref.root.uri), _bare(base)
    return f"{below.removeprefix(root).strip('/')}/{name}"


def _bare(uri: str) -> str:
    return uri.split("://", 1)[-1].rstrip("/")


def _parsed(kind: str, data: bytes) -> Offsets | None:
    if kind == "array":
        read: Offsets = pa.ipc.open_file(data).read_all().column(0).to_numpy().astype(np.uint32)
        return read
    return roaring_values(data) if kind == "bitmap" else None


def roaring_values(data: bytes) -> Offsets | None:
    """The numbers in a serialised Roaring bitmap; None if it is of another form."""
    cookie = int.from_bytes(data[:4], "little")
    at, runs = 4, b""
    if cookie == _WITHOUT_RUNS:
        size, at = int.from_bytes(data[4:8], "little"), 8
    elif cookie & 0xFFFF == _WITH_RUNS:
        size = (cookie >> 16) + 1
        runs, at = data[4 : 4 + (size + 7) // 8], 4 + (size + 7) // 8
    else:
        return None
    heads = np.frombuffer(data, "<u2", 2 * size, at).reshape(size, 2).astype(np.uint32)
    at += 4 * size + (4 * size if not runs or size >= _OFFSETS_FROM else 0)
    parts = [np.empty(0, np.uint32)]
    for number in range(size):
        is_run = bool(runs and runs[number // 8] >> (number % 8) & 1)
        low, at = _container(data, at, int(heads[number, 1]) + 1, is_run)
        parts.append((heads[number, 0] << np.uint32(16)) | low.astype(np.uint32))
    return np.concatenate(parts)


def _container(data: bytes, at: int, count: int, is_run: bool) -> tuple[npt.NDArray[Any], int]:
    """The low halves of one container's numbers, and where the next container begins."""
    if is_run:
        pairs = int.from_bytes(data[at : at + 2], "little")
        found = np.frombuffer(data, "<u2", 2 * pairs, at + 2).reshape(pairs, 2).astype(np.uint32)
        spans = [np.arange(start, start + more + 1, dtype=np.uint32) for start, more in found.tolist()]
        return np.concatenate([np.empty(0, np.uint32), *spans]), at + 2 + 4 * pairs
    if count <= _ARRAY_MAX:
        return np.frombuffer(data, "<u2", count, at), at + 2 * count
    bits = np.unpackbits(np.frombuffer(data, np.uint8, _BITMAP_BYTES, at), bitorder="little")
    return np.flatnonzero(bits), at + _BITMAP_BYTES


def _by_scan(table: Table, fragment: Any) -> Offsets:
    rows = int(fragment.metadata.physical_rows or 0)
    live = np.zeros(rows, np.bool_)
    for batch in table.dataset.scanner(["_rowaddr"], fragments=[fragment], use_scalar_index=False).to_reader():
        live[(batch.column(0).to_numpy() & _OFFSET_BITS).astype(np.int64)] = True
    return np.flatnonzero(~live).astype(np.uint32)
