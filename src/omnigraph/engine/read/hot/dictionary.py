"""Ids and their numbers.

Holds at every return:
  1. An id has one number for as long as the dictionary lives; numbers are dense and never given again.
  2. A reader may look up while another thread adds: it sees the ids it could know of.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.read.taken import taken

Ordinals = npt.NDArray[np.int64]
ABSENT = -1
# Hashing reads ids as Python strings; this many at a time.
_CHUNK = 65_536
# Added ids are kept apart until sorting them in is worth it.
_TAIL_MAX = 8_192
_TAIL_ID_BYTES = 200
# Up to here one by one; more, but fewer than this share of all, by their hashes; else all at once.
_FEW, _MANY_SHARE = 16, 8
_HASH_BYTES = 12


@dataclass(frozen=True)
class _Hashes:
    """`order[i]` is the number of the id whose hash is `hashes[i]`; hashes ascend."""

    hashes: npt.NDArray[np.int64]
    order: npt.NDArray[np.int32]


class _Known:
    """Ids by their numbers; those added later follow in the tail, which only grows."""

    def __init__(self, ids: pa.StringArray) -> None:
        self.ids = ids
        self.tail: dict[str, int] = {}
        self.tail_ids: list[str] = []

    def __len__(self) -> int:
        return len(self.ids) + len(self.tail_ids)

    @cached_property
    def sorted(self) -> _Hashes:
        """Made when the first id is looked up by itself."""
        hashes = np.fromiter(_hashes(self.ids), np.int64, len(self.ids))
        order = np.argsort(hashes, kind="stable").astype(np.int32)
        return _Hashes(hashes[order], order)


class Dictionary:
    """The ids of one node table, of all its versions that are in memory."""

    def __init__(self, ids: pa.Array | pa.ChunkedArray) -> None:
        self._known = _Known(_flat(ids))
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._known)

    @property
    def nbytes(self) -> int:
        known = self._known
        return int(known.ids.nbytes + _HASH_BYTES * len(known.ids) + _TAIL_ID_BYTES * len(known.tail_ids))

    def find(self, id: str) -> int:
        """The number of an id, ABSENT if it has none."""
        known = self._known
        wanted = hash(id)
        hashes, order = known.sorted.hashes, known.sorted.order
        at = int(hashes.searchsorted(wanted))
        while at < len(hashes) and hashes[at] == wanted:
            number = int(order[at])
            if known.ids[number].as_py() == id:
                return number
            at += 1
        return known.tail.get(id, ABSENT)

    def find_all(self, ids: pa.Array | pa.ChunkedArray) -> Ordinals:
        """The number of each id, ABSENT where it has none."""
        if len(ids) <= _FEW:
            return np.fromiter((self.find(id) for id in ids.to_pylist()), np.int64, len(ids))
        known = self._known
        if len(ids) <= len(known.ids) // _MANY_SHARE:
            return self._find_some(_flat(ids))
        found = _flat(pc.index_in(ids, value_set=known.ids))
        numbers: Ordinals = found.fill_null(ABSENT).to_numpy(zero_copy_only=False).astype(np.int64)
        if known.tail:
            for at in np.flatnonzero(numbers == ABSENT):
                numbers[at] = known.tail.get(ids[int(at)].as_py(), ABSENT)
        return numbers

    def _find_some(self, ids: pa.Array) -> Ordinals:
        """By the hashes that are kept; joining with all ids would hash every one of them anew."""
        known = self._known
        hashes, order = known.sorted.hashes, known.sorted.order
        wanted = np.fromiter(_hashes(ids), np.int64, len(ids))
        places = np.minimum(hashes.searchsorted(wanted), len(hashes) - 1)
        numbers = order[places].astype(np.int64)
        same = pc.equal(known.ids.take(pa.array(numbers)), ids).to_numpy(zero_copy_only=False)
        for at in np.flatnonzero(~same):  # not there, or behind another of the same hash
            numbers[at] = self.find(ids[int(at)].as_py())
        return numbers

    def add_all(self, ids: pa.Array | pa.ChunkedArray) -> Ordinals:
        """The number of each id; those that had none get one."""
        with self._lock:
            numbers = self.find_all(ids)
            known = self._known
            for at in np.flatnonzero(numbers == ABSENT):
                id = ids[int(at)].as_py()
                if id not in known.tail:
                    known.tail_ids.append(id)
                    known.tail[id] = len(known) - 1
                numbers[at] = known.tail[id]
            if len(known.tail) > _TAIL_MAX:
                self._known = _Known(pa.concat_arrays([known.ids, pa.array(known.tail_ids, pa.string())]))
            return numbers

    def ids_at(self, numbers: Ordinals) -> pa.Array:
        known = self._known
        first = len(known.ids)
        if not len(numbers) or int(numbers.max()) < first:
            return taken(known.ids, numbers)
        early = numbers < first
        found = np.empty(len(numbers), object)
        found[early] = known.ids.take(pa.array(numbers[early])).to_pylist()
        found[~early] = [known.tail_ids[number - first] for number in numbers[~early].tolist()]
        return pa.array(found, pa.string())


def _flat(values: pa.Array | pa.ChunkedArray) -> Any:
    if isinstance(values, pa.ChunkedArray):
        return values.chunk(0) if values.num_chunks == 1 else values.combine_chunks()
    return values


def _hashes(ids: pa.StringArray) -> Iterator[int]:
    for start in range(0, len(ids), _CHUNK):
        part: Sequence[str] = ids.slice(start, _CHUNK).to_pylist()
        yield from map(hash, part)
