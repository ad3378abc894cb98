"""Where only matters whether there is a row, an edge is followed until one node is found."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.plan.steps import Expand, Plan, Step, Without, rebuilt


def any_is_enough(plan: Plan) -> Plan:
    return replace(plan, step=_eased(plan.step))


def _eased(step: Step) -> Step:
    step = rebuilt(step, _eased)
    if isinstance(step, Without) and isinstance(step.pattern, Expand):
        return replace(step, pattern=replace(step.pattern, any=True))
    return step
