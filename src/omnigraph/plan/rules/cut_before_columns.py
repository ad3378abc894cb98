"""Rows are ordered and cut by their keys alone; the columns of the others are never read."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.plan.steps import Plan


def cut_before_columns(plan: Plan) -> Plan:
    return replace(plan, late=plan.limit is not None and not plan.aggregated)
