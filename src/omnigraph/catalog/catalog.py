"""The compiled schema: what every other room asks about types, properties and constraints.

Holds for every Catalog:
  1. Interfaces, nodes, edges and the properties of each are sorted by name; node types hold injected properties too.
  2. `@key`, `@unique` and `@index` after a property are constraints like those in the body; equal ones appear once.
  3. Ids are 0 until identity has assigned them; rename hints exist only before that and never count for equality.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Literal

import pyarrow as pa

from omnigraph.base.columns import PROPERTY_ID
from omnigraph.catalog.types import PropertyType, ScalarType, arrow_field
from omnigraph.lang.pg.printer import print_value

Scalar = str | int | float | bool
Kind = Literal["interface", "node", "edge"]


@dataclass(frozen=True, order=True)
class Annotation:
    """Metadata the engine does not interpret; `arguments` is its text between the parentheses."""

    name: str
    arguments: str = ""


@dataclass(frozen=True)
class Embed:
    """The Vector holds embeddings of the text property `source`."""

    source: str
    model: str | None = None


@dataclass(frozen=True)
class Property:
    name: str
    type: PropertyType
    property_id: int = 0
    description: str | None = None
    default: Scalar | None = None
    embed: Embed | None = None
    annotations: tuple[Annotation, ...] = ()
    rename_from: str | None = field(default=None, compare=False)


@dataclass(frozen=True)
class Key:
    columns: tuple[str, ...]
    name: ClassVar[str] = "key"

    def __str__(self) -> str:
        return f"@key({', '.join(self.columns)})"


@dataclass(frozen=True)
class Unique:
    columns: tuple[str, ...]
    name: ClassVar[str] = "unique"

    def __str__(self) -> str:
        return f"@unique({', '.join(self.columns)})"


@dataclass(frozen=True)
class Index:
    columns: tuple[str, ...]
    name: ClassVar[str] = "index"

    def __str__(self) -> str:
        return f"@index({', '.join(self.columns)})"


@dataclass(frozen=True)
class Range:
    """Inclusive bounds, already rounded to values the property's own type can hold."""

    column: str
    lo: int | float | None
    hi: int | float | None
    name: ClassVar[str] = "range"

    def __str__(self) -> str:
        ends = ["" if end is None else print_value(end) for end in (self.lo, self.hi)]
        return f"@range({self.column}, {ends[0]}..{ends[1]})"


@dataclass(frozen=True)
class Check:
    """`pattern` is RE2 and is searched anywhere in the value."""

    column: str
    pattern: str
    name: ClassVar[str] = "check"

    def __str__(self) -> str:
        return f"@check({self.column}, {print_value(self.pattern)})"


Constraint = Key | Unique | Index | Range | Check


@dataclass(frozen=True)
class Cardinality:
    """Outgoing edges allowed per source node."""

    min: int = 0
    max: int | None = None


