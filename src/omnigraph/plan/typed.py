"""A query after checking: every name is replaced by what it names, so a planner looks nothing up again.

Holds for every node:
  1. It is immutable; types, properties and edges are the catalog's own objects.
  2. A variable belongs to exactly one node or edge type; `$_` is None, it binds nothing.
  3. A constant that is assigned is already the value to store; one that is compared keeps its own type.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from omnigraph.catalog.catalog import EdgeType, NodeType, Property, TableType
from omnigraph.catalog.types import PropertyType
from omnigraph.lang.gq.ast import Function
from omnigraph.plan.values import BOOL, DATETIME, F64, F64_OR_NULL, STRING, Stored


@dataclass(frozen=True)
class ParamSpec:
    name: str
    type: PropertyType


@dataclass(frozen=True)
class Constant:
    type: PropertyType
    value: Stored


@dataclass(frozen=True)
class Parameter:
    name: str
    type: PropertyType


@dataclass(frozen=True)
class CurrentTime:
    """`now()`, fixed once per query."""

    type: PropertyType = DATETIME


Operand = Constant | Parameter | CurrentTime


@dataclass(frozen=True)
class PropertyValue:
    """`$variable.name`; the name may be `id`, which no type declares."""

    variable: str
    owner: TableType
    name: str
    type: PropertyType


@dataclass(frozen=True)
class EntityId:
    """A bare node variable: its id."""

    variable: str
    owner: NodeType
    type: PropertyType = STRING


Plain = Operand | PropertyValue | EntityId


@dataclass(frozen=True)
class TextSearch:
    """`search`, `fuzzy` or `match_text`: whether the text of a row matches."""

    function: Function
    field: PropertyValue
    query: Constant | Parameter
    max_edits: int | Parameter | None = None
    type: PropertyType = BOOL


@dataclass(frozen=True)
class Bm25:
    field: PropertyValue
    query: Constant | Parameter
    type: PropertyType = F64_OR_NULL


@dataclass(frozen=True)
class Nearest:
    """Cosine distance; a String query is still to be embedded."""

    field: PropertyValue
    query: Constant | Parameter
    type: PropertyType = F64_OR_NULL


@dataclass(frozen=True)
class Rrf:
    first: Nearest | Bm25
    second: Nearest | Bm25
    k: int | Parameter
    type: PropertyType = F64


@dataclass(frozen=True)
class Aggregate:
    function: Function
    argument: Plain
    type: PropertyType


Ranking = Nearest | Bm25 | Rrf
Selected = Plain | TextSearch | Ranking | Aggregate


class Comparator(Enum):
    EQ = "="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="
    STARTS_WITH = "starts_with"
    SUBSTRING = "substring"
    MEMBER = "member"


@dataclass(frozen=True)
class Comparison:
    """`left comparator right`; SUBSTRING and MEMBER read: left contains right."""

    left: Plain | TextSearch
    comparator: Comparator
    right: Plain | TextSearch


@dataclass(frozen=True)
class PropertyMatch:
    """One entry of a binding's map: EQ for a scalar property, MEMBER for a list."""

    name: str
    type: PropertyType
    comparator: Comparator
    value: Operand


@dataclass(frozen=True)
class NodeBinding:
    variable: str
    node: NodeType
    matches: tuple[PropertyMatch, ...] = ()


class Direction(Enum):
    OUT = "out"
    IN = "in"
    BOTH = "both"


@dataclass(frozen=True)
class Endpoint:
    """One side of a traversal; without a variable it only has to exist."""

    variable: str | None
    node: NodeType


@dataclass(frozen=True)
class Expansion:
    """From left to right along the edge: OUT follows it, IN walks it backwards, BOTH takes either."""

    left: Endpoint
    edge: EdgeType
    direction: Direction
    right: Endpoint
    min_hops: int = 1
    max_hops: int = 1
    edge_variable: str | None = None


@dataclass(frozen=True)
class Variable:
    name: str
    type: TableType


@dataclass(frozen=True)
class Negation:
    """Rows for which the pattern has a match are dropped; `outer` are the variables it takes from outside."""

    pattern: Pattern
    outer: tuple[str, ...]


@dataclass(frozen=True)
class Pattern:
    """The clauses of one block, by the stage in which they are evaluated, each in the order written.

    `variables` are those bound in this very block, sorted by name.
    """

    variables: tuple[Variable, ...]
    bindings: tuple[NodeBinding, ...]
    expansions: tuple[Expansion, ...]
    filters: tuple[Comparison | TextSearch, ...]
    negations: tuple[Negation, ...]


@dataclass(frozen=True)
class Column:
    name: str
    value: Selected

    @property
    def type(self) -> PropertyType:
        return self.value.type


@dataclass(frozen=True)
class ColumnRef:
    """A returned column, by its place."""

    index: int
    type: PropertyType


@dataclass(frozen=True)
class SortKey:
    value: PropertyValue | TextSearch | Ranking | ColumnRef
    descending: bool


@dataclass(frozen=True)
class ReadQuery:
    name: str
    params: tuple[ParamSpec, ...]
    pattern: Pattern
    columns: tuple[Column, ...]
    order: tuple[SortKey, ...] = ()
    limit: int | None = None
    exact: bool = False
    description: str | None = None
    instruction: str | None = None

    @property
    def aggregated(self) -> bool:
        return any(isinstance(column.value, Aggregate) for column in self.columns)

    @property
    def ranking(self) -> Ranking | None:
        """What the first ordering key ranks by, directly or through an alias."""
        if not self.order:
            return None
        first = self.order[0].value
        value = self.columns[first.index].value if isinstance(first, ColumnRef) else first
        return value if isinstance(value, Ranking) else None


@dataclass(frozen=True)
class Assigned:
    property: Property
    value: Operand


@dataclass(frozen=True)
class ColumnPredicate:
    """`column` is the stored one: `src` and `dst` for what the language calls `from` and `to`."""

    column: str
    type: PropertyType
    comparator: Comparator
    value: Operand


@dataclass(frozen=True)
class InsertRow:
    """`source` and `target` are the ids of an edge's endpoints, None for a node."""

    table: TableType
    values: tuple[Assigned, ...]
    source: Operand | None = None
    target: Operand | None = None


@dataclass(frozen=True)
class UpdateRows:
    table: TableType
    values: tuple[Assigned, ...]
    where: tuple[ColumnPredicate, ...]


@dataclass(frozen=True)
class DeleteRows:
    table: TableType
    where: tuple[ColumnPredicate, ...]


Change = InsertRow | UpdateRows | DeleteRows


@dataclass(frozen=True)
class MutationQuery:
    name: str
    params: tuple[ParamSpec, ...]
    changes: tuple[Change, ...]
    description: str | None = None
    instruction: str | None = None

    @property
    def deletes(self) -> bool:
        return isinstance(self.changes[0], DeleteRows)


CheckedQuery = ReadQuery | MutationQuery
