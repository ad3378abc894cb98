"""Entities looked up in the store as a query needs them; for tables that are not in memory.

Holds at every return: only rows that were asked for have been read, by their ids or by their ends.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.engine.read.hot.adjacency import Hops, spread
from omnigraph.engine.read.hot.dictionary import ABSENT, Dictionary, Ordinals
from omnigraph.engine.read.hot.image import one_array
from omnigraph.engine.read.rows import Mask
from omnigraph.engine.read.walk import distinct
from omnigraph.storage.deltas import ROW_ID
from omnigraph.storage.tables import Table

_NO_IDS = pa.array([], pa.string())
# A node that nobody looked for yet; one that is not there is ABSENT.
_UNREAD = -2


class LocalNodes:
    """Nodes of one table that a query has met. `columns` are those it will ask for, the id among them."""

    def __init__(self, table: Table, columns: Iterable[str]) -> None:
        self._table = table
        self._columns = list(dict.fromkeys(["id", *columns]))
        self.dictionary = Dictionary(_NO_IDS)
        self._found = _empty(table, self._columns)
        self._rows = np.empty(0, np.int64)

    def take(self, rows: pa.Table) -> Ordinals:
        """Numbers of rows that were read with all the columns."""
        numbers = self.dictionary.add_all(one_array(rows.column("id")))
        self._keep(rows.select(self._columns), numbers)
        return numbers

    def look_up(self, numbers: Ordinals) -> None:
        """Read those of these nodes that were not read yet."""
        unknown = distinct(numbers[self._row_of(numbers) == _UNREAD])
        if not len(unknown):
            return
        ids = self.dictionary.ids_at(unknown)
        found = self._table.find(ids.to_pylist(), self._columns)
        self._grow(int(unknown.max()))
        self._rows[unknown] = ABSENT
        self._keep(found, self.dictionary.find_all(one_array(found.column("id"))))

    def _keep(self, rows: pa.Table, numbers: Ordinals) -> None:
        if not len(numbers):
            return
        self._grow(int(numbers.max()))
        self._rows[numbers] = self._found.num_rows + np.arange(len(numbers))
        self._found = pa.concat_tables([self._found, rows])

    def _grow(self, number: int) -> None:
        if number >= len(self._rows):
            more = np.full(max(number + 1, 2 * len(self._rows)) - len(self._rows), _UNREAD, np.int64)
            self._rows = np.concatenate([self._rows, more])

    def _row_of(self, numbers: Ordinals) -> Ordinals:
        if len(numbers):
            self._grow(int(numbers.max()))
        return self._rows[numbers]

    def present(self, numbers: Ordinals) -> Mask | None:
        self.look_up(numbers)
        found = self._row_of(numbers) >= 0
        return None if bool(found.all()) else found

    def values(self, name: str, numbers: Ordinals) -> pa.Array:
        if name == "id":
            return self.dictionary.ids_at(numbers)
        self.look_up(numbers)
        return one_array(self._found.column(name)).take(pa.array(self._row_of(numbers)))


class LocalEdges:
    """Edges of one table that a query has met; `columns` are those it will ask for."""

    def __init__(
        self, table: Table, sources: Dictionary, targets: Dictionary, columns: Iterable[str], asked: Callable[[], None]
    ) -> None:
        self._table = table
        self._ends = {"src": sources, "dst": targets}
        self._columns = list(dict.fromkeys(["id", "src", "dst", *columns]))
        self._found = _empty(table, self._columns)
        self._asked = asked

    def follow(self, frontier: Ordinals, outwards: bool) -> Hops:
        """Every edge from the nodes of the frontier, in its order."""
        here, there = ("src", "dst") if outwards else ("dst", "src")
        nodes = distinct(frontier)
        self._asked()
        batches = list(self._table.matching(here, self._ends[here].ids_at(nodes), self._columns))
        found = pa.Table.from_batches(batches, schema=self._found.schema) if batches else self._found.slice(0, 0)
        first = self._found.num_rows
        self._found = pa.concat_tables([self._found, found])
        origins = self._ends[here].find_all(one_array(found.column(here)))
        targets = self._ends[there].add_all(one_array(found.column(there)))
        order = np.lexsort((targets, origins))
        origins, targets = origins[order], targets[order]
        starts, ends = np.searchsorted(origins, frontier), np.searchsorted(origins, frontier, side="right")
        origin, at = spread(starts, ends - starts)
        return Hops(origin, targets[at], first + order[at])

    def values(self, name: str, numbers: Ordinals) -> pa.Array:
        return one_array(self._found.column(name)).take(pa.array(numbers))


def _empty(table: Table, columns: Sequence[str]) -> pa.Table:
    return pa.schema(
        [pa.field(c, pa.uint64()) if c == ROW_ID else table.schema.field(c) for c in columns]
    ).empty_table()
