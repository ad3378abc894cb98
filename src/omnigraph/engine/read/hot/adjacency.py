"""Edges in memory, by the numbers of their ends: for each node the nodes it leads to, ready to be followed.

Holds for every adjacency:
  1. Edges of one node lie together, by target and then by row.
  2. Rows that went since the base are left out, rows that came are there, at every call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import numpy.typing as npt

from omnigraph.engine.read.hot.dictionary import Ordinals
from omnigraph.engine.read.hot.image import NOTHING, Rows

Ints = npt.NDArray[np.int32]


@dataclass(frozen=True)
class Hops:
    """Steps from places of a frontier: `origin` is the place, `target` a number, `row` the edge's.

    Edges are looked up when they are asked for; most walks never do.
    """

    origin: Rows
    target: Ordinals
    rows: Rows | Ints
    at: Rows | slice | None = None
    """Where in `rows` the edges of these steps are; None if they are all of them."""

    @property
    def row(self) -> Rows:
        return (self.rows if self.at is None else self.rows[self.at]).astype(np.int64, copy=False)


@dataclass(frozen=True)
class Compressed:
    """Targets and edge rows of node n lie from `offsets[n]` to `offsets[n + 1]`."""

    offsets: npt.NDArray[np.int64]
    targets: Ints
    rows: Ints
    is_simple: bool
    """Whether no two edges connect the same nodes."""

    @classmethod
    def of(cls, origins: Ordinals, targets: Ordinals) -> Compressed:
        nodes = int(max(origins.max(initial=-1), targets.max(initial=-1))) + 1
        keys = origins * max(nodes, 1) + targets
        order = np.argsort(keys, kind="stable")
        ordered = keys[order]
        counts = np.bincount(origins, minlength=nodes)
        offsets = np.zeros(nodes + 1, np.int64)
        np.cumsum(counts, out=offsets[1:])
        simple = not bool((ordered[1:] == ordered[:-1]).any())
        return cls(offsets, targets[order].astype(np.int32), order.astype(np.int32), simple)

    @property
    def nodes(self) -> int:
        return len(self.offsets) - 1

    @property
    def nbytes(self) -> int:
        return int(self.offsets.nbytes + self.targets.nbytes + self.rows.nbytes)

    def count(self, frontier: Ordinals) -> int:
        inside = frontier[frontier < self.nodes]
        return int((self.offsets[inside + 1] - self.offsets[inside]).sum())

    @cached_property
    def most(self) -> int:
        """How many edges a node has at most."""
        return int(np.diff(self.offsets).max(initial=0))

    def follow(self, frontier: Ordinals) -> Hops:
        if len(frontier) == 1:
            return self._follow_one(int(frontier[0]))
        if len(frontier) and int(frontier.max()) >= self.nodes:
            places = np.flatnonzero(frontier < self.nodes)
            found = self.follow(frontier[places])
            return Hops(places[found.origin], found.target, found.rows, found.at)
        starts = self.offsets[frontier]
        counts = self.offsets[frontier + 1] - starts
        origin = np.repeat(np.arange(len(frontier)), counts)
        ends = np.cumsum(counts)
        at = np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(starts - (ends - counts), counts)
        return Hops(origin, _wide(self.targets[at]), self.rows, at)

    def _follow_one(self, number: int) -> Hops:
        if number >= self.nodes:
            return Hops(NOTHING, NOTHING, NOTHING)
        reach = slice(self.offsets.item(number), self.offsets.item(number + 1))
        targets = _wide(self.targets[reach])
        return Hops(np.zeros(len(targets), np.int64), targets, self.rows, reach)

    def degrees(self, numbers: Ordinals) -> Rows:
        inside = np.minimum(numbers, max(self.nodes - 1, 0))
        if not self.nodes:
            return np.zeros(len(numbers), np.int64)
        return np.where(numbers < self.nodes, self.offsets[inside + 1] - self.offsets[inside], 0)


@dataclass(frozen=True)
class Overlay:
    """Edges that came since, by ascending origin, and base rows that went."""

    origins: Ordinals = field(default_factory=lambda: NOTHING)
    targets: Ordinals = field(default_factory=lambda: NOTHING)
    rows: Rows = field(default_factory=lambda: NOTHING)
    gone: Rows = field(default_factory=lambda: NOTHING)

    @property
    def is_empty(self) -> bool:
        return not len(self.rows) and not len(self.gone)


@dataclass(frozen=True)
class Adjacency:
    """One direction of one state of an edge table."""

    base: Compressed
    overlay: Overlay = field(default_factory=Overlay)

    @property
    def is_simple(self) -> bool:
        return self.base.is_simple and not len(self.overlay.rows)

    def count(self, frontier: Ordinals, enough: int) -> int:
        """How many steps `follow` gives, at most; counted with more care where that may be more than `enough`."""
        rough = len(frontier) * (self.base.most + len(self.overlay.rows))
        if rough <= enough:
            return rough
        added = self.overlay.origins
        counts = np.searchsorted(added, frontier, side="right") - np.searchsorted(added, frontier)
        return self.base.count(frontier) + int(counts.sum())

    def follow(self, frontier: Ordinals) -> Hops:
        """Every edge from the nodes of the frontier, in the order of the frontier."""
        found = self.base.follow(frontier)
        over = self.overlay
        if over.is_empty:
            return found
        if len(over.gone) and len(found.target):
            rows = found.row
            kept = ~np.isin(rows, over.gone)
            found = Hops(found.origin[kept], found.target[kept], rows[kept])
        if not len(over.rows):
            return found
        first, end = np.searchsorted(over.origins, frontier), np.searchsorted(over.origins, frontier, side="right")
        counts = end - first
        if not counts.any():
            return found
        origin = np.repeat(np.arange(len(frontier)), counts)
        ends = np.cumsum(counts)
        at = np.arange(int(ends[-1])) + np.repeat(first - (ends - counts), counts)
        together = np.concatenate([found.origin, origin])
        order = np.argsort(together, kind="stable")
        return Hops(
            together[order],
            np.concatenate([found.target, over.targets[at]])[order],
            np.concatenate([found.row, over.rows[at]])[order],
        )

    def advanced(self, origins: Ordinals, targets: Ordinals, rows: Rows, gone: Rows) -> Adjacency:
        """With edges that came and edges, base or added, that went."""
        over = self.overlay
        kept = ~np.isin(over.rows, gone)
        all_origins = np.concatenate([over.origins[kept], origins])
        order = np.argsort(all_origins, kind="stable")
        after = Overlay(
            all_origins[order],
            np.concatenate([over.targets[kept], targets])[order],
            np.concatenate([over.rows[kept], rows])[order],
            np.union1d(over.gone, gone),
        )
        return Adjacency(self.base, after)


def _wide(numbers: Ints) -> Rows:
    return numbers.astype(np.int64)
