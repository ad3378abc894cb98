"""What the machine may do: each action says beforehand what the model makes of it, and runs on a graph.

Actions are plain data, so that a printed one can be had again. `points` are where a process may die in it.
"""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from state_model import (
    COLUMNS,
    KEYS,
    Choose,
    Content,
    Dispute,
    Merged,
    Model,
    Row,
    net,
    three_way,
    violations,
    with_cascades,
    with_rows,
)

import omnigraph as og
from omnigraph.base.failpoints import WINDOWS

NEW = "new-"
_STAGING = ("stage.files_written", "fork.post_create")


@dataclass(frozen=True)
class Expected:
    """An error, or what becomes of the branch: its `content`, None if no commit is to be made; `perhaps` one is."""

    errors: tuple[type[og.OmniError], ...] = ()
    refused: Merged | None = None
    content: Content | None = None
    second: str | None = None
    perhaps: bool = False
    told: dict[str, Any] = field(default_factory=dict)


def windows(writer: str) -> tuple[str, ...]:
    return tuple(f"{writer}.{window}" for window in WINDOWS)


@dataclass(frozen=True)
class Spot:
    """A commit: so many steps back from the head of a branch, or its first one."""

    branch: str
    back: int

    def commit(self, model: Model) -> str:
        chain = model.chain(self.branch)
        return chain[min(self.back, len(chain) - 1)]

    def name(self, model: Model) -> str:
        """How a user says it: by its id or by counting."""
        chain = model.chain(self.branch)
        return self.commit(model) if self.back % 2 else f"{self.branch}~{min(self.back, len(chain) - 1)}"


def literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


class Action(ABC):
    """`branch` is the one whose content it may change."""

    points: tuple[str, ...] = ()
    branch: str

    @abstractmethod
    def expected(self, model: Model) -> Expected: ...

    @abstractmethod
    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        """What it said, in the words of `Expected.told`."""


@dataclass(frozen=True)
class Insert:
    """A node, which replaces the one of its key, or an edge (`id_` None)."""

    key: str
    id_: str | None
    row: Row

    @property
    def text(self) -> str:
        cells = dict(zip(COLUMNS[self.key], self.row, strict=True))
        if self.id_ is None:
            cells = {"from": cells.pop("src"), "to": cells.pop("dst"), **cells}
        else:
            cells = {KEYS[self.key]: self.id_, **cells}
        values = ", ".join(f"{name}: {literal(value)}" for name, value in cells.items())
        return f"insert {self.key.partition(':')[2]} {{ {values} }}"

    def apply(self, content: Content, number: int) -> tuple[Content, int]:
        return with_rows(content, {self.key: {self.id_ or f"{NEW}{number}": self.row}}), 1


@dataclass(frozen=True)
class Update:
    key: str
    id_: str
    column: str
    value: Any

    @property
    def text(self) -> str:
        where = f"{KEYS.get(self.key, 'id')} = {literal(self.id_)}"
        return f"update {self.key.partition(':')[2]} set {{ {self.column}: {literal(self.value)} }} where {where}"

    def apply(self, content: Content, _number: int) -> tuple[Content, int]:
        row = content[self.key].get(self.id_)
        if row is None:
            return content, 0
        place = COLUMNS[self.key].index(self.column)
        return with_rows(content, {self.key: {self.id_: (*row[:place], self.value, *row[place + 1 :])}}), 1


@dataclass(frozen=True)
class Delete:
    key: str
    id_: str

    @property
    def text(self) -> str:
        return f"delete {self.key.partition(':')[2]} where {KEYS.get(self.key, 'id')} = {literal(self.id_)}"

    def apply(self, content: Content, _number: int) -> tuple[Content, int]:
        if self.id_ not in content[self.key]:
            return content, 0
        return with_cascades(with_rows(content, {}, [(self.key, self.id_)])), 1


@dataclass(frozen=True)
class Mutate(Action):
    branch: str
    statements: tuple[Insert | Update | Delete, ...]
    points = (*windows("mutation"), *_STAGING)

    def expected(self, model: Model) -> Expected:
        content, changed = model.content(self.branch), 0
        for number, statement in enumerate(self.statements):
            content, count = statement.apply(content, number)
            changed += count
        if violations(content):
            return Expected((og.InvalidData,))
        return Expected(content=content if changed else None)

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        graph.mutate(f"query q() {{ {' '.join(s.text for s in self.statements)} }}", branch=self.branch)
        return {}


@dataclass(frozen=True)
class Load(Action):
    branch: str
    mode: str
    rows: tuple[tuple[str, str, Row], ...]
    points = (*windows("load"), *_STAGING)

    def expected(self, model: Model) -> Expected:
        before = model.content(self.branch)
        after = before
        for key, id_, row in self.rows:
            after = with_rows(after, {key: {id_: row}})
        errors: list[type[og.OmniError]] = []
        if self.mode == "append" and any(id_ in before[key] for key, id_, _ in self.rows):
            errors.append(og.KeyConflict)
        if violations(after):
            errors.append(og.InvalidData)
        return Expected(tuple(errors), content=after)

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        path = folder / "rows.jsonl"
        path.write_text("".join(f"{json.dumps(_line(*row))}\n" for row in self.rows))
        graph.load(path, mode=self.mode, branch=self.branch, index=False)  # type: ignore[arg-type]
        return {}


def _line(key: str, id_: str, row: Row) -> dict[str, Any]:
    name, cells = key.partition(":")[2], dict(zip(COLUMNS[key], row, strict=True))
    if key in KEYS:
        return {"type": name, "data": {KEYS[key]: id_, **cells}}
    return {"edge": name, "from": cells.pop("src"), "to": cells.pop("dst"), "data": {"id": id_, **cells}}


@dataclass(frozen=True)
class Write(Action):
    """Rows as they are, several tables in one commit. Nobody checks such rows, so they are always good ones."""

    branch: str
    puts: tuple[tuple[str, str, Row], ...]
    gone: tuple[tuple[str, str], ...] = ()
    points = (*windows("load"), *_STAGING)

    def expected(self, model: Model) -> Expected:
        after = model.content(self.branch)
        for key, id_, row in self.puts:
            after = with_rows(after, {key: {id_: row}})
        after = with_rows(after, {}, self.gone)
        assert not violations(after), self
        return Expected(content=after)

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        changes: dict[str, Any] = {}
        for key in sorted({part[0] for part in (*self.puts, *self.gone)}):
            schema = graph.catalog.arrow_schema(key)
            full = [
                {**_named(key, id_), **dict(zip(COLUMNS[key], row, strict=True))}
                for k, id_, row in self.puts
                if k == key
            ]
            gone = tuple(id_ for k, id_ in self.gone if k == key)
            rows = pa.Table.from_pylist(full, schema=schema)
            changes[key] = og.Upsert(rows, gone) if full else og.Delete(gone)
        graph.write(changes, branch=self.branch)
        return {}


def _named(key: str, id_: str) -> dict[str, Any]:
    return {"id": id_, KEYS[key]: id_} if key in KEYS else {"id": id_}


@dataclass(frozen=True)
class Index(Action):
    branch: str
    points = windows("ensure_indices")

    def expected(self, model: Model) -> Expected:
        return Expected(content=model.content(self.branch), perhaps=True)

    def run(self, graph: og.Graph, model: Model, folder: Path) -> dict[str, Any]:
        graph.ensure_indices(self.branch)
        return {}


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
    points = (*windows("branch_merge"), *_STAGING)

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
    points = (*windows("revert"), *_STAGING)

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
    points = (*windows("reset"), *_STAGING)

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
