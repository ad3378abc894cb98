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
Places = npt.NDArray[np.int64]


class Entities(Protocol):
    """Nodes or edges of one table at one state, by numbers that mean something only to it."""

    def values(self, name: str, numbers: Ordinals) -> pa.Array: ...


class Bound:
    """What a variable stands for in each row. Numbers are picked when they are asked for; many never are."""

    __slots__ = ("_before", "_numbers", "entities")

    def __init__(self, entities: Entities, numbers: Ordinals) -> None:
        self.entities = entities
        self._numbers: Ordinals | None = numbers
        self._before: tuple[Bound, Places | Mask] | None = None

    @property
    def numbers(self) -> Ordinals:
        found = self._numbers
        if found is None:
            assert self._before is not None
            of, places = self._before
            found = self._numbers = of.numbers[places]
        return found

    def values(self, name: str) -> pa.Array:
        return self.entities.values(name, self.numbers)

    def at(self, places: Places | Mask) -> Bound:
        after = Bound.__new__(Bound)
        after.entities, after._numbers, after._before = self.entities, None, (self, places)
        return after


@dataclass(frozen=True)
class Rows:
    count: int
    variables: Mapping[str, Bound]

    def at(self, places: Places) -> Rows:
        return Rows(len(places), {name: bound.at(places) for name, bound in self.variables.items()})

    def where(self, mask: Mask) -> Rows:
        return self if bool(mask.all()) else self.at(np.flatnonzero(mask))

    def binding(self, **more: Bound) -> Rows:
        return Rows(self.count, {**self.variables, **more})


EMPTY = Rows(1, {})
"""One row in which nothing is bound."""
