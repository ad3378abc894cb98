"""The verbs of histories as actions: merging, undoing, branches and tags; and all the points to die at."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from state_actions import STAGING, Action, Expected, Index, Load, Mutate, Spot, Write, windows
from state_model import Choose, Dispute, Merged, Model, net, three_way

import omnigraph as og


@dataclass(frozen=True)
class Merge(Action):
    """`choices` decide the conflicts one after the other, by a file; a None among them leaves one open."""

    source: str
    branch: str
    strategy: str | None = None
    granularity: str = "row"
    choices: tuple[str | None, ...] = ()
    dry_run: bool = False
    delete: bool = False
    points = (*windows("branch_merge"), *STAGING)

    def expected(self, model: Model) -> Expected:
        ours, theirs = model.branches[self.branch].head, model.branches[self.source].head
        base = model.base(ours, theirs)
        outcome = "fast_forward" if base == ours else "merged"
        if base == theirs:
            return Expected(told=self._told(model, "already_up_to_date"))
        merged = self._merged(model, base, theirs, ours)
        told = self._told(model, outcome)
        if self.dry_run:
            counts = sorted((n.table_key, n.op) for n in net(model.content(self.branch), merged.content))
            told = {"outcome": outcome, "base": base, "refused": merged.is_refused}
            return Expected(told=told if merged.is_refused else {**told, "changes": counts})
        if merged.is_refused:
            return Expected((og.MergeConflicts,), merged)
        return Expected(content=merged.content, second=theirs, told=told)

    def _told(self, model: Model, outcome: str) -> dict[str, Any]:
        if self.dry_run:
            return {"outcome": outcome, "refused": False, "changes": []}
        stays = self.source == "main" or model.is_needed(self.source)
        return {"outcome": outcome, "deleted": not stays if self.delete else None}

    def _merged(self, model: Model, base: str, theirs: str, ours: str) -> Merged:
        sides = [model.commits[commit].content for commit in (base, theirs, ours)]
        by_property = self.granularity == "property"
        open_ = sorted(three_way(*sides, by_property, lambda _: None).disputes)
        return three_way(*sides, by_property, self._chooser(open_))

    def _chooser(self, open_: list[Dispute]) -> Choose:
        if not self.choices:
            return lambda _: self.strategy
        chosen = {dispute: self._choice(number) for number, dispute in enumerate(open_)}
        return lambda dispute: chosen.get(dispute) or self.strategy

    def _choice(self, number: int) -> str | None:
        return self.choices[number % len(self.choices)]

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        options: dict[str, Any] = {"strategy": self.strategy, "granularity": self.granularity}
        if self.dry_run:
            return _preview(graph.branch_merge(self.source, self.branch, dry_run=True, **options))
        if self.choices:
            options["resolve"] = self._resolution(graph, folder)
        done = graph.branch_merge(self.source, self.branch, delete_branch=self.delete, **options)
        assert isinstance(done, og.MergeResult)
        assert (done.graph_commit_id is None) == (done.outcome == "already_up_to_date")
        return {"outcome": done.outcome, "deleted": done.branch_deleted}

    def _resolution(self, graph: og.Graph, folder: Path) -> str | None:
        path = folder / "choices.json"
        path.unlink(missing_ok=True)
        graph.branch_merge(self.source, self.branch, dry_run=True, granularity=self.granularity, resolve=path)  # type: ignore[arg-type]
        if not path.exists():
            return None
        told = json.loads(path.read_text())
        entries = sorted(told["choices"], key=lambda entry: (entry["table_key"], entry["row_id"]))
        for number, entry in enumerate(entries):
            entry["choice"] = self._choice(number)
        path.write_text(json.dumps(told))
        return os.fspath(path)


def _preview(told: Any) -> dict[str, Any]:
    assert told.would_commit == (not told.conflicts and told.outcome != "already_up_to_date")
    refused = bool(told.conflicts)
    found = {"outcome": told.outcome, "base": told.base_commit_id, "refused": refused}
    if refused:
        return found
    changes = sorted((change["table_key"], change["op"]) for change in told.changes)
    totals = {(t["table_key"], op): t[f"{op}s"] for t in told.tables for op in ("insert", "update", "delete")}
    assert sum(totals.values()) == len(changes)
    return {**found, "changes": changes}


@dataclass(frozen=True)
class Revert(Action):
    branch: str
    spot: Spot
    points = (*windows("revert"), *STAGING)

    def expected(self, model: Model) -> Expected:
        commit = model.commits[self.spot.commit(model)]
        if commit.id_ not in model.chain(self.branch):
            return Expected((og.BadRequest,))
        if commit.parent is None:
            return Expected((og.Conflict,))
        before = model.commits[commit.parent].content
        merged = three_way(commit.content, before, model.content(self.branch), False, lambda _: None)
        if merged.is_refused:
            return Expected((og.MergeConflicts,), merged)
        return Expected(content=merged.content)

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        graph.commit_revert(self.spot.name(model), branch=self.branch)
        return {}


@dataclass(frozen=True)
class Reset(Action):
    branch: str
    spot: Spot
    points = (*windows("reset"), *STAGING)

    def expected(self, model: Model) -> Expected:
        commit = model.commits[self.spot.commit(model)]
        if commit.id_ not in model.chain(self.branch):
            return Expected((og.BadRequest,))
        return Expected(content=None if commit.content == model.content(self.branch) else commit.content)

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        graph.branch_reset(self.branch, self.spot.name(model))
        return {}


@dataclass(frozen=True)
class Create(Action):
    source: str
    branch: str
    points = ("branch_create.post_manifest",)

    def expected(self, model: Model) -> Expected:
        near = any(n == self.branch or _is_above(n, self.branch) for n in model.branches)
        return Expected((og.Conflict,) if near or self.branch in model.tags else ())

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        graph.branch_create_from(self.source, self.branch)
        return {}


def _is_above(one: str, two: str) -> bool:
    return one.startswith(f"{two}/") or two.startswith(f"{one}/")


@dataclass(frozen=True)
class Drop(Action):
    branch: str
    points = ("branch_delete.pre_manifest", "branch_delete.post_manifest")

    def expected(self, model: Model) -> Expected:
        if self.branch not in model.branches:
            return Expected((og.NotFound,))
        return Expected((og.Conflict,) if model.is_needed(self.branch) else ())

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        graph.branch_delete(self.branch)
        return {}


@dataclass(frozen=True)
class Tag(Action):
    name: str
    spot: Spot
    points = ("tag_create.pre_put", "tag_create.post_put")

    def expected(self, model: Model) -> Expected:
        return Expected((og.Conflict,) if self.name in model.tags or self.name in model.branches else ())

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        graph.tag_create(self.name, self.spot.name(model))
        return {}


@dataclass(frozen=True)
class Untag(Action):
    name: str
    points = ("tag_delete.pre_delete", "tag_delete.post_delete")

    def expected(self, model: Model) -> Expected:
        return Expected(() if self.name in model.tags else (og.NotFound,))

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        graph.tag_delete(self.name)
        return {}


KINDS: tuple[type[Action], ...] = (
    Mutate,
    Load,
    Write,
    Index,
    Merge,
    Revert,
    Reset,
    Create,
    Drop,
    Tag,
    Untag,
)
POINTS = tuple((kind, point) for kind in KINDS for point in kind.points)
RECOVERY_POINTS = (*windows("recovery"), "recovery.post_audit")
