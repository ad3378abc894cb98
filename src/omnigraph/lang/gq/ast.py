"""The syntax tree of a query file.

Holds for every node:
  1. It is immutable, and two nodes are equal iff they say the same; where they stand does not matter.
  2. `at` is the position of its first character; for a query, that of its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from omnigraph.lang.diagnostics import START, Position
from omnigraph.lang.pg.ast import TypeExpr, TypeRef


class LiteralKind(Enum):
    STRING = "string"
    INTEGER = "integer"
    FLOAT = "float"
    BOOL = "boolean"
    DATE = "date"
    DATETIME = "datetime"
    NULL = "null"


@dataclass(frozen=True)
class Literal:
    """A written value; `date("…")` and `datetime("…")` keep their text, which nobody has looked at yet."""

    kind: LiteralKind
    value: str | int | float | bool | None
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class ListLiteral:
    items: tuple[Literal | ListLiteral, ...]
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Now:
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Var:
    """`$name`: a parameter, or something a pattern binds."""

    name: str
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class PropertyRef:
    """`$variable.name`; `at` is where the variable stands, `name_at` where the name does."""

    variable: str
    name: str
    at: Position = field(default=START, compare=False)
    name_at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Ident:
    """A bare word: the alias of a returned item."""

    text: str
    at: Position = field(default=START, compare=False)


class Function(Enum):
    NEAREST = "nearest"
    SEARCH = "search"
    FUZZY = "fuzzy"
    MATCH_TEXT = "match_text"
    BM25 = "bm25"
    RRF = "rrf"
    COUNT = "count"
    SUM = "sum"
    AVG = "avg"
    MIN = "min"
    MAX = "max"


AGGREGATES = frozenset({Function.COUNT, Function.SUM, Function.AVG, Function.MIN, Function.MAX})


@dataclass(frozen=True)
class Call:
    """A function with as many arguments as it takes; what they are is for the type checker."""

    function: Function
    args: tuple[Expr, ...]
    at: Position = field(default=START, compare=False)


Value = Literal | ListLiteral | Now | Var
Expr = Value | PropertyRef | Ident | Call


class Op(Enum):
    STARTS_WITH = "starts_with"
    CONTAINS = "contains"
    GE = ">="
    LE = "<="
    NE = "!="
    GT = ">"
    LT = "<"
    EQ = "="


WORD_OPS = frozenset({Op.STARTS_WITH, Op.CONTAINS})


@dataclass(frozen=True)
class Assignment:
    """`name: value` in a binding, an insert or an update."""

    name: str
    value: Value
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Binding:
    variable: Var
    type: TypeRef
    properties: tuple[Assignment, ...] = ()
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Hops:
    """`{min,max}`; without a maximum the walk has no end."""

    min: int
    max: int | None
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class EdgeRef:
    name: str
    undirected: bool = False
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Traversal:
    left: Var
    edge: EdgeRef
    right: Var
    edge_variable: Var | None = None
    hops: Hops | None = None
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Filter:
    left: Expr
    op: Op
    right: Expr
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class TextMatch:
    """`search(…)`, `fuzzy(…)` or `match_text(…)` as a clause of its own."""

    call: Call
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Negation:
    clauses: tuple[Clause, ...]
    at: Position = field(default=START, compare=False)


Clause = Negation | Binding | Traversal | Filter | TextMatch


@dataclass(frozen=True)
class Projection:
    expr: Expr
    alias: str | None = None
    at: Position = field(default=START, compare=False)
    alias_at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class OrderKey:
    expr: Expr
    descending: bool = False
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Read:
    clauses: tuple[Clause, ...]
    projections: tuple[Projection, ...]
    order: tuple[OrderKey, ...] = ()
    limit: int | None = None


@dataclass(frozen=True)
class Predicate:
    name: str
    op: Op
    value: Value
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Insert:
    type: TypeRef
    assignments: tuple[Assignment, ...]
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Update:
    type: TypeRef
    assignments: tuple[Assignment, ...]
    where: tuple[Predicate, ...]
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Delete:
    type: TypeRef
    where: tuple[Predicate, ...]
    at: Position = field(default=START, compare=False)


Statement = Insert | Update | Delete


@dataclass(frozen=True)
class Mutation:
    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Param:
    name: str
    type: TypeExpr
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Query:
    name: str
    params: tuple[Param, ...]
    body: Read | Mutation
    description: str | None = None
    instruction: str | None = None
    exact: bool = False
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class QueryFile:
    queries: tuple[Query, ...]
    file: str | None = field(default=None, compare=False)
