"""Rows of a query while it runs: for each variable numbers of entities, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.engine.read.hot.dictionary import Ordinals

Mask = npt.NDArray[np.bool_]


class Entities(Protocol):
    """Nodes or edges of one table at one state, by numbers that mean something only to it."""

    def values(self, name: str, numbers: Ordinals) -> pa.Array: ...


@dataclass(frozen=True)
class Bound:
    """What a variable stands for in each row."""

    entities: Entities
    numbers: Ordinals

    def values(self, name: str) -> pa.Array:
        return self.entities.values(name, self.numbers)

    def at(self, places: npt.NDArray[np.int64] | Mask) -> Bound:
        return Bound(self.entities, self.numbers[places])


@dataclass(frozen=True)
class Rows:
    count: int
    variables: Mapping[str, Bound]

    def at(self, places: npt.NDArray[np.int64]) -> Rows:
        return Rows(len(places), {name: bound.at(places) for name, bound in self.variables.items()})

    def where(self, mask: Mask) -> Rows:
        return self if bool(mask.all()) else self.at(np.flatnonzero(mask))

    def binding(self, **more: Bound) -> Rows:
        return Rows(self.count, {**self.variables, **more})


EMPTY = Rows(1, {})
"""One row in which nothing is bound."""
