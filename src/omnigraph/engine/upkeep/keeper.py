"""Runs the rules of upkeep that are due, once each. What one fails at is told, and the next one runs."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Protocol

from omnigraph.base.clock import now_us
from omnigraph.base.errors import OmniError
from omnigraph.engine.status import BranchStatus, GraphStatus
from omnigraph.engine.upkeep.rules import Due, Facts, Rule, due
from omnigraph.engine.verify.findings import findings_said
from omnigraph.manifest.lineage import GraphCommit

NOTHING = "nothing to do"
_log = logging.getLogger("omnigraph.upkeep")


class Kept(Protocol):
    """What upkeep asks of a graph."""

    def status(self) -> GraphStatus: ...
    def list_commits(self, branch: str | None = None) -> list[GraphCommit]: ...
    def ensure_indices(self, branch: str | None = None) -> Any: ...
    def optimize(self, branch: str | None = "main") -> Any: ...
    def cleanup(
        self, keep: int | None = None, older_than: timedelta | None = None, *, confirm: bool = False
    ) -> Any: ...
    def verify(self) -> Any: ...


@dataclass(frozen=True)
class Outcome:
    """What became of one rule on one branch. `at_us`: when it ended; 0 for one that was only looked at."""

    rule: str
    do: str
    branch: str | None
    why: str
    at_us: int = 0
    result: str = ""
    error: str | None = None

    def to_json(self) -> dict[str, Any]:
        told = {"rule": self.rule, "do": self.do, "branch": self.branch, "why": self.why}
        if self.error is not None:
            return told | {"error": self.error}
        return told | ({"result": self.result} if self.result else {})


def facts_of(graph: Kept, rules: Sequence[Rule]) -> list[Facts]:
    """What the conditions of the rules are about."""
    asks_time = any(rule.when is not None and rule.when.every is not None for rule in rules)
    return [_facts(graph, branch, asks_time) for branch in graph.status().branches]


def _facts(graph: Kept, branch: BranchStatus, asks_time: bool) -> Facts:
    try:
        last_us = _last_us(graph.list_commits(branch.branch)) if asks_time and branch.error is None else {}
    except OmniError as error:
        return Facts(branch.branch, error=str(error))
    return Facts(
        branch.branch,
        max((t.fragments for t in branch.tables if t.owned), default=0),
        max((t.unindexed_rows for t in branch.tables if t.owned), default=0),
        last_us,
        branch.error,
    )


def _last_us(commits: Sequence[GraphCommit]) -> dict[str, int]:
    """When the newest commit of each kind was made."""
    found: dict[str, int] = {}
    for commit in commits:
        kind = commit.kind or ""
        found[kind] = max(commit.created_at, found.get(kind, 0))
    return found


def run_rules(graph: Kept, rules: Sequence[Rule], runs_us: Mapping[str, int], dry_run: bool) -> list[Outcome]:
    """Every rule that is due, in the order of the file."""
    outcomes = []
    for one in due(rules, facts_of(graph, rules), runs_us, now_us()):
        name = (one.rule.name, one.rule.do, one.branch, one.why)
        if dry_run:
            outcomes.append(Outcome(*name))
            continue
        try:
            result, wrong = _done(graph, one)
            outcomes.append(Outcome(*name, now_us(), result, wrong))
        except OmniError as error:
            outcomes.append(Outcome(*name, now_us(), error=str(error)))
        except Exception as error:
            # Others must run whatever one of them meets.
            _log.exception("%s failed", one.rule.name)
            outcomes.append(Outcome(*name, now_us(), error=f"internal error: {error!r}"))
    return outcomes


def _done(graph: Kept, one: Due) -> tuple[str, str | None]:
    """What a rule did, and what it found wrong."""
    match one.rule.do:
        case "ensure_indices":
            built = graph.ensure_indices(one.branch)
            return (f"commit {built.commit}" if built.commit else NOTHING), None
        case "optimize":
            folded = graph.optimize(one.branch)
            drifted = [t.table_key for t in folded.tables if t.skipped is not None]
            wrong = f"{', '.join(drifted)} skipped; see omnigraph status" if drifted else None
            return (f"commit {folded.commit}" if folded.commit else NOTHING), wrong
        case "cleanup":
            gone = graph.cleanup(one.rule.keep, one.rule.older_than, confirm=True)
            failed = next((f"{t.table_key}: {t.error}" for t in gone.tables if t.error is not None), None)
            return f"removed {gone.versions_removed} versions ({gone.bytes_removed} bytes)", failed
        case "verify":
            findings = graph.verify().findings
            said = findings_said(len(findings))
            return said, f"{said}, the first: {findings[0].message}" if findings else None
