"""What is wrong with a pipeline file, collected so that a user mends everything in one go."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import ClassVar

from omnigraph.base.errors import InvalidData


@dataclass(frozen=True)
class Spot:
    """A place in the file: its line, counted from 1, and the dotted path of what stands there."""

    line: int
    path: str

    def member(self, name: str) -> Spot:
        return Spot(self.line, f"{self.path}.{name}")


@dataclass(eq=False)
class PipelineInvalid(InvalidData):
    """The pipeline file, or what it says about the graph and its sources, is wrong in one or more places."""

    code: ClassVar[str] = "invalid_pipeline"
    hint: str = "Nothing was written. Correct the file, then run omnigraph pipeline validate."

    def describe(self) -> str:
        if len(self.violations) == 1:
            found = self.violations[0]
            return f"{found['file']}:{found['line']}: {found['type']}: {found['message']}"
        return f"{self.violations[0]['file']} has {self.total} problems" if self.violations else self.code


@dataclass
class Problems:
    """Every problem is kept with its place; `refuse` raises them all, in the order of the file."""

    file: str
    error: type[PipelineInvalid] = PipelineInvalid
    _found: list[tuple[Spot, str, str]] = field(default_factory=list)

    def add(self, spot: Spot, reason: str, message: str) -> None:
        if (spot, reason, message) not in self._found:
            self._found.append((spot, reason, message))

    def __len__(self) -> int:
        return len(self._found)

    def refuse(self) -> None:
        if not self._found:
            return
        told = tuple(
            {"file": self.file, "line": spot.line, "type": spot.path, "reason": reason, "message": message}
            for spot, reason, message in sorted(self._found, key=lambda found: found[0].line)
        )
        raise self.error(violations=told, total=len(told), stage="pipeline")


def nearest(name: str, known: Iterable[str]) -> str:
    """`; did you mean 'x'?` for the known name that looks most like the given one, else the names, else nothing."""
    names = list(dict.fromkeys(known))
    folded = {each.lower(): each for each in names}
    close = difflib.get_close_matches(name.lower(), list(folded), n=1, cutoff=0.6)
    if close:
        return f"; did you mean '{folded[close[0]]}'?"
    return f"; known: {', '.join(names[:12])}{', …' if len(names) > 12 else ''}" if names else ""
