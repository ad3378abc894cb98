"""The faults of one batch of lines, kept as places; texts are made when they are told."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.records.explain import Fault
from omnigraph.records.violations import Findings, Stage, Violation

# The text of a row, for a rejects file.
RAW = pa.schema([pa.field("position", pa.int64()), pa.field("raw", pa.binary())])


@dataclass(frozen=True)
class RejectedRow:
    """A row that is not among the decoded ones. `id` is None if the record could not be read that far."""

    position: int
    raw: bytes
    table_key: str | None
    type: str | None
    id: str | None
    violations: tuple[Violation, ...]


Make = Callable[[int], Fault]


Names = str | None | Sequence[str | None]


@dataclass(frozen=True)
class _Entry:
    """Faulty rows of one stage; type and property are common to all or given for each; `make(k)` explains the k-th."""

    stage: Stage
    type: Names
    property: Names
    rows: Sequence[int]
    make: Make

    def violation(self, positions: np.ndarray[Any, Any], k: int) -> Violation:
        reason, message = self.make(k)
        return Violation(self.stage, int(positions[k]), _kth(self.type, k), _kth(self.property, k), reason, message)


def _kth(names: Names, k: int) -> str | None:
    return names if names is None or isinstance(names, str) else names[k]


class BatchFaults:
    def __init__(self, positions: np.ndarray[Any, Any]) -> None:
        self._positions = positions
        self._entries: list[_Entry] = []

    def add(self, stage: Stage, types: Names, properties: Names, rows: Sequence[int], make: Make) -> None:
        if len(rows):
            self._entries.append(_Entry(stage, types, properties, rows, make))

    def rows(self) -> set[int]:
        return {int(row) for entry in self._entries for row in entry.rows}

    def tell(self, findings: Findings) -> None:
        for entry in self._entries:
            places = self._positions[np.asarray(entry.rows, np.int64)]
            findings.add_many(entry.stage, places, partial(entry.violation, places))

    def by_row(self) -> dict[int, tuple[Violation, ...]]:
        """All violations, made, by the row they are about; rows in order."""
        found: defaultdict[int, list[Violation]] = defaultdict(list)
        for entry in self._entries:
            places = self._positions[np.asarray(entry.rows, np.int64)]
            for k, row in enumerate(entry.rows):
                found[int(row)].append(entry.violation(places, k))
        return {row: tuple(sorted(found[row], key=Violation.order)) for row in sorted(found)}
