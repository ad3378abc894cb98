"""What the verbs mean, as plain dictionaries: the oracle of the verb machine. It knows nothing of tables and versions.

A content maps a type to its rows by id: people (age, email), teams (size,), edges (from, to[, since]). An edge inserted
without an id gets one that only the graph knows; until it was read back the model calls it `NEW` and a number.
"""

from __future__ import annotations

import itertools
import json
import operator
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

SCHEMA = """
node Person { name: String @key  age: I32?  email: String? @unique  @range(age, 0..99)  @index(age) }
node Team { code: String @key  size: I32? }
edge Knows: Person -> Person { since: I32? }
edge MemberOf: Person -> Team @card(1..2)
"""
# The properties of each type in the order of its rows, the key first where there is one.
NODES = {"Person": ("name", "age", "email"), "Team": ("code", "size")}
EDGES = {"Knows": ("from", "to", "since"), "MemberOf": ("from", "to")}
ENDS = {"Knows": ("Person", "Person"), "MemberOf": ("Person", "Team")}
AGE_MAX = 99
TEAMS_MAX = 2
NEW = "new-"

Row = tuple[Any, ...]
Content = dict[str, dict[str, Row]]
_numbers = itertools.count()
_COMPARED = {"=": operator.eq, "!=": operator.ne, "<": operator.lt, "<=": operator.le, ">": operator.gt}


def empty() -> Content:
    return {name: {} for name in (*NODES, *EDGES)}


def copied(content: Content) -> Content:
    return {name: dict(rows) for name, rows in content.items()}


def value_of(type_: str, id_: str, row: Row, column: str) -> Any:
    if column == "id":
        return id_
    if type_ in NODES:
        return (id_, *row)[NODES[type_].index(column)]
    return row[EDGES[type_].index(column)]


@dataclass(frozen=True)
class Where:
    """Comparisons that must all be TRUE; one with a null is not."""

    tests: tuple[tuple[str, str, Any], ...]

    @property
    def text(self) -> str:
        return " and ".join(f"{column} {cmp} {literal(value)}" for column, cmp, value in self.tests)

    def selects(self, type_: str, id_: str, row: Row) -> bool:
        held = [(value_of(type_, id_, row, column), cmp, value) for column, cmp, value in self.tests]
        return all(mine is not None and _COMPARED[cmp](mine, value) for mine, cmp, value in held)


def literal(value: Any) -> str:
    return "null" if value is None else json.dumps(value, ensure_ascii=False)


@dataclass(frozen=True)
class Insert:
    """A node with its id and values, or an edge (`id_` None) with its ends and values."""

    type_: str
    id_: str | None
    values: Row

    @property
    def text(self) -> str:
        names, values = NODES.get(self.type_) or EDGES[self.type_], self.values
        cells = values if self.id_ is None else (self.id_, *values)
        return f"insert {self.type_} {{ {', '.join(f'{n}: {literal(c)}' for n, c in zip(names, cells, strict=True))} }}"

    def apply(self, content: Content) -> dict[str, int]:
        content[self.type_][self.id_ or f"{NEW}{next(_numbers)}"] = self.values
        return {self.type_: 1}


@dataclass(frozen=True)
class Update:
    type_: str
    column: str
    value: Any
    where: Where

    @property
    def text(self) -> str:
        return f"update {self.type_} set {{ {self.column}: {literal(self.value)} }} where {self.where.text}"

    def apply(self, content: Content) -> dict[str, int]:
        rows = content[self.type_]
        names = NODES[self.type_][1:] if self.type_ in NODES else EDGES[self.type_]
        place = names.index(self.column)
        found = [i for i, row in rows.items() if self.where.selects(self.type_, i, row)]
        for i in found:
            rows[i] = (*rows[i][:place], self.value, *rows[i][place + 1 :])
        return {self.type_: len(found)}


@dataclass(frozen=True)
class Delete:
    type_: str
    where: Where

    @property
    def text(self) -> str:
        return f"delete {self.type_} where {self.where.text}"

    def apply(self, content: Content) -> dict[str, int]:
        gone = {i for i, row in content[self.type_].items() if self.where.selects(self.type_, i, row)}
        counts = {self.type_: len(gone)}
        content[self.type_] = {i: row for i, row in content[self.type_].items() if i not in gone}
        for edge, ends in ENDS.items():
            kept = {
                i: row
                for i, row in content[edge].items()
                if not any(node == self.type_ and row[place] in gone for place, node in enumerate(ends))
            }
            if edge != self.type_:
                counts[edge] = len(content[edge]) - len(kept)
            content[edge] = kept
        return counts


Statement = Insert | Update | Delete


@dataclass(frozen=True)
class Mutated:
    content: Content
    nodes: int
    edges: int

    @property
    def changed(self) -> bool:
        return bool(self.nodes or self.edges)


def mutated(before: Content, statements: Iterable[Statement]) -> Mutated | None:
    """What the statements make of it, in order; None when the rules refuse the result."""
    content, counts = copied(before), Counter[str]()
    for statement in statements:
        counts.update(statement.apply(content))
    nodes = sum(n for name, n in counts.items() if name in NODES)
    return Mutated(content, nodes, counts.total() - nodes) if holds(before, content) else None


def holds(before: Content, after: Content) -> bool:
    """Whether the rules allow that `before` becomes `after`."""
    ages = [row[0] for row in after["Person"].values() if row[0] is not None]
    emails = [row[1] for row in after["Person"].values() if row[1] is not None]
    teams = Counter(row[0] for row in after["MemberOf"].values())
    left_all = {row[0] for row in before["MemberOf"].values()} - set(teams)
    return (
        all(0 <= age <= AGE_MAX for age in ages)
        and len(emails) == len(set(emails))
        and not dangling(after)
        and max(teams.values(), default=0) <= TEAMS_MAX
        and not left_all & set(after["Person"])
    )


def dangling(content: Content) -> list[str]:
    """The ids of edges that miss an end."""
    return [
        i
        for edge, ends in ENDS.items()
        for i, row in content[edge].items()
        if any(row[place] not in content[node] for place, node in enumerate(ends))
    ]


def settled(expected: Content, found: Content) -> Content | None:
    """`expected` with the ids the graph gave to new edges; None when the two differ in anything else."""
    result = copied(expected)
    for edge in EDGES:
        new = {i: row for i, row in expected[edge].items() if i.startswith(NEW)}
        fresh = {i: row for i, row in found[edge].items() if i not in expected[edge]}
        if sorted(map(repr, new.values())) != sorted(map(repr, fresh.values())):
            return None
        result[edge] = {i: row for i, row in expected[edge].items() if i not in new} | fresh
    return result if result == found else None


def unlike(expected: Sequence[Content], found: Content) -> str:
    return "\n".join([*(f"expected {content}" for content in expected), f"found    {found}"])
