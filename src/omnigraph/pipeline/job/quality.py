"""Quality rules: an aggregate over a view that must be true before anything is staged."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from pyspark.sql import Column
from pyspark.sql import functions as sf
from pyspark.sql import types as st

from omnigraph.base.errors import BadRequest
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.job.analysis import analysed
from omnigraph.pipeline.job.definition import Rule
from omnigraph.pipeline.job.problems import Problems, Spot
from omnigraph.pipeline.job.views import Rows, Views

_COMPARISON = re.compile(r"<=>|>=|<=|<>|!=|==|=|<|>")


@dataclass(frozen=True)
class CheckedRule:
    rule: Rule
    rows: Rows
    observed: str | None
    """The left side of a comparison, if it can be computed by itself: what the rule saw."""


@dataclass(frozen=True)
class RuleOutcome:
    name: str
    on: str
    check: str
    severity: str
    passed: bool
    observed: Any = None

    @property
    def stops(self) -> bool:
        return not self.passed and self.severity == "error"

    def describe(self) -> str:
        if self.passed:
            return f"quality rule '{self.name}' holds"
        seen = f" (found {self.observed})" if self.observed is not None else ""
        return f"quality rule '{self.name}' does not hold on {self.on}: {self.check}{seen}"


class QualityFailed(BadRequest):
    """A rule of severity error is not true; nothing was staged."""

    code = "quality_failed"


def check_rule(rule: Rule, views: Views, problems: Problems) -> CheckedRule | None:
    rows = views.find(rule.on)
    if rows is None:
        return None
    given: st.DataType | None = None
    with analysed(problems, rule.check.spot, f"analysing rule '{rule.name}'", rows.frame.columns):
        given = rows.frame.agg(sf.expr(rule.check.text)).schema[0].dataType
    if given is None:
        return None
    if not isinstance(given, st.BooleanType):
        told = f"expects a condition over all rows, but '{rule.check.text}' is {given.simpleString()}"
        problems.add(rule.check.spot, "wrong_type", told)
        return None
    return CheckedRule(rule, rows, _left_side(rule.check.text, rows))


def run_rule(checked: CheckedRule) -> RuleOutcome:
    """The rule's answer. Null is no yes: a rule over no rows must say so itself if that is well."""
    rule = checked.rule
    columns: list[Column] = [sf.expr(rule.check.text).alias("answer")]
    if checked.observed is not None:
        columns.append(sf.expr(checked.observed).alias("observed"))
    with spark_failures(f"checking quality rule '{rule.name}'"):
        found = checked.rows.frame.agg(*columns).collect()[0]
    observed = found["observed"] if checked.observed is not None else None
    plain = observed if isinstance(observed, int | float | str | bool | None) else str(observed)
    return RuleOutcome(rule.name, rule.on.text, rule.check.text, rule.severity, found["answer"] is True, plain)


def refuse_failed(outcomes: tuple[RuleOutcome, ...]) -> None:
    stopping = [outcome for outcome in outcomes if outcome.stops]
    if stopping:
        more = f" (and {len(stopping) - 1} more)" if len(stopping) > 1 else ""
        raise QualityFailed(f"{stopping[0].describe()}{more}", "Nothing was written. Correct the data or the rule.")


def _left_side(check: str, rows: Rows) -> str | None:
    """`count(*)` of `count(*) >= 10`: what stands before the only comparison outside brackets and quotes."""
    depth, quote = 0, ""
    places: list[int] = []
    for i, character in enumerate(check):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"`":
            quote = character
        elif character in "()":
            depth += 1 if character == "(" else -1
        elif depth == 0 and character in "<>=!" and (not places or i > places[-1] + 2):
            places.append(i)
    if len(places) != 1 or not _COMPARISON.match(check, places[0]):
        return None
    left = check[: places[0]].strip()
    if not left or re.search(r"\b(and|or|not|between|case)\b", check, re.IGNORECASE):
        return None
    ignored = Problems("")
    with analysed(ignored, Spot(1, rows.name), "analysing a rule"):
        _ = rows.frame.agg(sf.expr(left)).schema
        return left
    return None
