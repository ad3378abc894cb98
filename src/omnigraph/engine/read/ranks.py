"""Values as numbers that order like them: NULL first, texts by their bytes, NaN after every number."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Places = npt.NDArray[np.int64]
_CUT_FACTOR = 4


@dataclass(frozen=True)
class Ranked:
    """`ranks[i]` is the place of value i among the distinct ones, -1 for NULL; `values` are those, ascending."""

    ranks: npt.NDArray[np.int64]
    values: pa.Array


def ranked(column: pa.Array) -> Ranked:
    if pa.types.is_floating(column.type):
        return _ranked_floats(column)
    coded = column.dictionary_encode()
    order = pc.array_sort_indices(coded.dictionary).to_numpy()
    ranks = np.empty(len(order), np.int64)
    ranks[order] = np.arange(len(order))
    codes = coded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    found = np.where(codes < 0, -1, ranks[codes]) if len(order) else np.full(len(column), -1)
    return Ranked(found, coded.dictionary.take(pa.array(order)))


def told_apart(column: pa.Array) -> npt.NDArray[np.int64]:
    """Equal numbers for equal values, others for others, -1 for NULL; they order like nothing."""
    if pa.types.is_floating(column.type):
        return _ranked_floats(column).ranks
    found: npt.NDArray[np.int64] = (
        column.dictionary_encode().indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    )
    return found


def _ranked_floats(column: pa.Array) -> Ranked:
    # The two zeros are one number, so numpy decides which are distinct.
    numbers = column.fill_null(0).to_numpy(zero_copy_only=False)
    values, ranks = np.unique(numbers, return_inverse=True)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return Ranked(np.where(missing, -1, ranks), pa.array(values, column.type))


@dataclass(frozen=True)
class Key:
    column: pa.Array
    descending: bool


def ordered(keys: Sequence[Key], ties: Sequence[Callable[[Places], pa.Array]], count: int, limit: int | None) -> Places:
    """The first `limit` of `count` rows by the keys; `ties` give what orders rows that the keys leave equal."""
    if limit == 0:
        return np.empty(0, np.int64)
    places = np.arange(count)
    if keys and limit is not None and limit * _CUT_FACTOR < count:
        places = _near_the_top(keys[0], limit)
    here = pa.array(places)
    ranks = [_signed(ranked(key.column.take(here)).ranks, key.descending) for key in keys]
    ranks += [ranked(tie(places)).ranks for tie in ties] if _has_ties(ranks, len(places)) else []
    if ranks:
        places = places[np.lexsort(ranks[::-1])]
    return places if limit is None else places[:limit]


def _signed(ranks: npt.NDArray[np.int64], descending: bool) -> npt.NDArray[np.int64]:
    return -ranks if descending else ranks


def _has_ties(ranks: Sequence[npt.NDArray[np.int64]], count: int) -> bool:
    if not ranks:
        return count > 1
    if count < 2:
        return False
    order = np.lexsort(list(ranks)[::-1])
    same = np.ones(count - 1, bool)
    for one in ranks:
        same &= one[order][1:] == one[order][:-1]
    return bool(same.any())


def _near_the_top(key: Key, limit: int) -> Places:
    """The rows that may be among the first `limit` by this key: those as good as the last of them."""
    if key.column.null_count or not pa.types.is_primitive(key.column.type) or pa.types.is_boolean(key.column.type):
        return np.arange(len(key.column))
    numbers = key.column.to_numpy(zero_copy_only=False)
    if numbers.dtype.kind not in "iuf":
        numbers = numbers.view(np.int64)
    if numbers.dtype.kind == "f" and np.isnan(numbers).any():
        return np.arange(len(numbers))
    at = len(numbers) - limit if key.descending else limit - 1
    edge = np.partition(numbers, at)[at]
    return np.flatnonzero(numbers >= edge if key.descending else numbers <= edge)
