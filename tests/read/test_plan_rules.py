"""Each rule changes a plan as its fixture shows, and the plan is the same once the rule has nothing more to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from omnigraph.catalog.build import compile_source
from omnigraph.plan.check import compile_query
from omnigraph.plan.explain import Estimates, explained
from omnigraph.plan.lower import lower
from omnigraph.plan.rules import RULES, planned
from omnigraph.plan.rules.push_tests import push_tests
from omnigraph.plan.rules.start_at_key import start_at_key
from omnigraph.plan.steps import Plan
from omnigraph.plan.typed import ReadQuery

FOLDER = Path(__file__).with_name("rules")
CATALOG = compile_source(
    """
node Person { name: String @key  age: I32? @index  bio: String? @index }
node Team   { code: String @key  size: I32? }
edge Follows:  Person -> Person { weight: F64? }
edge MemberOf: Person -> Team
"""
)
COUNTS = Estimates({"node:Person": 1000, "node:Team": 10, "edge:Follows": 8000, "edge:MemberOf": 900})
BY_NAME = {rule.__name__: rule for rule in RULES}
FIXTURES = sorted(FOLDER.glob("*.txt"))


def query_of(text: str) -> ReadQuery:
    found = compile_query(CATALOG, text)
    assert isinstance(found, ReadQuery)
    return found


def before_and_after(name: str, query: ReadQuery) -> tuple[Plan, Plan]:
    if name == "start_at_key":
        return lower(query), lower(start_at_key(query))
    before = lower(query) if name == "push_tests" else push_tests(lower(query))
    return before, BY_NAME[name](before)


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_a_rule_changes_a_plan_as_its_fixture_shows(file: Path) -> None:
    query, before, after = file.read_text(encoding="utf-8").split("\n---\n")
    plans = before_and_after(file.stem.split(".")[0], query_of(query))

    assert [explained(plan, COUNTS) for plan in plans] == [before, after.rstrip("\n")]


@pytest.mark.parametrize("file", FIXTURES, ids=lambda file: file.stem)
def test_rules_that_were_applied_find_nothing_more_to_do(file: Path) -> None:
    plan = planned(query_of(file.read_text(encoding="utf-8").split("\n---\n")[0]))
    again = plan
    for rule in RULES:
        again = rule(again)
    assert again == plan


def test_every_rule_has_a_fixture() -> None:
    assert {file.stem.split(".")[0] for file in FIXTURES} == {"start_at_key", *BY_NAME}
