"""A graph as plain dictionaries: what every commit must show under any later schema.

Types and properties are told apart by numbers that are never given twice; names are only what the schema of now says.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Content = dict[int, dict[str, dict[int, Any]]]
"""By type, by id, the values by property."""


@dataclass
class Prop:
    name: str
    required: bool = False
    hint: str | None = None


@dataclass
class Kind:
    name: str
    props: dict[int, Prop] = field(default_factory=dict)
    hint: str | None = None


@dataclass
class World:
    """The schema of now, the rows of now, and those of every commit before."""

    chance: random.Random
    types: dict[int, Kind] = field(default_factory=dict)
    rows: Content = field(default_factory=dict)
    past: dict[str, Content] = field(default_factory=dict)
    _next: int = 1

    def number(self) -> int:
        self._next += 1
        return self._next

    def source(self) -> str:
        return "\n".join(self._declared(kind) for kind in self.types.values()) + "\n"

    def _declared(self, kind: Kind) -> str:
        hint = f' @rename_from("{kind.hint}")' if kind.hint else ""
        fields = [self._field(prop) for prop in kind.props.values()]
        return f"node {kind.name}{hint} {{ k: String @key  {'  '.join(fields)} }}"

    def _field(self, prop: Prop) -> str:
        hint = f' @rename_from("{prop.hint}")' if prop.hint else ""
        filled = " @default(7)" if prop.required else "?"
        return f"{prop.name}: I32{filled}{hint}"

    def without_hints(self) -> None:
        for kind in self.types.values():
            kind.hint = None
            for prop in kind.props.values():
                prop.hint = None

    def committed(self, commit_id: str) -> None:
        self.past[commit_id] = copy.deepcopy(self.rows)

    def seen(self, content: Content) -> dict[str, list[dict[str, Any]]]:
        """What the schema of now shows of the rows of any commit: by type name, sorted by id."""
        return {kind.name: self._shown(content.get(number, {}), kind) for number, kind in self.types.items()}

    def _shown(self, rows: dict[str, dict[int, Any]], kind: Kind) -> list[dict[str, Any]]:
        named = {number: prop.name for number, prop in kind.props.items()}
        return [{"k": id, **{name: rows[id].get(n) for n, name in named.items()}} for id in sorted(rows)]

    # Changes of the schema. Each returns whether it could be made.

    def add_type(self) -> bool:
        free = [name for name in ("A", "B", "C") if name not in self._names()]
        if not free:
            return False
        number = self.number()
        self.types[number] = Kind(self.chance.choice(free), {self.number(): Prop("x"), self.number(): Prop("y", True)})
        self.rows[number] = {}
        return True

    def drop_type(self) -> bool:
        if len(self.types) < 2:
            return False
        number = self.chance.choice(sorted(self.types))
        del self.types[number], self.rows[number]
        return True

    def rename_type(self) -> bool:
        free = [name for name in ("A", "B", "C") if name not in self._names()]
        if not free or not self.types:
            return False
        kind = self.types[self.chance.choice(sorted(self.types))]
        kind.hint, kind.name = kind.name, self.chance.choice(free)
        return True

    def add_property(self) -> bool:
        return self._with_free_name(lambda number, kind, name: self._add(number, kind, name, required=False))

    def add_required_property(self) -> bool:
        return self._with_free_name(lambda number, kind, name: self._add(number, kind, name, required=True))

    def drop_property(self) -> bool:
        number = self.chance.choice(sorted(self.types))
        kind = self.types[number]
        if not kind.props:
            return False
        gone = self.chance.choice(sorted(kind.props))
        del kind.props[gone]
        for row in self.rows[number].values():
            row.pop(gone, None)
        return True

    def rename_property(self) -> bool:
        def rename(_number: int, kind: Kind, name: str) -> bool:
            if not kind.props:
                return False
            prop = kind.props[self.chance.choice(sorted(kind.props))]
            prop.hint, prop.name = prop.name, name
            return True

        return self._with_free_name(rename)

    def _names(self) -> set[str]:
        return {kind.name for kind in self.types.values()}

    def _with_free_name(self, change: Callable[[int, Kind, str], bool]) -> bool:
        number = self.chance.choice(sorted(self.types))
        kind = self.types[number]
        free = [name for name in ("x", "y", "z") if name not in {prop.name for prop in kind.props.values()}]
        return bool(free) and change(number, kind, self.chance.choice(free))

    def _add(self, number: int, kind: Kind, name: str, *, required: bool) -> bool:
        new = self.number()
        kind.props[new] = Prop(name, required)
        for row in self.rows[number].values():
            if required:
                row[new] = 7
        return True

    # Changes of rows, as a mutation that makes the same change in the graph.

    def insert(self) -> str:
        number = self.chance.choice(sorted(self.types))
        kind, id = self.types[number], f"r{self.number()}"
        row = {n: self.chance.randrange(9) for n, p in kind.props.items() if p.required or self.chance.random() < 0.7}
        self.rows[number][id] = row
        values = "".join(f", {kind.props[n].name}: {value}" for n, value in row.items())
        return f'insert {kind.name} {{ k: "{id}"{values} }}'

    def update(self) -> str | None:
        places = [
            (n, i, p) for n in sorted(self.types) for i in sorted(self.rows[n]) for p in sorted(self.types[n].props)
        ]
        if not places:
            return None
        number, id, prop = self.chance.choice(places)
        value = self.chance.randrange(9)
        self.rows[number][id][prop] = value
        kind = self.types[number]
        return f'update {kind.name} set {{ {kind.props[prop].name}: {value} }} where k = "{id}"'

    def delete(self) -> str | None:
        places = [(n, i) for n in sorted(self.types) for i in sorted(self.rows[n])]
        if not places:
            return None
        number, id = self.chance.choice(places)
        del self.rows[number][id]
        return f'delete {self.types[number].name} where k = "{id}"'
