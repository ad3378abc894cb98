"""Rules of upkeep, and which of them are due. Pure.

Holds:
  1. A rule without a condition is always due; one with several is due when any of them holds.
  2. What the answer depends on is in the arguments: nothing here asks a clock or a graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

Verb = Literal["ensure_indices", "optimize", "cleanup", "verify"]
WHOLE_GRAPH: frozenset[str] = frozenset({"cleanup", "verify"})
"""Verbs that have no branch and make no commit."""
EVERY_BRANCH = "*"
_US = timedelta(microseconds=1)


@dataclass(frozen=True)
class When:
    """Conditions of which one is enough; None is not asked."""

    unindexed_rows: int | None = None
    fragments: int | None = None
    every: timedelta | None = None


@dataclass(frozen=True)
class Rule:
    """One line of a rules file. `name` is its own among the rules of the file."""

    name: str
    do: Verb
    branches: tuple[str, ...] = ()
    when: When | None = None
    keep: int | None = None
    older_than: timedelta | None = None


@dataclass(frozen=True)
class Facts:
    """A branch as upkeep sees it: the most of any one table it owns, and when each kind of commit was last made."""

    branch: str
    fragments: int = 0
    unindexed_rows: int = 0
    last_us: Mapping[str, int] = field(default_factory=dict)
    error: str | None = None
    """Why nothing is known of it."""


@dataclass(frozen=True)
class Due:
    """A rule that is due, on one branch or (None) on the whole graph, and why."""

    rule: Rule
    branch: str | None
    why: str


def due(rules: Sequence[Rule], facts: Sequence[Facts], runs_us: Mapping[str, int], now_us: int) -> list[Due]:
    """What is due now, in the order of the rules, and of the branches that each names.

    `runs_us`: when rules for the whole graph last ran, by name. A branch that is named and not there, or cannot be
    read, is due: running the rule there tells what is wrong.
    """
    known = {fact.branch: fact for fact in facts}
    found: list[Due] = []
    for rule in rules:
        if rule.do in WHOLE_GRAPH:
            why = _reason(rule.when, None, runs_us.get(rule.name), now_us)
            found += [] if why is None else [Due(rule, None, why)]
            continue
        for branch in branches_of(rule, [fact.branch for fact in facts]):
            fact = known.get(branch)
            last = fact.last_us.get(rule.do) if fact is not None else None
            why = _unknown(fact) or _reason(rule.when, fact, last, now_us)
            found += [] if why is None else [Due(rule, branch, why)]
    return found


def branches_of(rule: Rule, present: Sequence[str]) -> list[str]:
    """The branches a rule is for, each once."""
    named = [b for name in rule.branches for b in (present if name == EVERY_BRANCH else (name,))]
    return list(dict.fromkeys(named))


def _unknown(fact: Facts | None) -> str | None:
    """Why conditions cannot be asked of a branch."""
    if fact is None:
        return "there is no such branch"
    return "it cannot be read" if fact.error is not None else None


def _reason(when: When | None, fact: Facts | None, last_us: int | None, now_us: int) -> str | None:
    if when is None:
        return "always"
    if fact is not None and when.unindexed_rows is not None and fact.unindexed_rows >= when.unindexed_rows:
        return f"{fact.unindexed_rows} unindexed rows"
    if fact is not None and when.fragments is not None and fact.fragments >= when.fragments:
        return f"{fact.fragments} fragments"
    if when.every is None:
        return None
    if last_us is None:
        return "never done yet"
    gone = now_us - last_us
    return f"last done {gone // 1_000_000} s ago" if gone >= when.every // _US else None
