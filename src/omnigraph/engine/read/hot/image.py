"""One table at one state, in memory: columns by row number, read when they are first asked for.

Holds for every image:
  1. It never changes what it says; a newer state is another image, which shares all that is equal.
  2. Rows below `base.count` are those of the base state, later ones came since; `gone` are no longer there.
  3. A column that takes more than `column_bytes_max` is not kept, and a few of its values are looked up.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.read.cosine import Numbers, Vectors
from omnigraph.engine.read.taken import taken
from omnigraph.storage.deltas import ROW_ID, RowIds, changes_between, column_batches, column_of
from omnigraph.storage.tables import Table

# Below this part of its rows, a column that cannot be kept is not read whole.
_LOOKUP_PART_MAX = 1 / 64
# Vectors are hidden by nulls, which take room in the store: so much more of it is read for those that are kept.
_VECTORS_READ_MAX = 16
Rows = npt.NDArray[np.int64]
NOTHING: Rows = np.empty(0, np.int64)


class Base:
    """A whole table state; its columns are kept once read."""

    reads: ClassVar[int] = 0
    """How often any image grew by a column; whoever bounds what is kept looks again when it did."""

    def __init__(self, table: Table, columns: Sequence[str], column_bytes_max: int) -> None:
        self.table = table
        self._column_bytes_max = column_bytes_max
        self._lock = threading.Lock()
        self._columns: dict[str, pa.Array] = {}
        self._large: set[str] = set()
        self._vectors: dict[str, Vectors | None] = {}
        found = column_of(table, [*dict.fromkeys([*columns]), ROW_ID])
        self.count = int(found.num_rows)
        self._ids = _RowNumbers(found.column(ROW_ID).to_numpy() if found.num_rows else np.empty(0, np.uint64))
        for name in columns:
            self._columns[name] = one_array(found.column(name))

    def column(self, name: str) -> pa.Array:
        found = self._columns.get(name)
        if found is None:
            with self._lock:
                found = self._columns.get(name)
                if found is None:
                    found = one_array(column_of(self.table, [name]).column(name))
                    if found.nbytes > self._column_bytes_max:
                        self._large.add(name)
                    else:
                        self._columns[name] = found
                        Base.reads += 1
        return found

    def keeps(self, name: str) -> bool:
        """Whether a column stays in memory once it was read."""
        if name in self._columns:
            return True
        return name not in self._large and self.table.column_bytes.get(name, 0) <= self._column_bytes_max

    def vectors(self, name: str, bytes_max: int) -> Vectors | None:
        """The vectors of a column; None if they take more room than this."""
        if name not in self._vectors:
            with self._lock:
                if name not in self._vectors:
                    self._vectors[name] = self._read_vectors(name, bytes_max)
                    Base.reads += 1
        found = self._vectors[name]
        return None if found is None or found.nbytes > bytes_max else found

    def _read_vectors(self, name: str, bytes_max: int) -> Vectors | None:
        if self.table.column_bytes.get(name, 0) > _VECTORS_READ_MAX * bytes_max:
            return None
        found = [Vectors.of(pa.array([], self.table.schema.field(name).type))]
        taken_bytes = 0
        for batch in column_batches(self.table, name):
            found.append(Vectors.of(batch))
            taken_bytes += found[-1].nbytes
            if taken_bytes > bytes_max:
                return None
        return Vectors.joined(found)

    def forget(self, name: str) -> None:
        self._columns.pop(name, None)

    def rows_of(self, row_ids: RowIds) -> Rows:
        """The row of each row id, -1 where there is none."""
        return self._ids.find(row_ids)

    def row_ids(self, rows: Rows) -> RowIds:
        return self._ids.at(rows)

    @property
    def nbytes(self) -> int:
        held = [*self._columns.values(), *(found for found in list(self._vectors.values()) if found is not None)]
        return int(sum(one.nbytes for one in held) + self._ids.nbytes)


class _RowNumbers:
    """Row ids mostly run in one row; then their start says it all."""

    def __init__(self, row_ids: RowIds) -> None:
        self._count = len(row_ids)
        self._start = int(row_ids[0]) if self._count else 0
        runs = self._count == 0 or bool((np.diff(row_ids) == 1).all())
        self._row_ids = None if runs else row_ids
        self._order = None if runs else np.argsort(row_ids, kind="stable")

    @property
    def nbytes(self) -> int:
        return 0 if self._order is None or self._row_ids is None else self._order.nbytes + self._row_ids.nbytes

    def at(self, rows: Rows) -> RowIds:
        return (rows + self._start).astype(np.uint64) if self._row_ids is None else self._row_ids[rows]

    def find(self, row_ids: RowIds) -> Rows:
        if self._order is None or self._row_ids is None:
            rows = row_ids.astype(np.int64) - self._start
            return np.where((rows >= 0) & (rows < self._count), rows, -1)
        places = np.searchsorted(self._row_ids, row_ids, sorter=self._order)
        rows = self._order[np.minimum(places, self._count - 1)]
        return np.where(self._row_ids[rows] == row_ids, rows, -1)


@dataclass(frozen=True)
class Step:
    """What one advance brought: rows numbered from `first`, and rows that went."""

    came: pa.Table
    first: int
    gone: Rows


class Image:
    """A base state and what came and went since."""

    def __init__(self, base: Base, table: Table, added: RowIds, gone: Rows) -> None:
        self.base = base
        self.table = table
        self.added = added
        self.gone = gone
        self._late: dict[str, pa.Array] = {}

    @classmethod
    def of(cls, table: Table, columns: Sequence[str], column_bytes_max: int) -> Image:
        return cls(Base(table, columns, column_bytes_max), table, np.empty(0, np.uint64), NOTHING)

    @property
    def count(self) -> int:
        """How many row numbers there are, those of gone rows included."""
        return self.base.count + len(self.added)

    @property
    def overlay_rows(self) -> int:
        return len(self.added) + len(self.gone)

    @cached_property
    def live(self) -> Rows:
        """The rows of this state."""
        every = np.arange(self.count)
        return every if not len(self.gone) else np.delete(every, self.gone)

    def advanced(self, table: Table, columns: Sequence[str], rows_max: int) -> tuple[Image, Step] | None:
        """The image of another state of the table; None if it differs in more than `rows_max` rows."""
        changes = changes_between(self.table, table, columns, rows_max)
        if changes is None:
            return None
        gone = self.rows_of(changes.gone)
        added = np.concatenate([self.added, changes.came.column(ROW_ID).to_numpy()])
        after = Image(self.base, table, added, np.union1d(self.gone, gone))
        return after, Step(changes.came, self.count, gone)

    def rows_of(self, row_ids: RowIds) -> Rows:
        """The rows of this state with these row ids, without those that no row has."""
        rows = self.base.rows_of(row_ids)
        if len(self.added):
            # Branches give the same row ids to different rows; a row of this state is one that is not gone.
            places = {int(id): self.base.count + at for at, id in enumerate(self.added)}
            dead = set(self.gone.tolist())
            for at, id in enumerate(row_ids.tolist()):
                place = places.get(id)
                if place is not None and place not in dead:
                    rows[at] = place
        rows = rows[rows >= 0]
        return rows[~np.isin(rows, self.gone)] if len(self.gone) else rows

    def distances(self, vectors: Vectors, name: str, query: Numbers, rows: Rows) -> Numbers:
        """How far the vector of each row is from the query, nan where there is none; `vectors` are the base's."""
        late = rows >= self.base.count if len(self.added) else None
        if late is None or not late.any():
            return vectors.distances(query, rows)
        found = np.empty(len(rows))
        found[~late] = vectors.distances(query, rows[~late])
        found[late] = Vectors.of(self._added_column(name)).distances(query, rows[late] - self.base.count)
        return found

    def values(self, name: str, rows: Rows) -> pa.Array:
        """The values of a column at these rows."""
        if name == ROW_ID:
            return pa.array(self._row_ids(rows))
        if len(rows) < self.base.count * _LOOKUP_PART_MAX and not self.base.keeps(name):
            return self._looked_up(name, rows)
        whole = self.base.column(name)
        if len(self.added):
            # Read with the rest: what came later lies in other files, which may be gone when it is asked for.
            self._added_column(name)
        if not len(self.added) or not len(rows) or int(rows.max()) < self.base.count:
            return taken(whole, rows)
        late = rows >= self.base.count
        mixed = pa.concat_arrays(
            [
                taken(whole, rows[~late]),
                taken(self._added_column(name), rows[late] - self.base.count),
            ]
        )
        places = np.empty(len(rows), np.int64)
        places[~late] = np.arange(int((~late).sum()))
        places[late] = np.arange(int((~late).sum()), len(rows))
        return taken(mixed, places)

    def _looked_up(self, name: str, rows: Rows) -> pa.Array:
        once, places = np.unique(rows, return_inverse=True)
        return taken(one_array(self.table.take(self._row_ids(once).tolist(), [name]).column(name)), places)

    def _row_ids(self, rows: Rows) -> RowIds:
        late = rows >= self.base.count
        if not late.any():
            return self.base.row_ids(rows)
        found = np.empty(len(rows), np.uint64)
        found[~late] = self.base.row_ids(rows[~late])
        found[late] = self.added[rows[late] - self.base.count]
        return found

    def _added_column(self, name: str) -> pa.Array:
        found = self._late.get(name)
        if found is None:
            # Rows that went since they came cannot be read any more, and nobody asks for them.
            gone = self.gone[self.gone >= self.base.count] - self.base.count
            kept = np.delete(np.arange(len(self.added)), gone)
            read = one_array(self.table.take(self.added[kept].tolist(), [name]).column(name))
            places = np.full(len(self.added), -1)
            places[kept] = np.arange(len(kept))
            found = self._late[name] = read.take(pa.array(places, mask=places < 0))
        return found


def one_array(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    return column.combine_chunks() if column.num_chunks else pa.array([], column.type)
