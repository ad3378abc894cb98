"""A read query as steps: each takes rows of bound variables and gives rows of bound variables.

Holds for every plan:
  1. A variable is bound by exactly one step, and only steps after it speak of it.
  2. Rules change how rows are found, never which: a plan and its rewritten form answer the same.
  3. Steps are immutable and compare by what they say.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from omnigraph.catalog.catalog import EdgeType, NodeType
from omnigraph.catalog.types import arrow_type
from omnigraph.lang.gq.ast import Function
from omnigraph.plan.typed import (
    Aggregate,
    Bm25,
    Column,
    ColumnRef,
    Comparison,
    Direction,
    EntityId,
    Nearest,
    Operand,
    PropertyValue,
    Ranking,
    Rrf,
    Selected,
    SortKey,
    TextSearch,
)

Test = Comparison | TextSearch


@dataclass(frozen=True)
class Scan:
    """Every row of a node type that passes the tests; with `id` at most the one of that id."""

    variable: str
    node: NodeType
    tests: tuple[Test, ...] = ()
    id: Operand | None = None


@dataclass(frozen=True)
class Given:
    """The rows of the block around this one."""

    variables: tuple[str, ...]


@dataclass(frozen=True)
class Expand:
    """For each row the nodes an edge leads to, or with an edge variable one row per edge.

    The direction is the one walked from `origin`. `tests` are about the target, `edge_tests` about the edge. With
    `any` each row is given once if it has such a node at all, and the target stays unbound.
    """

    input: Step
    origin: str
    edge: EdgeType
    direction: Direction
    target: str | None
    node: NodeType
    min_hops: int = 1
    max_hops: int = 1
    edge_variable: str | None = None
    tests: tuple[Test, ...] = ()
    edge_tests: tuple[Test, ...] = ()
    any: bool = False


@dataclass(frozen=True)
class Connect:
    """The rows whose two ends an edge connects; with an edge variable one row per such edge."""

    input: Step
    origin: str
    edge: EdgeType
    direction: Direction
    target: str
    min_hops: int = 1
    max_hops: int = 1
    edge_variable: str | None = None
    edge_tests: tuple[Test, ...] = ()


@dataclass(frozen=True)
class Cross:
    """Every row of one side with every row of the other."""

    left: Step
    right: Step


@dataclass(frozen=True)
class Filter:
    input: Step
    tests: tuple[Test, ...]


@dataclass(frozen=True)
class Without:
    """The rows for which `pattern`, starting from them, gives nothing."""

    input: Step
    pattern: Step


Step = Scan | Given | Expand | Connect | Cross | Filter | Without


@dataclass(frozen=True)
class Plan:
    """Where the rows come from, and what becomes of them.

    `ties` are the variables whose ids order what the keys leave equal. `late`: rows are ordered and cut before their
    columns are read.
    """

    step: Step
    columns: tuple[Column, ...]
    order: tuple[SortKey, ...] = ()
    ties: tuple[str, ...] = ()
    limit: int | None = None
    ranking: Ranking | None = None
    exact: bool = False
    late: bool = False

    @cached_property
    def aggregated(self) -> bool:
        return any(isinstance(column.value, Aggregate) for column in self.columns)

    @cached_property
    def only_counts(self) -> bool:
        """Whether all that is asked is how many rows there are: every variable stands for something in each of them."""
        counts = (isinstance(c.value, Aggregate) and _counts_entities(c.value) for c in self.columns)
        return not self.order and self.limit != 0 and all(counts)

    @cached_property
    def fusions(self) -> tuple[Rrf, ...]:
        """Scores that depend on all rows."""
        asked = [column.value for column in self.columns] + [key.value for key in self.order]
        return tuple(value for value in asked if isinstance(value, Rrf))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns as Arrow has them."""
        return pa.schema([pa.field(c.name, type_) for c, type_ in zip(self.columns, self.types, strict=True)])

    @cached_property
    def types(self) -> list[pa.DataType]:
        return [arrow_type(column.type) for column in self.columns]


def _counts_entities(aggregate: Aggregate) -> bool:
    return aggregate.function is Function.COUNT and isinstance(aggregate.argument, EntityId)


def inputs(step: Step) -> tuple[Step, ...]:
    """The steps a step takes rows from."""
    match step:
        case Scan() | Given():
            return ()
        case Cross():
            return (step.left, step.right)
        case Without():
            return (step.input, step.pattern)
        case _:
            return (step.input,)


def rebuilt(step: Step, change: Any) -> Step:
    """The step with `change` done to each step it takes rows from."""
    steps = (Scan, Given, Expand, Connect, Cross, Filter, Without)
    parts = {f.name: getattr(step, f.name) for f in fields(step)}
    changed = {name: change(part) for name, part in parts.items() if isinstance(part, steps)}
    return replace(step, **changed) if changed else step


def walk(step: Step) -> Iterator[Step]:
    """A step after all the steps it takes rows from."""
    for before in inputs(step):
        yield from walk(before)
    yield step


def bound(step: Step) -> frozenset[str]:
    """The variables that rows of this step have."""
    match step:
        case Scan():
            return frozenset({step.variable})
        case Given():
            return frozenset(step.variables)
        case Expand():
            return bound(step.input) | {v for v in (step.target, step.edge_variable) if v is not None}
        case Connect():
            return bound(step.input) | ({step.edge_variable} if step.edge_variable is not None else set())
        case Cross():
            return bound(step.left) | bound(step.right)
        case Filter() | Without():
            return bound(step.input)


def variables_of(value: Test | Selected | ColumnRef) -> frozenset[str]:
    """The variables a value is computed from."""
    match value:
        case PropertyValue() | EntityId():
            return frozenset({value.variable})
        case Comparison():
            return variables_of(value.left) | variables_of(value.right)
        case TextSearch() | Bm25() | Nearest():
            return frozenset({value.field.variable})
        case Rrf():
            return variables_of(value.first) | variables_of(value.second)
        case Aggregate():
            return variables_of(value.argument)
        case _:
            return frozenset()
