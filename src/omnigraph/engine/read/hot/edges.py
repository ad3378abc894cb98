"""An edge table in memory: its image and the adjacency of both directions, each made when first followed."""

from __future__ import annotations

import threading
from weakref import ref

import numpy as np
import pyarrow as pa

from omnigraph.engine.read.hot.adjacency import Adjacency, Compressed
from omnigraph.engine.read.hot.dictionary import Dictionary, Ordinals
from omnigraph.engine.read.hot.image import Image, Rows
from omnigraph.engine.read.hot.nodes import NodeImage
from omnigraph.storage.deltas import column_of
from omnigraph.storage.tables import Table

ENDS = ["src", "dst"]


class EdgeImage:
    """Edges of one state between nodes of two dictionaries, which are one where the types are equal."""

    def __init__(self, image: Image, sources: Dictionary, targets: Dictionary) -> None:
        self.image = image
        self.sources, self.targets = sources, targets
        self.used_at = 0
        self._lock = threading.Lock()
        self._sides: dict[bool, Adjacency] = {}
        self._leads: dict[tuple[bool, int], tuple[ref[NodeImage], bool]] = {}

    @classmethod
    def of(cls, table: Table, sources: Dictionary, targets: Dictionary, column_bytes_max: int) -> EdgeImage:
        return cls(Image.of(table, [], column_bytes_max), sources, targets)

    def side(self, outwards: bool) -> Adjacency:
        """Where edges lead from their source, or back from their target."""
        found = self._sides.get(outwards)
        if found is None:
            with self._lock:
                if outwards not in self._sides:
                    self._build(outwards)
                found = self._sides[outwards]
        return found

    def _build(self, outwards: bool) -> None:
        base = self.image.base
        ends = column_of(base.table, ENDS)
        sources = self.sources.add_all(ends.column("src"))
        targets = self.targets.add_all(ends.column("dst"))
        origins, reached = (sources, targets) if outwards else (targets, sources)
        side = Adjacency(Compressed.of(origins, reached))
        if self.image.overlay_rows:
            rows, src, dst = self._added_ends()
            origins, reached = (src, dst) if outwards else (dst, src)
            side = side.advanced(origins, reached, rows, self.image.gone)
        self._sides[outwards] = side

    def _added_ends(self) -> tuple[Rows, Ordinals, Ordinals]:
        """The added rows that are still there, and the numbers of their ends."""
        rows = np.setdiff1d(np.arange(self.image.base.count, self.image.count), self.image.gone)
        src = self.sources.add_all(self.image.values("src", rows))
        dst = self.targets.add_all(self.image.values("dst", rows))
        return rows, src, dst

    def advanced(self, table: Table, rows_max: int) -> EdgeImage | None:
        found = self.image.advanced(table, ENDS, rows_max)
        if found is None:
            return None
        image, step = found
        after = EdgeImage(image, self.sources, self.targets)
        src = self.sources.add_all(step.came.column("src"))
        dst = self.targets.add_all(step.came.column("dst"))
        rows = step.first + np.arange(len(src), dtype=np.int64)
        for outwards, side in list(self._sides.items()):
            origins, reached = (src, dst) if outwards else (dst, src)
            after._sides[outwards] = side.advanced(origins, reached, rows, step.gone)
        return after

    def connects(self, sources: Dictionary, targets: Dictionary) -> bool:
        return sources is self.sources and targets is self.targets

    def values(self, name: str, rows: Rows) -> pa.Array:
        return self.image.values(name, rows)

    def is_within(self, nodes: NodeImage) -> bool:
        """Whether all numbers that edges connect are seen at once to be such nodes; false does not say they are not."""
        side = self._sides.get(True) or self._sides.get(False)
        return side is not None and side.below <= nodes.whole_below

    def leads_only_to(self, nodes: NodeImage, outwards: bool) -> bool:
        """Whether every edge is sure to lead to a node that is there; looked at once per state."""
        side = self.side(outwards)
        if self.is_within(nodes):
            return True
        if not side.overlay.is_empty:
            return False
        known = self._leads.get((outwards, id(nodes)))
        if known is None or known[0]() is not nodes:
            sure = nodes.present(side.base.targets.astype(np.int64)) is None
            known = self._leads[(outwards, id(nodes))] = (ref(nodes), sure)
        return known[1]

    @property
    def nbytes(self) -> int:
        return self.image.base.nbytes + self.adjacency_nbytes

    @property
    def adjacency_nbytes(self) -> int:
        return sum(side.base.nbytes for side in self._sides.values())
