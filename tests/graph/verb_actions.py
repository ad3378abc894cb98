"""The verbs as actions: each runs on a graph, and says beforehand what the dictionaries make of it.

`points` are where a process may die in it; `lands` says what must be left when it died there: True after, False before,
None either.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from verb_loads import Line, Loaded, ndjson
from verb_model import Content, Statement, copied, mutated

import omnigraph as og
from omnigraph.base.failpoints import WINDOWS
from omnigraph.base.ids import new_ulid

_BEFORE = ("pre_phase_a", "post_phase_a_pre_phase_b", "files_written", "post_create", "pre_manifest")
PUBLISHED = ("post_manifest_commit_pre_phase_d", "post_phase_d", "post_manifest")


@dataclass
class Branch:
    """Its content now, the branch it was made from, and every commit it can see with the content of then."""

    content: Content
    parent: str | None = None
    commits: list[tuple[str, Content]] = field(default_factory=list)

    def child(self, parent: str) -> Branch:
        return Branch(copied(self.content), parent, list(self.commits))


Branches = dict[str, Branch]


@dataclass(frozen=True)
class Expected:
    """What an action must lead to: errors it may raise, else the content of its branch and the commits it makes."""

    errors: tuple[type[og.OmniError], ...] = ()
    content: Content | None = None
    told: dict[str, Any] = field(default_factory=dict)


def windows(writer: str) -> tuple[str, ...]:
    return tuple(f"{writer}.{window}" for window in WINDOWS)


def lands(action: Action, point: str) -> bool | None:
    writer, _, window = point.rpartition(".")
    if window == "mid_phase_b" and writer == action.writer:
        return None
    if writer == "branch_create":
        # A load that makes its branch has made the branch, and nothing else.
        return action.writer == writer
    return window not in _BEFORE or writer not in (action.writer, "stage", "fork")


class Action(ABC):
    """`branch` is the one it is about."""

    writer = ""
    points: tuple[str, ...] = ()
    branch: str

    @abstractmethod
    def expected(self, branches: Branches) -> Expected: ...

    @abstractmethod
    def run(self, graph: og.Graph, folder: str) -> tuple[dict[str, Any], list[str]]:
        """What it said, in the words of `Expected.told`, and the ids of the commits it made."""


@dataclass(frozen=True)
class Mutate(Action):
    branch: str
    statements: Sequence[Statement]
    writer = "mutation"
    points = (*windows("mutation"), "stage.files_written", "fork.post_create")

    def expected(self, branches: Branches) -> Expected:
        if self.branch not in branches:
            return Expected((og.NotFound,))
        done = mutated(branches[self.branch].content, self.statements)
        if done is None:
            return Expected((og.InvalidData,))
        return Expected((), done.content, {"nodes": done.nodes, "edges": done.edges, "commits": int(done.changed)})

    def run(self, graph: og.Graph, folder: str) -> tuple[dict[str, Any], list[str]]:
        text = " ".join(statement.text for statement in self.statements)
        done = graph.mutate(f"query q() {{ {text} }}", branch=self.branch)
        commits = [done.commit] if done.commit else []
        return {"nodes": done.affected_nodes, "edges": done.affected_edges, "commits": len(commits)}, commits


@dataclass(frozen=True)
class Load(Action):
    """`base`: make the branch from it when it is not there."""

    branch: str
    lines: Sequence[Line]
    mode: str
    quarantine: bool
    index: bool
    base: str | None
    writer = "load"
    points = (
        *windows("load"),
        *windows("ensure_indices"),
        "stage.files_written",
        "fork.post_create",
        "branch_create.post_manifest",
    )

    def expected(self, branches: Branches) -> Expected:
        if self.branch not in branches:
            return Expected((og.NotFound,))
        loaded = Loaded(branches[self.branch].content, self.mode, list(self.lines), self.quarantine)
        content = loaded.outcome()
        if content is None:
            return Expected((og.KeyConflict if loaded.refused_ids else og.InvalidData,))
        counts = {"rejected": len(loaded.rejected), "merged": loaded.merged, "total": len(loaded.lines)}
        return Expected((), content, counts)

    def run(self, graph: og.Graph, folder: str) -> tuple[dict[str, Any], list[str]]:
        path = os.path.join(folder, f"{new_ulid()}.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.write(ndjson(self.lines))
        done = graph.load(
            path,
            mode=self.mode,  # type: ignore[arg-type]
            branch=self.branch,
            from_branch=self.base,
            index=self.index,
            on_error="quarantine" if self.quarantine else "fail",
        )
        assert done.warnings == ()
        assert _rejects(done.rejects_file) == done.rejected
        told = {"rejected": done.rejected, "merged": done.duplicates_merged, "total": done.total_entities}
        return told, [c for c in (done.commit, done.index_commit) if c is not None]


def _rejects(path: str | None) -> int:
    if path is None:
        return 0
    with open(path, encoding="utf-8") as file:
        return sum(1 for line in file if json.loads(line)["raw"])


@dataclass(frozen=True)
class Index(Action):
    branch: str
    writer = "ensure_indices"
    points = windows("ensure_indices")

    def expected(self, branches: Branches) -> Expected:
        if self.branch not in branches:
            return Expected((og.NotFound,))
        return Expected((), branches[self.branch].content)

    def run(self, graph: og.Graph, folder: str) -> tuple[dict[str, Any], list[str]]:
        done = graph.ensure_indices(self.branch)
        assert bool(done.commit) == bool(done.tables)
        return {}, [done.commit] if done.commit else []


@dataclass(frozen=True)
class Create(Action):
    source: str
    branch: str
    writer = "branch_create"
    points = ("branch_create.post_manifest",)

    def expected(self, branches: Branches) -> Expected:
        if self.source not in branches:
            return Expected((og.NotFound,))
        return Expected(() if may_be_made(branches, self.branch) else (og.Conflict,), branches[self.source].content)

    def run(self, graph: og.Graph, folder: str) -> tuple[dict[str, Any], list[str]]:
        graph.branch_create_from(self.source, self.branch)
        return {}, []


def may_be_made(branches: Branches, name: str) -> bool:
    return not any(n == name or n.startswith(f"{name}/") or name.startswith(f"{n}/") for n in branches)


@dataclass(frozen=True)
class Drop(Action):
    branch: str
    writer = "branch_delete"
    points = ("branch_delete.pre_manifest", "branch_delete.post_manifest")

    def expected(self, branches: Branches) -> Expected:
        if self.branch not in branches:
            return Expected((og.NotFound,))
        depended_on = any(b.parent == self.branch for b in branches.values())
        return Expected((og.Conflict,) if depended_on else ())

    def run(self, graph: og.Graph, folder: str) -> tuple[dict[str, Any], list[str]]:
        graph.branch_delete(self.branch)
        return {}, []
