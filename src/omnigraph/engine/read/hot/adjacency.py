"""Edges in memory, by the numbers of their ends: for each node the nodes it leads to, ready to be followed.

Holds for every adjacency:
  1. Edges of one node lie together, by target and then by row.
  2. Rows that went since the base are left out, rows that came are there, at every call.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import numpy.typing as npt

from omnigraph.engine.read.hot.dictionary import Ordinals
from omnigraph.engine.read.hot.image import NOTHING, Rows

Ints = npt.NDArray[np.int32]
# Edges that are compared with one that came, at most.
_LOOKED_AT_MAX = 65_536


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

    @cached_property
    def most(self) -> int:
        """How many edges a node has at most."""
        return int(np.diff(self.offsets).max(initial=0))

    def follow(self, frontier: Ordinals) -> Hops:
        if len(frontier) == 1:
            return self._follow_one(int(frontier[0]))
        starts, counts = self._reach(frontier)
        origin, at = spread(starts, counts)
        return Hops(origin, _wide(self.targets[at]), self.rows, at)

    def _follow_one(self, number: int) -> Hops:
        if number >= self.nodes:
            return Hops(NOTHING, NOTHING, NOTHING)
        reach = slice(self.offsets.item(number), self.offsets.item(number + 1))
        targets = _wide(self.targets[reach])
        return Hops(np.zeros(len(targets), np.int64), targets, self.rows, reach)

    def degrees(self, numbers: Ordinals) -> Rows:
        return self._reach(numbers)[1]

    def _reach(self, numbers: Ordinals) -> tuple[Rows, Rows]:
        """Where the edges of each node begin and how many there are; a later node has none, at the end."""
        starts = self.offsets.take(numbers, mode="clip")
        return starts, self.offsets.take(numbers + 1, mode="clip") - starts


@dataclass(frozen=True)
class Overlay:
    """Edges that came since, by ascending origin, and base rows that went."""

    origins: Ordinals = field(default_factory=lambda: NOTHING)
    targets: Ordinals = field(default_factory=lambda: NOTHING)
    rows: Rows = field(default_factory=lambda: NOTHING)
    gone: Rows = field(default_factory=lambda: NOTHING)
    repeats: bool = False
    """Whether one that came may connect nodes which another edge connects too."""

    @property
    def is_empty(self) -> bool:
        return not len(self.rows) and not len(self.gone)

    def reach(self, numbers: Ordinals) -> tuple[Rows, Rows]:
        """Where the edges that came of each node begin, and how many there are."""
        starts = self.origins.searchsorted(numbers)
        return starts, self.origins.searchsorted(numbers, side="right") - starts


@dataclass(frozen=True)
class Adjacency:
    """One direction of one state of an edge table."""

    base: Compressed
    overlay: Overlay = field(default_factory=Overlay)

    @property
    def is_simple(self) -> bool:
        """Whether no two edges connect the same nodes; said only where it was looked at."""
        return self.base.is_simple and not self.overlay.repeats

    @cached_property
    def below(self) -> int:
        """The numbers of all that edges connect are below this one."""
        over = self.overlay
        return max(self.base.nodes, int(max(over.origins.max(initial=-1), over.targets.max(initial=-1))) + 1)

    def count(self, frontier: Ordinals, enough: int) -> int:
        """How many steps `follow` gives, at most; counted with more care where that may be more than `enough`."""
        rough = len(frontier) * (self.base.most + len(self.overlay.rows))
        if rough <= enough:
            return rough
        return int(self.degrees(frontier).sum())

    def degrees(self, numbers: Ordinals) -> Rows:
        """How many edges each node has, those that went included."""
        found = self.base.degrees(numbers)
        return found + self.overlay.reach(numbers)[1] if len(self.overlay.rows) else found

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
        starts, counts = over.reach(frontier)
        if not counts.any():
            return found
        origin, at = spread(starts, counts)
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
        after = Adjacency(
            self.base,
            Overlay(
                all_origins[order],
                np.concatenate([over.targets[kept], targets])[order],
                np.concatenate([over.rows[kept], rows])[order],
                np.union1d(over.gone, gone),
            ),
        )
        if not over.repeats and not after._repeats(np.unique(origins)):
            return after
        return replace(after, overlay=replace(after.overlay, repeats=True))

    def _repeats(self, origins: Ordinals) -> bool:
        """Whether two edges lead from one of these nodes to the same one; perhaps, where looking takes long."""
        if int(self.degrees(origins).sum()) > _LOOKED_AT_MAX:
            return True
        found = self.follow(origins)
        keys = np.sort((found.origin << 32) | found.target)
        return bool((keys[1:] == keys[:-1]).any())


def spread(starts: Rows, counts: Rows) -> tuple[Rows, Rows]:
    """The places of runs that begin at `starts`, one run after the other, and which run each is of."""
    run = np.arange(len(counts)).repeat(counts)
    ends = counts.cumsum()
    return run, np.arange(len(run)) + (starts - ends + counts).repeat(counts)


def _wide(numbers: Ints) -> Rows:
    return numbers.astype(np.int64)
