"""What counts as an embedding, and the vectors of the mock.

Holds for every vector that leaves this module: it has the dimension asked for, finite float32 elements and length one.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Vector = np.ndarray[Any, np.dtype[np.float32]]

_NORM_MIN = float(np.finfo(np.float32).eps)
_WORD = 2**64 - 1
_FNV_BASIS, _FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3


def unit_vector(values: Any, dimension: int) -> Vector:
    """The values as a vector of length one; ValueError says what they are instead."""
    if not isinstance(values, list) or not set(map(type, values)) <= {int, float}:
        raise ValueError("a vector that is no list of numbers")
    if len(values) != dimension:
        raise ValueError(f"a vector of {len(values)} dimensions, {dimension} were asked for")
    with np.errstate(over="ignore"):
        try:
            vector = np.array(values, np.float64).astype(np.float32)
        except OverflowError:
            raise ValueError("a vector with an element that is not finite") from None
    if not np.isfinite(vector).all():
        raise ValueError("a vector with an element that is not finite")
    return _normalised(vector)


def mock_vector(text: str, dimension: int) -> Vector:
    """The same vector for the same text on every machine; nobody is asked."""
    state = _fnv1a(text.encode()) or _FNV_BASIS
    elements = np.empty(dimension, np.float32)
    for place in range(dimension):
        state ^= state << 13 & _WORD
        state ^= state >> 7
        state ^= state << 17 & _WORD
        elements[place] = state / _WORD
    return _normalised(elements * np.float32(2) - np.float32(1))


def _normalised(vector: Vector) -> Vector:
    # Squares of float32 are exact in float64 and fsum rounds once, so no machine gives another norm.
    norm = math.sqrt(math.fsum((vector.astype(np.float64) ** 2).tolist()))
    if norm <= _NORM_MIN:
        raise ValueError("a vector of length zero")
    return vector / np.float32(norm)


def _fnv1a(data: bytes) -> int:
    state = _FNV_BASIS
    for byte in data:
        state = (state ^ byte) * _FNV_PRIME & _WORD
    return state
