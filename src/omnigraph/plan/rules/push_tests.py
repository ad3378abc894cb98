"""Tests move down to the step that binds what they speak of, so that rows they drop are never made."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.plan.steps import (
    Connect,
    Cross,
    Expand,
    Filter,
    Given,
    Plan,
    Scan,
    Step,
    Test,
    Without,
    bound,
    rebuilt,
    variables_of,
)


def push_tests(plan: Plan) -> Plan:
    return replace(plan, step=_pushed(plan.step))


def _pushed(step: Step) -> Step:
    step = rebuilt(step, _pushed)
    if not isinstance(step, Filter):
        return step
    left: Step = step.input
    for test in step.tests:
        left = _put(left, test)
    return left


def _put(step: Step, test: Test) -> Step:
    """The step with the test as low in it as can be."""
    about = variables_of(test)
    match step:
        case Cross() if about and about <= bound(step.left):
            return replace(step, left=_put(step.left, test))
        case Cross() if about and about <= bound(step.right):
            return replace(step, right=_put(step.right, test))
        case Without():
            return replace(step, input=_put(step.input, test))
        case Scan() if about == {step.variable}:
            return replace(step, tests=(*step.tests, test))
        case Expand() if about == {step.target}:
            return replace(step, tests=(*step.tests, test))
        case Expand() | Connect() if about == {step.edge_variable}:
            return replace(step, edge_tests=(*step.edge_tests, test))
        case Expand() | Connect() if about <= bound(step.input):
            return replace(step, input=_put(step.input, test))
        case Filter():
            if about <= bound(step.input) and not isinstance(step.input, Given):
                return _merged(_put(step.input, test), step.tests)
            return replace(step, tests=(*step.tests, test))
        case _:
            return Filter(step, (test,))


def _merged(step: Step, tests: tuple[Test, ...]) -> Step:
    return replace(step, tests=(*step.tests, *tests)) if isinstance(step, Filter) else Filter(step, tests)
