"""Which nodes edges lead to: sets of destinations, hop by hop.

Holds at every return: a pair of row and target is given at most once. A target other than the origin is given iff its
distance lies within the bounds; the origin itself iff one hop is enough and an edge leads straight back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from omnigraph.engine.read.hot.adjacency import Hops
from omnigraph.engine.read.hot.dictionary import Ordinals
from omnigraph.engine.read.hot.image import Rows

Follow = Callable[[Ordinals], Hops]
Pairs = tuple[Rows, Ordinals]
Number = TypeVar("Number", bound=np.integer[Any])
_BITS = 32
_LOW = (1 << _BITS) - 1
_TRUE = np.array([True])


def one_hop(met: Sequence[Hops], is_simple: bool) -> Pairs:
    """The nodes one edge away; `is_simple`: no target can be met twice from one origin."""
    if len(met) == 1 and is_simple:
        return met[0].origin, met[0].target
    keys = distinct(np.concatenate([_keys(found.origin, found.target) for found in met]))
    return keys >> _BITS, keys & _LOW


def walk(
    follows: Sequence[Follow], origins: Ordinals, min_hops: int, max_hops: int, check: Callable[[], None]
) -> Pairs:
    """The nodes at distances within the bounds, along edges whose two ends are of one type."""
    rows = np.arange(len(origins))
    start = _keys(rows, origins)
    seen = start
    frontier = start
    emitted: list[npt.NDArray[np.int64]] = []
    for hop in range(1, max_hops + 1):
        check()
        met = [follow(frontier & _LOW) for follow in follows]
        from_rows = frontier >> _BITS
        keys = distinct(np.concatenate([_keys(from_rows[found.origin], found.target) for found in met]))
        if hop == 1 == min_hops:
            emitted.append(keys[_in_sorted(keys, start)])
        frontier = keys[~_in_sorted(keys, seen)]
        if hop >= min_hops:
            emitted.append(frontier)
        if not len(frontier):
            break
        seen = np.sort(np.concatenate([seen, frontier]), kind="stable")
    whole = np.concatenate(emitted) if emitted else np.empty(0, np.int64)
    return whole >> _BITS, whole & _LOW


def distinct(numbers: npt.NDArray[Number]) -> npt.NDArray[Number]:
    """Each number once, ascending. Edges are followed in order, so that often there is nothing to sort."""
    if len(numbers) < 2:
        return numbers
    rises = numbers[1:] > numbers[:-1]
    if rises.all():
        return numbers
    if not (numbers[1:] >= numbers[:-1]).all():
        numbers = np.sort(numbers)
        rises = numbers[1:] > numbers[:-1]
    once: npt.NDArray[Number] = numbers[np.concatenate([_TRUE, rises])]
    return once


def _keys(rows: Rows, targets: Ordinals) -> npt.NDArray[np.int64]:
    return (rows << _BITS) | targets


def _in_sorted(keys: npt.NDArray[np.int64], among: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    if not len(among):
        return np.zeros(len(keys), bool)
    at = np.minimum(np.searchsorted(among, keys), len(among) - 1)
    found: npt.NDArray[np.bool_] = among[at] == keys
    return found
