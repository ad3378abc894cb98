"""The text matches a plan asks for, wherever they stand in it."""

from __future__ import annotations

from collections.abc import Iterator

from omnigraph.plan.steps import Connect, Expand, Filter, Plan, Scan, walk
from omnigraph.plan.typed import Comparison, TextSearch


def text_searches(plan: Plan) -> Iterator[TextSearch]:
    for value in _values(plan):
        sides = (value.left, value.right) if isinstance(value, Comparison) else (value,)
        yield from (side for side in sides if isinstance(side, TextSearch))


def _values(plan: Plan) -> Iterator[object]:
    for step in walk(plan.step):
        if isinstance(step, Scan | Expand | Filter):
            yield from step.tests
        if isinstance(step, Expand | Connect):
            yield from step.edge_tests
    yield from (column.value for column in plan.columns)
    yield from (key.value for key in plan.order)
