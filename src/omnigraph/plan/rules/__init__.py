"""Rewrites of a plan that make it cheaper, one per file; each gives a plan with the same answer."""

from __future__ import annotations

from omnigraph.plan.lower import lower
from omnigraph.plan.rules.any_is_enough import any_is_enough
from omnigraph.plan.rules.cut_before_columns import cut_before_columns
from omnigraph.plan.rules.find_by_key import find_by_key
from omnigraph.plan.rules.push_tests import push_tests
from omnigraph.plan.rules.start_at_key import start_at_key
from omnigraph.plan.steps import Plan
from omnigraph.plan.typed import ReadQuery

RULES = (push_tests, find_by_key, any_is_enough, cut_before_columns)


def planned(query: ReadQuery, rules: bool = True) -> Plan:
    """The plan of a query; without the rules, the plain one."""
    if not rules:
        return lower(query)
    plan = lower(start_at_key(query))
    for rule in RULES:
        plan = rule(plan)
    return plan
