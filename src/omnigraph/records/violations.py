"""What is wrong with the rows of a write, collected so that a million faults cost little more than one.

Holds for every Findings:
  1. Each stage counts all its violations and lists the first N by position, then property, then text: the order in
     which they were added never shows.
  2. A message is made only for a violation that is listed at that moment or that a sink asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import InvalidData

FILE_SHIFT = 40
LINE_MASK = (1 << FILE_SHIFT) - 1
LISTED_MAX = 20


class Stage(IntEnum):
    """The order in which a write is checked; the first stage with a violation ends it."""

    TARGET = 1
    PARSE = 2
    CONVERT = 3
    IDS = 4
    VALUES = 5
    UNIQUE = 6
    ENDPOINTS = 7
    CARDINALITY = 8


def position_of(file_number: int, line: int) -> int:
    """File and line as one number that sorts by file order, then line."""
    return file_number << FILE_SHIFT | line


def place_of(position: int) -> tuple[int, int]:
    """The file number and the line of a position."""
    return position >> FILE_SHIFT, position & LINE_MASK


@dataclass(frozen=True)
class Violation:
    stage: Stage
    position: int
    type: str | None
    property: str | None
    reason: str
    message: str

    def order(self) -> tuple[int, str, str, str]:
        return self.position, self.property or "", self.reason, self.message

    def as_dict(self, files: Sequence[str]) -> dict[str, Any]:
        """As errors and rejects files tell it; `files` are the names of the inputs in order."""
        file_number, line = place_of(self.position)
        file = files[file_number] if file_number < len(files) else None
        return {
            "file": file,
            "line": line,
            "type": self.type,
            "property": self.property,
            "reason": self.reason,
            "message": self.message,
        }


Positions: TypeAlias = "np.ndarray[Any, Any] | pa.Array | Sequence[int]"


class Findings:
    """Violations by stage. `sink` gets every one of them, made on the spot; without it only the listed are made."""

    def __init__(self, listed_max: int = LISTED_MAX, sink: Callable[[Violation], None] | None = None) -> None:
        self.listed_max = listed_max
        self._sink = sink
        self._counts: dict[Stage, int] = {}
        self._kept: dict[Stage, list[Violation]] = {}

    def add(self, violation: Violation) -> None:
        self._counts[violation.stage] = self._counts.get(violation.stage, 0) + 1
        if self._sink is not None:
            self._sink(violation)
        limit = self._limit(violation.stage)
        if limit is None or violation.position <= limit:
            self._keep(violation.stage, [violation])

    def add_many(self, stage: Stage, positions: Positions, make: Callable[[int], Violation]) -> None:
        """One violation for each position; `make(i)` is asked for the i-th only if it may be listed."""
        places = np.asarray(positions, dtype=np.int64)
        if not len(places):
            return
        self._counts[stage] = self._counts.get(stage, 0) + len(places)
        if self._sink is not None:
            made = [make(i) for i in range(len(places))]
            for violation in made:
                self._sink(violation)
            self._keep(stage, made)
            return
        self._keep(stage, [make(int(i)) for i in self._worth_making(stage, places)])

    def _worth_making(self, stage: Stage, places: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The indexes that can still be listed: ties with the last listed position are decided by the text."""
        limit = self._limit(stage)
        chosen = np.arange(len(places)) if limit is None else np.flatnonzero(places <= limit)
        if len(chosen) > self.listed_max > 0:
            last = np.partition(places[chosen], self.listed_max - 1)[self.listed_max - 1]
            chosen = chosen[places[chosen] <= last]
        return chosen if self.listed_max > 0 else chosen[:0]

    def _limit(self, stage: Stage) -> int | None:
        """The last position that can still enter the list, None if any can."""
        kept = self._kept.get(stage, [])
        if self.listed_max == 0:
            return -1
        return kept[-1].position if len(kept) >= self.listed_max else None

    def _keep(self, stage: Stage, violations: list[Violation]) -> None:
        kept = sorted([*self._kept.get(stage, ()), *violations], key=Violation.order)
        self._kept[stage] = kept[: self.listed_max]

    def recount(self, stage: Stage, count: int) -> None:
        """Say how many there really are, where only the first were added."""
        if count:
            self._counts[stage] = count

    def merge(self, other: Findings) -> None:
        """Take over what was found elsewhere, for example by another process."""
        for stage, count in other._counts.items():
            self._counts[stage] = self._counts.get(stage, 0) + count
            self._keep(stage, other._kept.get(stage, []))

    def first_stage(self) -> Stage | None:
        return min(self._counts, default=None)

    def count(self, stage: Stage) -> int:
        return self._counts.get(stage, 0)

    def listed(self, stage: Stage) -> list[Violation]:
        return list(self._kept.get(stage, ()))

    def error(self, files: Sequence[str]) -> InvalidData | None:
        """The error of the first stage that has violations, None if all is well."""
        stage = self.first_stage()
        if stage is None:
            return None
        told = tuple(violation.as_dict(files) for violation in self.listed(stage))
        return InvalidData(violations=told, total=self.count(stage), stage=stage.name.lower())

    def __getstate__(self) -> dict[str, Any]:
        # A sink belongs to the process that opened it.
        return {**self.__dict__, "_sink": None}
