"""Which tables are in memory: bounded, shared by all queries of a handle, never part of a result.

Holds at every return:
  1. An image answers for exactly the state it was asked for.
  2. What is kept stays within its budget; what does not fit is made, used and let go.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable
from itertools import count
from typing import Any, Generic, NamedTuple, TypeAlias, TypeVar
from weakref import WeakValueDictionary

from omnigraph.engine.read.hot.dictionary import Dictionary
from omnigraph.engine.read.hot.edges import EdgeImage
from omnigraph.engine.read.hot.image import Base
from omnigraph.engine.read.hot.nodes import NodeImage
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.storage.tables import Table

# Rows that may differ before a state is read anew: as many as an overlay answers quickly for.
_OVERLAY_ROWS_MIN = 2_048
_OVERLAY_SHARE = 64
# What one look-up in the store costs, in rows that could be read into memory meanwhile.
_LOOKUP_ROWS = 10_000
_NODE_BYTES, _EDGE_BYTES = 48, 20
_OPENED_MAX = 64
Image = TypeVar("Image", NodeImage, EdgeImage)
_uses = count()
# States of one place may be made from each other: they are of one table and have the same columns.
Place: TypeAlias = tuple[str, str, str]


class State(NamedTuple):
    """What a table held, and the names its columns are known by: equal states hold equal rows."""

    graph: str
    location: str
    branch: str | None
    version: int
    columns_id: str

    @classmethod
    def of(cls, graph: str, entry: SubTableEntry, columns_id: str) -> State:
        return cls(graph, entry.location, entry.table_branch, entry.table_version, columns_id)

    @property
    def place(self) -> Place:
        return self.graph, self.location, self.columns_id


class _Kept(Generic[Image]):
    """Images of one kind, at most `bytes_max` together; the least recently used one goes first."""

    def __init__(self, bytes_max: int) -> None:
        self.bytes_max = bytes_max
        self.column_bytes_max = bytes_max // 2
        self.images: dict[State, Image] = {}

    def get(self, state: State) -> Image | None:
        found = self.images.get(state)
        if found is not None:
            found.used_at = next(_uses)
        return found

    def near(self, state: State) -> Image | None:
        """The newest image of the same table that another may be made from, one of the same branch first."""
        same = [known for known in self.images if known.place == state.place]
        best = max(same, key=lambda known: (known.branch == state.branch, known.version), default=None)
        return None if best is None else self.images[best]

    def newest(self, state: State) -> Image | None:
        """The image of the table's branch, if there is one; there is never a second."""
        same = (known for known in self.images if known.place == state.place and known.branch == state.branch)
        best = next(same, None)
        return None if best is None else self.images[best]

    def put(self, state: State, image: Image) -> None:
        for known in [k for k in self.images if k.place == state.place and k.branch == state.branch]:
            del self.images[known]
        image.used_at = next(_uses)
        self.images[state] = image
        self.trim()

    def trim(self) -> None:
        while self.images and self.nbytes > self.bytes_max:
            del self.images[min(self.images, key=lambda known: self.images[known].used_at)]

    @property
    def nbytes(self) -> int:
        return sum(image.nbytes for image in self.images.values())


