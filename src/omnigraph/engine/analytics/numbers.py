"""The algorithms over numbered nodes, in memory. Edges are two arrays of equal length; parallel ones count each.

Pure: the same arrays give the same values.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

Numbers: TypeAlias = "np.ndarray[Any, Any]"


@dataclass(frozen=True)
class Net:
    """`count` nodes, and edges from `sources` to `targets` by their numbers."""

    count: int
    sources: Numbers
    targets: Numbers


def degrees(net: Net, direction: str) -> Numbers:
    out = np.bincount(net.sources, minlength=net.count)
    into = np.bincount(net.targets, minlength=net.count)
    return out if direction == "out" else into if direction == "in" else out + into


def ranks(net: Net, damping: float, iterations: int, tolerance: float) -> Numbers:
    """PageRank: they sum to 1; what nodes without edges hold is spread evenly."""
    if not net.count:
        return np.zeros(0)
    out = np.bincount(net.sources, minlength=net.count)
    rank = np.full(net.count, 1 / net.count)
    for _ in range(iterations):
        shares = np.divide(rank, out, out=np.zeros(net.count), where=out > 0)
        given = np.bincount(net.targets, weights=shares[net.sources], minlength=net.count)
        stranded = rank[out == 0].sum()
        after = (1 - damping) / net.count + damping * (given + stranded / net.count)
        moved = np.abs(after - rank).sum()
        rank = after
        if moved < tolerance:
            break
    return rank


def components(net: Net) -> Numbers:
    """For each node the smallest number among those it is connected with, whichever way edges point."""
    label = np.arange(net.count)
    while True:
        smaller = np.minimum(label[net.sources], label[net.targets])
        after = label.copy()
        for ends in (net.sources, net.targets):
            np.minimum.at(after, ends, smaller)
            # The node that lent its number is told too, and with it all that have it.
            np.minimum.at(after, label[ends], smaller)
        while True:
            nearer = after[after]
            if np.array_equal(nearer, after):
                break
            after = nearer
        if np.array_equal(after, label):
            return label
        label = after
