"""Aggregates: rows put into groups, in the order in which each group was first met."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.read.ranks import ranked
from omnigraph.lang.gq.ast import Function
from omnigraph.plan.typed import Aggregate

Codes = npt.NDArray[np.int64]
# Integers below this are doubles without loss.
_EXACT_BELOW = 1 << 53
# Codes that leave at most so many numbers unused are looked up in a table.
_SPREAD = 4


@dataclass(frozen=True)
class Groups:
    """`of` is the group of each row, `first` a row of each group."""

    of: Codes
    first: Codes

    def __len__(self) -> int:
        return len(self.first)


def grouped(codes: Sequence[Codes], count: int) -> Groups:
    """Rows whose codes are all equal together; with no codes all rows, even none, are one group."""
    if not codes:
        return Groups(np.zeros(count, np.int64), np.zeros(1, np.int64))
    whole = codes[0]
    for more in codes[1:]:
        # Renumbering keeps the product of two within the range of an integer.
        dense = _dense(whole).of
        whole = dense * (int(more.max(initial=-1)) + 2) + (more + 1)
    return _dense(whole)


def _dense(codes: Codes) -> Groups:
    """Groups of equal codes, of which none is below -1."""
    count = len(codes)
    size = int(codes.max(initial=-1)) + 2
    if size > _SPREAD * count + 1:
        codes = pa.array(codes).dictionary_encode().indices.to_numpy(zero_copy_only=False).astype(np.int64)
        size = int(codes.max(initial=-1)) + 2
    # Of several values for one place the last one stays.
    met = np.full(size, count)
    met[codes[::-1] + 1] = np.arange(count - 1, -1, -1)
    present = np.flatnonzero(met < count)
    present = present[np.argsort(met[present])]
    numbers = np.empty(size, np.int64)
    numbers[present] = np.arange(len(present))
    return Groups(numbers[codes + 1], met[present])


def aggregated(aggregate: Aggregate, column: pa.Array | None, groups: Groups) -> pa.Array:
    """One value per group; `column` is None where entities are counted."""
    size = len(groups)
    if column is None:
        return pa.array(np.bincount(groups.of, minlength=size), pa.int64())
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    counts = np.bincount(groups.of[valid], minlength=size)
    match aggregate.function:
        case Function.COUNT:
            return pa.array(counts, pa.int64())
        case Function.SUM | Function.AVG:
            sums = _sums(column.filter(pa.array(valid)), groups.of[valid], size)
            parts = np.maximum(counts, 1) if aggregate.function is Function.AVG else 1
            return pa.array(sums / parts, pa.float64(), mask=counts == 0)
        case _:
            return _extreme(column, groups, valid, largest=aggregate.function is Function.MAX)


def _sums(column: pa.Array, of: Codes, size: int) -> npt.NDArray[np.float64]:
    """Integers are added exactly and rounded once; doubles in the order of the rows."""
    numbers = column.to_numpy(zero_copy_only=False)
    whole = numbers.dtype.kind != "f"
    largest = max(int(numbers.max(initial=0)), -int(numbers.min(initial=0))) if whole else 0
    if largest * len(numbers) < _EXACT_BELOW:
        return np.bincount(of, weights=numbers.astype(np.float64), minlength=size).astype(np.float64)
    sums = [0] * size
    for group, number in zip(of.tolist(), numbers.tolist(), strict=True):
        sums[group] += number
    return np.array([float(total) for total in sums], np.float64)


def _extreme(column: pa.Array, groups: Groups, valid: npt.NDArray[np.bool_], *, largest: bool) -> pa.Array:
    found = ranked(column)
    of, ranks = groups.of[valid], found.ranks[valid]
    order = np.lexsort((-ranks if largest else ranks, of))
    heads, places = np.unique(of[order], return_index=True)
    best = np.full(len(groups), -1)
    best[heads] = ranks[order][places]
    return found.values.take(pa.array(best, mask=best < 0))