class HotTables:
    """The tables of one graph that queries found worth keeping."""

    def __init__(self, hot_bytes: int, csr_bytes: int) -> None:
        self._lock = threading.RLock()
        self._nodes: _Kept[NodeImage] = _Kept(hot_bytes)
        self._edges: _Kept[EdgeImage] = _Kept(csr_bytes)
        self._dictionaries: WeakValueDictionary[Place, Dictionary] = WeakValueDictionary()
        self._spent: dict[Place, int] = {}
        self._opened: OrderedDict[State, Table] = OrderedDict()
        self._trimmed_at = 0

    def edges_in_memory(self, state: State) -> EdgeImage | None:
        return self._edges.get(state)

    def nodes_in_memory(self, state: State) -> NodeImage | None:
        return self._nodes.get(state)

    def nodes(self, state: State, open_table: Callable[[], Table], rows: int, *, load: bool) -> NodeImage | None:
        """The nodes of a state; None where they are not in memory and are not to be, or cannot be, loaded."""
        with self._lock:
            found = self._nodes.get(state) or self._advanced_nodes(state, open_table)
            if found is None and (load or self._is_worth(state, rows, _NODE_BYTES, self._nodes.bytes_max)):
                found = NodeImage.of(open_table(), self._dictionaries.get(state.place), self._nodes.column_bytes_max)
                self._dictionaries[state.place] = found.dictionary
            if found is not None:
                self._nodes.put(state, found)
            return found

    def edges(
        self,
        state: State,
        open_table: Callable[[], Table],
        rows: int,
        ends: tuple[NodeImage, NodeImage],
        *,
        load: bool,
    ) -> EdgeImage | None:
        sources, targets = ends[0].dictionary, ends[1].dictionary
        with self._lock:
            found = self._edges.get(state)
            if found is not None and found.connects(sources, targets):
                return found
            near = self._edges.near(state)
            found = None
            if near is not None and near.connects(sources, targets):
                found = near.advanced(open_table(), _overlay_max(near.image.base.count, near.image.overlay_rows))
            if found is None and (load or self._is_worth(state, rows, _EDGE_BYTES, self._edges.bytes_max)):
                found = EdgeImage.of(open_table(), sources, targets, self._edges.column_bytes_max)
            if found is not None:
                self._edges.put(state, found)
            return found

    def table(self, state: State, open_table: Callable[[], Table]) -> Table:
        """The table at a state; opening one takes longer than many a query."""
        found = self._opened.get(state)
        if found is None:
            found = open_table()
            with self._lock:
                self._opened[state] = found
                while len(self._opened) > _OPENED_MAX:
                    self._opened.popitem(last=False)
        return found

    def committed(self, state: State, table: Table) -> None:
        """A write of this very handle made the state: what is in memory follows at once, not at the next read."""
        with self._lock:
            self.table(state, lambda: table)
            self._follow(self._nodes, state, table)
            self._follow(self._edges, state, table)

    def _follow(self, kept: _Kept[Image], state: State, table: Table) -> None:
        near = kept.newest(state)
        if near is not None:
            after = near.advanced(table, _overlay_max(near.image.base.count, near.image.overlay_rows))
            if after is not None:
                kept.put(state, after)

    def trim(self) -> None:
        """Let go of what no longer fits since images grew by columns that were read."""
        if self._trimmed_at != Base.reads:
            with self._lock:
                self._trimmed_at = Base.reads
                self._nodes.trim()
                self._edges.trim()

    def forget(self, places: Iterable[Place]) -> bool:
        """Let go of everything read from these tables; whether there was anything."""
        gone = set(places)
        with self._lock:
            kept: tuple[dict[State, Any], ...] = (self._nodes.images, self._edges.images, self._opened)
            known = [(held, state) for held in kept for state in held if state.place in gone]
            for held, state in known:
                del held[state]
        return bool(known)

    def has_near_edges(self, state: State) -> bool:
        """Whether following these edges in memory needs no more than a small advance."""
        with self._lock:
            return self._edges.near(state) is not None

    def looked_up(self, state: State, times: int = 1) -> None:
        """Queries went to the store for rows of the table; often enough, and it is loaded."""
        with self._lock:
            self._spent[state.place] = self._spent.get(state.place, 0) + times * _LOOKUP_ROWS

    def _is_worth(self, state: State, rows: int, row_bytes: int, bytes_max: int) -> bool:
        return rows * row_bytes <= bytes_max and self._spent.get(state.place, 0) >= rows

    def _advanced_nodes(self, state: State, open_table: Callable[[], Table]) -> NodeImage | None:
        near = self._nodes.near(state)
        if near is None:
            return None
        return near.advanced(open_table(), _overlay_max(near.image.base.count, near.image.overlay_rows))

    def sizes(self) -> dict[str, int]:
        """Bytes of what is kept, by kind; for people and benchmarks."""
        with self._lock:
            return {
                "columns": self._nodes.nbytes,
                "ids": sum(found.nbytes for found in list(self._dictionaries.values())),
                "adjacency": sum(image.adjacency_nbytes for image in self._edges.images.values()),
            }


def _overlay_max(base_rows: int, overlay_rows: int) -> int:
    return max(0, max(_OVERLAY_ROWS_MIN, base_rows // _OVERLAY_SHARE) - overlay_rows)