@dataclass(frozen=True)
class _Type:
    name: str
    properties: tuple[Property, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    type_id: int = 0
    incarnation: int = 0
    description: str | None = None
    instruction: str | None = None
    annotations: tuple[Annotation, ...] = ()
    rename_from: str | None = field(default=None, compare=False)
    kind: ClassVar[Kind]

    @cached_property
    def _by_name(self) -> dict[str, Property]:
        return {known.name: known for known in self.properties}

    def find_property(self, name: str) -> Property | None:
        return self._by_name.get(name)

    @cached_property
    def columns_id(self) -> str:
        """Which names mean which properties: types where it is equal see a stored table alike."""
        return ",".join(f"{known.name}={known.property_id}" for known in self.properties)

    @property
    def uniques(self) -> tuple[Unique, ...]:
        return tuple(c for c in self.constraints if isinstance(c, Unique))


@dataclass(frozen=True)
class InterfaceType(_Type):
    kind: ClassVar[Kind] = "interface"


@dataclass(frozen=True)
class NodeType(_Type):
    implements: tuple[str, ...] = ()
    kind: ClassVar[Kind] = "node"

    @cached_property
    def table_key(self) -> str:
        return f"node:{self.name}"

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        return pa.schema([_required("id"), *map(_column, self.properties)])

    @cached_property
    def key_properties(self) -> tuple[Property, ...]:
        """The members of `@key` in property-id order, the order in which they form an id; empty without a key."""
        columns = next((c.columns for c in self.constraints if isinstance(c, Key)), ())
        members = [self._by_name[column] for column in columns]
        return tuple(sorted(members, key=lambda p: (p.property_id, p.name)))

    @property
    def key_members(self) -> tuple[Property, ...]:
        """The members of `@key` as the schema lists them, the order in which people give them."""
        columns = next((c.columns for c in self.constraints if isinstance(c, Key)), ())
        return tuple(self._by_name[column] for column in columns)

    @property
    def ranges(self) -> tuple[Range, ...]:
        return tuple(c for c in self.constraints if isinstance(c, Range))

    @property
    def checks(self) -> tuple[Check, ...]:
        return tuple(c for c in self.constraints if isinstance(c, Check))


@dataclass(frozen=True)
class EdgeType(_Type):
    src_type: str = ""
    dst_type: str = ""
    cardinality: Cardinality = Cardinality()
    kind: ClassVar[Kind] = "edge"

    @cached_property
    def table_key(self) -> str:
        return f"edge:{self.name}"

    @cached_property
    def arrow_schema(self) -> pa.Schema:
        columns = [_required(name) for name in ("id", "src", "dst")]
        return pa.schema([*columns, *map(_column, self.properties)])


TableType = NodeType | EdgeType


@dataclass(frozen=True)
class Catalog:
    interfaces: tuple[InterfaceType, ...] = ()
    nodes: tuple[NodeType, ...] = ()
    edges: tuple[EdgeType, ...] = ()

    @cached_property
    def _tables(self) -> dict[str, TableType]:
        found: list[TableType] = [*self.nodes, *self.edges]
        return {table.table_key: table for table in sorted(found, key=lambda t: t.table_key)}

    @cached_property
    def _folded_edges(self) -> dict[str, EdgeType]:
        return {edge.name.lower(): edge for edge in self.edges}

    def tables(self) -> tuple[TableType, ...]:
        """Every node and edge type, sorted by table key."""
        return tuple(self._tables.values())

    @cached_property
    def table_keys(self) -> frozenset[str]:
        return frozenset(self._tables)

    def find_table(self, table_key: str) -> TableType | None:
        return self._tables.get(table_key)

    def find_node(self, name: str) -> NodeType | None:
        found = self._tables.get(f"node:{name}")
        return found if isinstance(found, NodeType) else None

    def find_edge(self, name: str) -> EdgeType | None:
        """The edge of exactly this name, else the one equal to it in lower case."""
        found = self._tables.get(f"edge:{name}")
        return found if isinstance(found, EdgeType) else self._folded_edges.get(name.lower())

    def find_interface(self, name: str) -> InterfaceType | None:
        return next((known for known in self.interfaces if known.name == name), None)

    def arrow_schema(self, table_key: str) -> pa.Schema:
        """The columns of a table; the key must be one of `tables()`."""
        return self._tables[table_key].arrow_schema


IndexKind = Literal["btree", "fulltext", "vector"]


@dataclass(frozen=True, order=True)
class DeclaredIndex:
    column: str
    kind: IndexKind


def declared_indexes(table: TableType) -> tuple[DeclaredIndex, ...]:
    """The physical indexes a table should have: its own columns first, then by property name."""
    own = ("id",) if isinstance(table, NodeType) else ("id", "src", "dst")
    found = dict.fromkeys(DeclaredIndex(column, "btree") for column in own)
    declared: set[DeclaredIndex] = set()
    for constraint in table.constraints:
        if isinstance(constraint, Key | Unique | Index) and len(constraint.columns) == 1:
            known = table.find_property(constraint.columns[0])
            if known is not None:
                declared.update(DeclaredIndex(known.name, kind) for kind in _index_kinds(constraint, known.type))
    return (*found, *sorted(declared))


def _index_kinds(constraint: Key | Unique | Index, type_: PropertyType) -> tuple[IndexKind, ...]:
    if type_.is_list or type_.is_blob:
        return ()
    if type_.is_vector:
        return ("vector",) if isinstance(constraint, Index) else ()
    if type_.scalar is ScalarType.STRING and not type_.is_enum:
        # The id of a node keyed by one String is that String, and every id has its BTREE.
        kinds: dict[str, tuple[IndexKind, ...]] = {"key": (), "unique": ("btree",), "index": ("btree", "fulltext")}
        return kinds[constraint.name]
    return ("btree",)


def _column(known: Property) -> pa.Field:
    """The column of a property; it says which one it is, so that it is found under any name."""
    field = arrow_field(known.name, known.type)
    return field.with_metadata({PROPERTY_ID: str(known.property_id)}) if known.property_id else field


def _required(name: str) -> pa.Field:
    return pa.field(name, pa.string(), nullable=False)
