"""A node table in memory: numbers of ids to rows of an image."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.read.cosine import Numbers
from omnigraph.engine.read.hot.dictionary import ABSENT, Dictionary, Ordinals
from omnigraph.engine.read.hot.image import NOTHING, Image, Rows
from omnigraph.storage.deltas import RowIds
from omnigraph.storage.tables import Table

ID = "id"
# Vectors that take more room are looked for with the help of their index.
_VECTORS_BYTES_MAX = 64 << 20


class NodeImage:
    """The nodes of one state, by the numbers their ids have in the dictionary.

    `order` gives the number of each base row and is None where they are the same. `moved` are the numbers whose row is
    another one than in the base, ascending, and `moved_rows` that row, or ABSENT.
    """

    def __init__(
        self,
        image: Image,
        dictionary: Dictionary,
        order: npt.NDArray[np.int32] | None,
        moved: Ordinals = NOTHING,
        moved_rows: Rows = NOTHING,
    ) -> None:
        self.image = image
        self.dictionary = dictionary
        self._order = order
        self._moved, self._moved_rows = moved, moved_rows
        self.used_at = 0

    @classmethod
    def of(cls, table: Table, dictionary: Dictionary | None, column_bytes_max: int) -> NodeImage:
        """The table at its state; its ids join the dictionary, or make one."""
        image = Image.of(table, [ID], column_bytes_max)
        ids = image.base.column(ID)
        if dictionary is None:
            made = cls(image, Dictionary(ids), None)
        else:
            made = cls(image, dictionary, dictionary.add_all(ids).astype(np.int32))
        image.base.forget(ID)
        return made

    def advanced(self, table: Table, rows_max: int) -> NodeImage | None:
        found = self.image.advanced(table, [ID], rows_max)
        if found is None:
            return None
        after, step = found
        numbers = self.dictionary.add_all(step.came.column(ID))
        gone = self.numbers_of(step.gone)
        moved = np.concatenate([self._moved, gone, numbers])
        rows = np.concatenate(
            [self._moved_rows, np.full(len(gone), ABSENT), step.first + np.arange(len(numbers), dtype=np.int64)]
        )
        # The last word about a number counts.
        last, places = np.unique(moved[::-1], return_index=True)
        return NodeImage(after, self.dictionary, self._order, last, rows[::-1][places])

    def numbers_of(self, rows: Rows) -> Ordinals:
        """The numbers of the nodes in these rows."""
        if not len(rows):
            return NOTHING
        base = rows[rows < self.image.base.count]
        numbers: Ordinals = base if self._order is None else self._order[base].astype(np.int64)
        late = rows[rows >= self.image.base.count]
        if not len(late):
            return numbers
        return np.concatenate([numbers, self._moved[np.isin(self._moved_rows, late)]])

    @property
    def _is_base(self) -> bool:
        """Whether numbers are rows of the base, and all of it is there."""
        return self._order is None and not len(self._moved)

    @cached_property
    def _row_of_number(self) -> Rows | None:
        """The base row of each number; None where they are the same."""
        if self._order is None:
            return None
        rows = np.full(int(self._order.max(initial=-1)) + 1, ABSENT, np.int64)
        rows[self._order] = np.arange(len(self._order))
        return rows

    def rows(self, numbers: Ordinals) -> Rows:
        """The row of each number, ABSENT where no node of this state has it."""
        table = self._row_of_number
        known = self.image.base.count if table is None else len(table)
        if len(numbers) and int(numbers.max()) >= known:
            inside = np.minimum(numbers, max(known - 1, 0))
            rows = inside if table is None or not known else table[inside]
            rows = np.where(numbers < known, rows, ABSENT)
        else:
            rows = numbers if table is None else table[numbers]
        if not len(self._moved):
            return rows
        at = np.minimum(np.searchsorted(self._moved, numbers), len(self._moved) - 1)
        return np.where(self._moved[at] == numbers, self._moved_rows[at], rows)

    @cached_property
    def whole_below(self) -> int:
        """Every number below this one is a node of this state."""
        table = self._row_of_number
        absent = NOTHING if table is None else np.flatnonzero(table == ABSENT)
        if len(absent):
            return min(int(absent[0]), self._first_gone)
        known = self.image.base.count if table is None else len(table)
        late = self._moved[self._moved.searchsorted(known) :]
        return min(known + int((late == known + np.arange(len(late))).sum()), self._first_gone)

    @property
    def _first_gone(self) -> int:
        gone = self._moved[self._moved_rows == ABSENT]
        return int(gone[0]) if len(gone) else len(self.dictionary)

    def present(self, numbers: Ordinals) -> npt.NDArray[np.bool_] | None:
        """Which numbers are nodes of this state; None if all are."""
        if self._is_base and (not len(numbers) or int(numbers.max()) < self.image.base.count):
            return None
        found = self.rows(numbers) != ABSENT
        return None if bool(found.all()) else found

    @cached_property
    def numbers(self) -> Ordinals:
        """The number of every node of this state."""
        if self._order is None:
            numbers = np.arange(self.image.base.count)
        else:
            numbers = self._order.astype(np.int64)
        if not len(self._moved):
            return numbers
        kept = numbers[~np.isin(numbers, self._moved)]
        return np.concatenate([kept, self._moved[self._moved_rows != ABSENT]])

    def find(self, id: str) -> int:
        number = self.dictionary.find(id)
        if number == ABSENT or (self._is_base and number < self.image.base.count):
            return number
        return number if self.present(np.array([number])) is None else ABSENT

    def values(self, name: str, numbers: Ordinals) -> pa.Array:
        """A column of nodes that are all there."""
        if name == ID:
            return self.dictionary.ids_at(numbers)
        return self.image.values(name, numbers if self._is_base else self.rows(numbers))

    def with_row_ids(self, row_ids: RowIds) -> Ordinals:
        """The numbers of the nodes that have these row ids."""
        return self.numbers_of(self.image.rows_of(row_ids))

    def distances(self, name: str, query: Numbers, numbers: Ordinals) -> Numbers | None:
        """How far each node is from the query, in [0, 2], nan where it has no vector; None if too many have one."""
        vectors = self.image.base.vectors(name, _VECTORS_BYTES_MAX)
        if vectors is None:
            return None
        return self.image.distances(vectors, name, query.astype(np.float64), self.rows(numbers))

    @property
    def nbytes(self) -> int:
        order = 0 if self._order is None else 3 * self._order.nbytes
        return self.image.base.nbytes + order + self._moved.nbytes * 2 + self.dictionary.nbytes
