"""The commit protocol as specified keeps its promises, and none of its rules can be left out."""

import pytest

from .explore import Exploration, Scenario, explore
from .rules import RULE_NAMES, SPECIFIED, Rules
from .scenarios import DAILY, EVERYTHING, LARGE, TRUTHFUL_CHECKS, WITHOUT

STATES_MIN = 10**5

# The promise, by its number in `invariants`, that breaks first when a rule is removed.
FIRST_BROKEN = {
    "parent_binding": "7",  # a roll-forward commits over a changed read set
    "bound_settle": "2",  # a roll-back takes an acknowledged write with it
    "own_commit_check": "3",  # refused, though a refresher had rolled it forward
    "heal": "4",  # a late commit stays above the pin for ever
    "exact_pins": "1",  # a restore is pinned in place of the write
    "settle_before_delete": "3",  # refused and its sidecar deleted; then its delayed commit lands and is rolled forward
}


def report(scenario: Scenario, run: Exploration) -> None:
    print(f"\n  {scenario.name}: {run.states:,} states in {run.seconds:.1f} s", end="")


def assert_every_promise_is_kept(scenario: Scenario, rules: Rules = SPECIFIED) -> Exploration:
    run = explore(scenario, rules)
    report(scenario, run)
    assert run.violation is None, f"{scenario.name}\n{run.violation}"
    assert run.exhausted, f"{scenario.name}: stopped after {run.states} states"
    return run


def number_of(promise: str) -> str:
    return promise.removeprefix("after one full recovery: ").split()[0]


@pytest.mark.slow
def test_every_history_within_the_budgets_keeps_every_promise() -> None:
    states = sum(assert_every_promise_is_kept(scenario).states for scenario in DAILY)
    print(f"\n  together {states:,} states")
    assert states >= STATES_MIN


@pytest.mark.full
@pytest.mark.parametrize("scenario", LARGE, ids=lambda scenario: scenario.name)
def test_every_history_within_larger_budgets_keeps_every_promise(scenario: Scenario) -> None:
    assert_every_promise_is_kept(scenario)


@pytest.mark.slow
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_without_the_rule_a_promise_breaks(rule: str) -> None:
    scenario = WITHOUT[rule]
    run = explore(scenario, SPECIFIED.without(rule))
    assert run.violation is not None, f"{rule} is not needed in {scenario.name}: {run.states} states"
    print(f"\n  without {rule}, {len(run.violation.trace)} steps, {run.states:,} states: {run.violation}")
    assert number_of(run.violation.promise) == FIRST_BROKEN[rule]


@pytest.mark.full
@pytest.mark.parametrize("rule", RULE_NAMES)
def test_with_the_rule_the_same_histories_keep_every_promise(rule: str) -> None:
    assert_every_promise_is_kept(WITHOUT[rule])


@pytest.mark.full
def test_parent_binding_is_the_fence_for_a_lease_check_that_lied() -> None:
    """While every check is truthful, the other rules suffice within this budget."""
    assert_every_promise_is_kept(TRUTHFUL_CHECKS, SPECIFIED.without("parent_binding"))


def test_the_model_is_not_vacuous() -> None:
    run = assert_every_promise_is_kept(EVERYTHING)
    assert {"acked", "refused", "in_doubt", "crashed"} <= run.outcomes_of_one()
    assert {("acked", "acked"), ("in_doubt", "in_doubt")} <= run.outcomes
    assert {"published", "rolled_forward", "rolled_back", "undone", "healed"} <= run.commit_kinds


def test_without_trouble_every_write_is_acked_or_refused_whole() -> None:
    """The base line: no faults, so there is nothing to recover, in whatever order everybody runs."""
    calm = Scenario("flock: no faults", DAILY[0].writers, DAILY[0].faults._replace(crashes=0, lost_answers=0))
    run = assert_every_promise_is_kept(calm)
    assert run.commit_kinds == {"genesis", "published"}
    assert {pair for pair in run.outcomes if "" not in pair} == {
        ("acked", "acked"),
        ("acked", "refused"),
        ("refused", "acked"),
    }
