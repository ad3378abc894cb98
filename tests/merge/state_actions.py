"""What the machine may do: each action says beforehand what the model makes of it, and runs on a graph.

Actions are plain data, so that a printed one can be had again. `points` are where a process may die in it.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from state_model import (
    COLUMNS,
    KEYS,
    Content,
    Merged,
    Model,
    Row,
    violations,
    with_cascades,
    with_rows,
)

import omnigraph as og
from omnigraph.base.failpoints import WINDOWS

NEW = "new-"
STAGING = ("stage.files_written", "fork.post_create")


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
    points = (*windows("mutation"), *STAGING)

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
    points = (*windows("load"), *STAGING)

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
    points = (*windows("load"), *STAGING)

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
