"""What a run did, for people and programs: counts per type, rejects, rules, and the time of each stage."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from omnigraph.base.clock import iso_us, now_us
from omnigraph.base.errors import InvalidData, OmniError
from omnigraph.engine.merge.result import MergeResult
from omnigraph.engine.write.load import LoadResult
from omnigraph.pipeline.job.quality import RuleOutcome

Outcome = Literal["committed", "refused"]
_NAMES: Mapping[str, str] = {
    "read": "read rows",
    "check": "check rows",
    "write": "write files",
    "stage": "write files",
    "commit": "commit",
    "index": "build indexes",
}


@dataclass
class Stages:
    """Stages follow each other; entering one ends the one before. A stage entered again adds to its time."""

    _spent: dict[str, float] = field(default_factory=dict)
    _current: str | None = None
    _since: float = 0.0

    def enter(self, name: str) -> None:
        name = _NAMES.get(name, name)
        if name != self._current:
            self.end()
            self._current, self._since = name, time.monotonic()

    def end(self) -> None:
        if self._current is not None:
            spent = time.monotonic() - self._since
            self._spent[self._current] = self._spent.get(self._current, 0.0) + spent
        self._current = None

    def spent(self) -> tuple[tuple[str, float], ...]:
        return tuple(self._spent.items())


@dataclass(frozen=True)
class TypeRows:
    kind: Literal["node", "edge"]
    type: str
    rows: int


@dataclass(frozen=True)
class JobReport:
    """One run of a pipeline. `load` is there if it committed, `error` if it was refused."""

    file: str
    uri: str
    branch: str
    mode: str
    started_at: str
    stages: tuple[tuple[str, float], ...]
    rules: tuple[RuleOutcome, ...] = ()
    load: LoadResult | None = None
    error: OmniError | None = None
    merge_into: str | None = None
    merge: MergeResult | None = None
    merge_error: OmniError | None = None
    """Why the rows, which are committed, were not merged."""

    @property
    def outcome(self) -> Outcome:
        return "committed" if self.load is not None else "refused"

    @property
    def seconds(self) -> float:
        return sum(spent for _, spent in self.stages)

    @property
    def counts(self) -> tuple[TypeRows, ...]:
        if self.load is None:
            return ()
        nodes = [TypeRows("node", count.name, count.entities_loaded) for count in self.load.nodes]
        return (*nodes, *(TypeRows("edge", count.name, count.entities_loaded) for count in self.load.edges))

    @property
    def violations(self) -> tuple[dict[str, Any], ...]:
        return self.error.violations if isinstance(self.error, InvalidData) else ()

    @property
    def warnings(self) -> tuple[str, ...]:
        failed = tuple(rule.describe() for rule in self.rules if not rule.passed and not rule.stops)
        held_back = failed and self.merge_into is not None and self.load is not None
        unmerged = f"{self.branch} was not merged into {self.merge_into}: not every quality rule holds"
        loaded = self.load.warnings if self.load is not None else ()
        return (*failed, *((unmerged,) if held_back else ()), *loaded)

    def to_json(self) -> dict[str, Any]:
        told: dict[str, Any] = {"file": self.file, "outcome": self.outcome, "started_at": self.started_at}
        told |= self.load.to_json() if self.load is not None else {}
        told |= {"uri": self.uri, "branch": self.branch, "mode": self.mode, "seconds": round(self.seconds, 3)}
        told["quality"] = [
            {
                "name": rule.name,
                "on": rule.on,
                "check": rule.check,
                "severity": rule.severity,
                "passed": rule.passed,
                "observed": rule.observed,
            }
            for rule in self.rules
        ]
        told["stages"] = [{"name": name, "seconds": round(spent, 3)} for name, spent in self.stages]
        if self.merge is not None:
            told["merge"] = self.merge.to_json()
        if self.merge_error is not None:
            told["merge_error"] = {"error": self.merge_error.describe(), **self.merge_error.details()}
        if self.warnings:
            told["warnings"] = list(self.warnings)
        if self.error is not None:
            told |= {"error": self.error.describe(), "code": self.error.code}
        if self.violations:
            told |= {"violations": list(self.violations)}
        return told


def now_text() -> str:
    return iso_us(now_us())
