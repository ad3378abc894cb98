"""Nearest vectors by cosine distance, exactly or with the help of an index.

Holds for every answer:
  1. Distances are the true ones, counted alike for every row wherever it was found: equal vectors are equally far.
  2. Rows whose vector is null or has no length are never returned, nor rows that are not among those allowed.
  3. Memory is bounded by a batch of rows, the best rows so far and those allowed.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import BadRequest
from omnigraph.engine.read.cosine import Vectors
from omnigraph.storage.deltas import ROW_ID
from omnigraph.storage.search import fragment_ids, rows_of_fragments, vector_coverage, vector_hits
from omnigraph.storage.tables import Table

Numbers: TypeAlias = "np.ndarray[Any, Any]"

_BATCH_BYTES = 8 << 20
# So few rows are looked at one by one, whether or not there is an index.
_TAKE_ROWS_MAX = 16_384
# More rows than asked for: they break ties, and the overlap of two small answers would say little.
_MARGIN, _HITS_MIN = 16, 64
_PROBES_FIRST = 8
# Vectors that take no more room than this are read sooner than an index is asked.
_READ_BYTES_MAX = 8 << 20
# Above this part of a table all of it is read sooner than found.
_INDEX_PART_MAX = 0.25
# An answer is taken once twice as many partitions hardly change it; the target of 0.95 allows for far more change.
_OVERLAP_MIN = 0.97


def cosine_distances(vectors: pa.Array | pa.ChunkedArray, query: Numbers) -> Numbers:
    """How far each vector is from the query, in [0, 2]; nan for a null and for one without length."""
    wanted = query.astype(np.float64)
    chunks = vectors.chunks if isinstance(vectors, pa.ChunkedArray) else [vectors]
    step = max(1, _BATCH_BYTES // (8 * max(1, len(wanted))))
    pieces = (chunk.slice(first, step) for chunk in chunks for first in range(0, len(chunk), step))
    found = [Vectors.of(piece).distances(wanted) for piece in pieces]
    return np.concatenate(found) if found else np.zeros(0)


def nearest_rows(
    table: Table, column: str, query: Numbers, limit: int, among: pa.UInt64Array | None, exact: bool
) -> tuple[pa.UInt64Array, pa.DoubleArray]:
    """The ids of the `limit` nearest rows and of all that are as near as the last of them, nearest first.

    Equal distances are in the order of row ids. `among`: the rows that may be returned, all if None. Unless `exact`,
    an index of a large table is asked, and more partitions of it are until the answer settles (recall 0.95 or better).
    """
    _refuse_bad_query(table, column, query)
    allowed = None if among is None else np.unique(among.to_numpy())
    best = _Best(column, query, limit, allowed)
    if limit < 1:
        return best.answer()
    if allowed is not None and len(allowed) <= _TAKE_ROWS_MAX:
        best.look_at(table, allowed)
        return best.answer()
    is_small = table.count_rows() * 4 * len(query) <= _READ_BYTES_MAX
    covered = frozenset[int]() if exact or is_small else vector_coverage(table, column)
    by_index = bool(covered) and _ask_index(table, best)
    best.read(table, [n for n in fragment_ids(table) if n not in covered] if by_index else None)
    return best.answer()


class _Best:
    """The nearest rows so far, with all that are as near as the last of them."""

    def __init__(self, column: str, query: Numbers, limit: int, allowed: Numbers | None) -> None:
        self.column, self.query, self.limit, self.allowed = column, query, limit, allowed
        self.rows: Numbers = np.zeros(0, np.uint64)
        self.distances: Numbers = np.zeros(0)
        self.seen = 0

    def read(self, table: Table, fragments: Sequence[int] | None) -> None:
        """Look at all rows, or at those of some fragments."""
        batch_rows = max(64, _BATCH_BYTES // (8 * len(self.query)))
        for batch in rows_of_fragments(table, [self.column], None, fragments, batch_rows):
            rows = batch.column("_rowid").to_numpy()
            may = self.may_hold(rows)
            if may.any():
                self._offer(rows[may], batch.column(self.column).filter(pa.array(may)))

    def look_at(self, table: Table, rows: Numbers) -> None:
        """Look at the rows with these ids."""
        step = max(64, _BATCH_BYTES // (8 * len(self.query)))
        for first in range(0, len(rows), step):
            some = rows[first : first + step]
            # An index may name rows that are no longer there.
            found = table.take(some.tolist(), [self.column, ROW_ID])
            self._offer(found.column(ROW_ID).to_numpy(), found.column(self.column))

    def may_hold(self, rows: Numbers) -> Numbers:
        """Which of the rows are among those allowed."""
        if self.allowed is None:
            return np.ones(len(rows), bool)
        place = np.searchsorted(self.allowed, rows)
        place[place == len(self.allowed)] = 0
        return np.equal(self.allowed[place], rows)

    def _offer(self, rows: Numbers, vectors: pa.Array | pa.ChunkedArray) -> None:
        distances = cosine_distances(vectors, self.query)
        counts = ~np.isnan(distances)
        self.seen += int(counts.sum())
        self._add(rows[counts], distances[counts])

    def _add(self, rows: Numbers, distances: Numbers) -> None:
        rows, distances = np.concatenate((self.rows, rows)), np.concatenate((self.distances, distances))
        if len(rows) > self.limit:
            kept = distances <= np.partition(distances, self.limit - 1)[self.limit - 1]
            rows, distances = rows[kept], distances[kept]
        self.rows, self.distances = rows, distances

    def take_over(self, other: _Best) -> None:
        self._add(other.rows, other.distances)

    @property
    def has_all_ties(self) -> bool:
        """Whether a row was seen that is farther than the last one kept."""
        return self.seen > len(self.rows) >= self.limit

    def answer(self) -> tuple[pa.UInt64Array, pa.DoubleArray]:
        order = np.lexsort((self.rows, self.distances))
        return pa.array(self.rows[order], pa.uint64()), pa.array(self.distances[order])


def _ask_index(table: Table, best: _Best) -> bool:
    """Take over what the index finds; False if so many rows were needed of it that reading all of them is quicker."""
    rows = table.count_rows()
    share = 1.0 if best.allowed is None else min(1.0, len(best.allowed) / max(1, rows))
    count = math.ceil(max(best.limit + _MARGIN, _HITS_MIN) / share)
    while count <= max(_HITS_MIN, rows * _INDEX_PART_MAX):
        hits = _settled_hits(table, best, count)
        near = _Best(best.column, best.query, best.limit, best.allowed)
        near.look_at(table, hits[near.may_hold(hits)])
        if near.has_all_ties or len(hits) < count:
            best.take_over(near)
            return True
        count *= 4
    return False


def _settled_hits(table: Table, best: _Best, count: int) -> Numbers:
    """What the index finds in so many partitions that more of them would hardly change it."""
    probes, hits = _PROBES_FIRST, np.zeros(0, np.uint64)
    while True:
        wider: Numbers = vector_hits(table, best.column, best.query, count, probes).to_numpy()
        common = np.intersect1d(hits, wider, assume_unique=True)
        if len(common) >= _OVERLAP_MIN * len(wider) and (len(wider) == count or len(common) == len(wider)):
            return wider
        probes, hits = probes * 2, wider


def _refuse_bad_query(table: Table, column: str, query: Numbers) -> None:
    size = table.schema.field(column).type.list_size
    if query.shape != (size,):
        raise BadRequest(f"the query vector has {query.size} numbers, '{column}' has {size}")
    refuse_aimless(query)


def refuse_aimless(query: Numbers) -> None:
    """Refuse a query vector that points nowhere, whether or not there is a row to compare it with."""
    if not np.isfinite(query).all():
        raise BadRequest("the query vector holds a number that is not finite")
    if not query.any():
        raise BadRequest(
            "the query vector has length zero, so nothing is near it", "Give a vector with a number other than 0."
        )
