"""What each step of a query gave and took on Spark.

Spark runs a query as one plan, in which steps have no times of their own. So they are run one after the other, each on
the rows that those before it gave and that executors keep meanwhile. The rows are those of any run; the times are those
of this one. Counting the kept rows is in none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from omnigraph.pipeline.query.frames import Rows
from omnigraph.plan.steps import Step

NOTE = (
    "Times on Spark: each step was run by itself and its rows were kept before the next began.\n"
    "Without --analyze Spark runs all steps as one, which may take less time."
)


class StepTrace:
    def __init__(self) -> None:
        self.steps: dict[int, tuple[int, float]] = {}
        """Rows and seconds of each step with all that it waited for, by its place in the plan."""
        self._begun = perf_counter()
        self._counting = 0.0

    def kept(self, step: Step, find: Callable[[], Rows]) -> Rows:
        begun = self.seconds
        found = find()
        rows = Rows(found.frame.localCheckpoint(eager=True), found.variables)
        took = self.seconds - begun
        started = perf_counter()
        count = rows.frame.count()
        self._counting += perf_counter() - started
        self.steps[id(step)] = (count, took)
        return rows

    @property
    def seconds(self) -> float:
        """Since the query began, without counting."""
        return perf_counter() - self._begun - self._counting
