"""What is wrong with the rows of a write, collected so that a million faults cost little more than one.

Holds for every Findings:
  1. Each stage counts all its violations and lists the first N by position, then property, then text: the order in
     which they were added never shows.
  2. A message is made only for a violation that is listed at that moment or that a sink asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace
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
    row: str | None = field(default=None, kw_only=True)
    """The values of a row that has no line."""

    def order(self) -> tuple[int, str, str, str]:
        return self.position, self.property or "", self.reason, self.message

    def order_without_line(self) -> tuple[str, str, str, str]:
        return self.property or "", self.reason, self.message, self.row or ""

    def as_dict(self, files: Sequence[str], unnumbered: Container[int] = ()) -> dict[str, Any]:
        """As errors tell it; `files` are the names of the inputs in order, `unnumbered` those without lines."""
        file_number, line = place_of(self.position)
        file = files[file_number] if file_number < len(files) else None
        has_line = file_number not in unnumbered
        told = {
            "file": file,
            "line": line if has_line else None,
            "type": self.type,
            "property": self.property,
            "reason": self.reason,
            "message": self.message,
        }
        return told if has_line else {**told, "row": self.row}


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

    def error(self, files: Sequence[str], unnumbered: Container[int] = ()) -> InvalidData | None:
        """The error of the first stage that has violations, None if all is well."""
        stage = self.first_stage()
        if stage is None:
            return None
        told = tuple(violation.as_dict(files, unnumbered) for violation in self.listed(stage))
        return InvalidData(violations=told, total=self.count(stage), stage=stage.name.lower())

    def fill_rows(
        self, stage: Stage, unnumbered: Container[int], rows_at: Callable[[list[int]], dict[int, str]]
    ) -> None:
        """Give what is listed without a line the values of its row, and let these take the place of lines."""
        kept = self._kept.get(stage, [])
        bare = {v.position for v in kept if place_of(v.position)[0] in unnumbered}
        found = rows_at(sorted(v.position for v in kept if v.position in bare and v.row is None))
        filled = [replace(v, row=v.row or found.get(v.position)) if v.position in bare else v for v in kept]

        def order(one: Violation) -> tuple[Any, ...]:
            file_number, line = place_of(one.position)
            return file_number, -1 if one.position in bare else line, *one.order_without_line()

        self._kept[stage] = sorted(filled, key=order)

    def __getstate__(self) -> dict[str, Any]:
        # A sink belongs to the process that opened it.
        return {**self.__dict__, "_sink": None}
