"""Equality with an id, or with a key that is the id, finds its row instead of testing all of them."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.catalog import NodeType
from omnigraph.plan.steps import Plan, Scan, Step, Test, rebuilt
from omnigraph.plan.typed import Comparator, Comparison, Constant, EntityId, Operand, Parameter, PropertyValue


def find_by_key(plan: Plan) -> Plan:
    return replace(plan, step=_found(plan.step))


def _found(step: Step) -> Step:
    step = rebuilt(step, _found)
    if not isinstance(step, Scan) or step.id is not None:
        return step
    for test in step.tests:
        wanted = id_wanted(test)
        if wanted is not None:
            return replace(step, id=wanted, tests=tuple(other for other in step.tests if other is not test))
    return step


def id_wanted(test: Test) -> Operand | None:
    """The value an id must have to pass the test; None if the test asks something else."""
    if not isinstance(test, Comparison) or test.comparator is not Comparator.EQ:
        return None
    for one, other in ((test.left, test.right), (test.right, test.left)):
        if _is_id(one) and isinstance(other, Constant | Parameter) and other.type.is_string:
            return other
    return None


def _is_id(value: object) -> bool:
    if isinstance(value, EntityId):
        return True
    if not isinstance(value, PropertyValue) or not isinstance(value.owner, NodeType):
        return False
    members = value.owner.key_members
    return value.name == "id" or (len(members) == 1 and members[0].name == value.name and value.type.is_string)
