"""The syntax tree of a schema.

Holds for every node:
  1. It is immutable, and two nodes are equal iff they say the same; where they stand does not matter.
  2. `at` is the position of its first character; for a declaration, that of the declared name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from omnigraph.lang.diagnostics import START, Position


class LiteralKind(Enum):
    STRING = "string"
    INTEGER = "integer"
    FLOAT = "float"
    BOOL = "boolean"


@dataclass(frozen=True)
class Literal:
    """A written value; the kind keeps `1`, `1.0` and `true` apart."""

    kind: LiteralKind
    value: str | int | float | bool
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Ident:
    """A bare lower-case word used as an argument."""

    text: str
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Bound:
    """`lo..hi`, `lo..` or `..hi`; at least one side is there."""

    lo: Literal | None
    hi: Literal | None
    at: Position = field(default=START, compare=False)


Value = Literal | Ident
Arg = Literal | Ident | Bound


@dataclass(frozen=True)
class Keyword:
    name: str
    value: Literal
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Annotation:
    name: str
    value: Value | None = None
    keywords: tuple[Keyword, ...] = ()
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Constraint:
    """`@key(…)`, `@unique(…)`, `@index(…)`, `@range(…)` or `@check(…)` in a body."""

    name: str
    args: tuple[Arg, ...]
    at: Position = field(default=START, compare=False)


class TypeForm(Enum):
    SCALAR = "scalar"
    LIST = "list"
    ENUM = "enum"
    VECTOR = "vector"


@dataclass(frozen=True)
class TypeExpr:
    """A property's type as written: `base` for scalars and lists, `values` for enums, `dimension` for vectors."""

    form: TypeForm
    base: str = ""
    values: tuple[str, ...] = ()
    dimension: int = 0
    nullable: bool = False
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class PropertyDecl:
    name: str
    type: TypeExpr
    annotations: tuple[Annotation, ...] = ()
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class TypeRef:
    """The name of a type where it is used, not declared."""

    name: str
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class Card:
    min: int
    max: int | None
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class InterfaceDecl:
    name: str
    properties: tuple[PropertyDecl, ...] = ()
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class NodeDecl:
    name: str
    annotations: tuple[Annotation, ...] = ()
    implements: tuple[TypeRef, ...] = ()
    properties: tuple[PropertyDecl, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    at: Position = field(default=START, compare=False)


@dataclass(frozen=True)
class EdgeDecl:
    name: str
    source: TypeRef
    target: TypeRef
    card: Card | None = None
    annotations: tuple[Annotation, ...] = ()
    properties: tuple[PropertyDecl, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    at: Position = field(default=START, compare=False)


Declaration = InterfaceDecl | NodeDecl | EdgeDecl


@dataclass(frozen=True)
class SchemaAst:
    declarations: tuple[Declaration, ...]
    file: str | None = field(default=None, compare=False)
