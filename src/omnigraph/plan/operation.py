"""What a query touches and answers, in words for people and programs that do not read its text."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from omnigraph.catalog.catalog import Catalog, EdgeType, NodeType, TableType
from omnigraph.catalog.types import PropertyType
from omnigraph.plan.typed import CheckedQuery, DeleteRows, InsertRow, MutationQuery, Pattern, ReadQuery


@dataclass(frozen=True)
class ResultColumn:
    """`kind` is the type's name, `List` or `Vector`; the element of a list is `item_kind`."""

    name: str
    kind: str
    nullable: bool
    item_kind: str | None = None
    vector_dim: int | None = None

    def to_json(self) -> dict[str, Any]:
        more = {"item_kind": self.item_kind, "vector_dim": self.vector_dim}
        found = {name: value for name, value in more.items() if value is not None}
        return {"name": self.name, "kind": self.kind, **found, "nullable": self.nullable}


@dataclass(frozen=True)
class Touched:
    kind: str
    type_name: str

    def to_json(self) -> dict[str, Any]:
        return {"kind": self.kind, "type_name": self.type_name}


@dataclass(frozen=True)
class Operation:
    """Types are listed once, nodes before edges, by name."""

    result: tuple[ResultColumn, ...]
    reads: tuple[Touched, ...]
    writes: tuple[Touched, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "result": [column.to_json() for column in self.result],
            "reads": [touched.to_json() for touched in self.reads],
            "writes": [touched.to_json() for touched in self.writes],
        }


def operation_of(query: CheckedQuery, catalog: Catalog) -> Operation:
    if isinstance(query, ReadQuery):
        columns = tuple(_result_column(column.name, column.type) for column in query.columns)
        return Operation(columns, _touched(_pattern_reads(query.pattern, catalog)), ())
    reads, writes = _mutation_touches(query, catalog)
    return Operation((), _touched(reads), _touched(writes))


def _result_column(name: str, type_: PropertyType) -> ResultColumn:
    if type_.is_vector:
        return ResultColumn(name, "Vector", type_.nullable, vector_dim=type_.dimension)
    if type_.is_list:
        return ResultColumn(name, "List", type_.nullable, item_kind=type_.scalar.value)
    return ResultColumn(name, type_.scalar.value, type_.nullable)


def _pattern_reads(pattern: Pattern, catalog: Catalog) -> list[TableType]:
    found: list[TableType] = [variable.type for variable in pattern.variables]
    for expansion in pattern.expansions:
        found += [expansion.edge, *_ends(expansion.edge, catalog)]
    for negation in pattern.negations:
        found += _pattern_reads(negation.pattern, catalog)
    return found


def _mutation_touches(query: MutationQuery, catalog: Catalog) -> tuple[list[TableType], list[TableType]]:
    reads: list[TableType] = []
    writes: list[TableType] = []
    for change in query.changes:
        writes.append(change.table)
        if isinstance(change, InsertRow):
            reads += _ends(change.table, catalog) if isinstance(change.table, EdgeType) else []
            continue
        reads.append(change.table)
        if isinstance(change, DeleteRows) and isinstance(change.table, NodeType):
            name = change.table.name
            incident = [edge for edge in catalog.edges if name in (edge.src_type, edge.dst_type)]
            reads += incident
            writes += incident
    return reads, writes


def _ends(edge: EdgeType, catalog: Catalog) -> list[NodeType]:
    found = [catalog.find_node(name) for name in (edge.src_type, edge.dst_type)]
    return [node for node in found if node is not None]


def _touched(tables: Iterable[TableType]) -> tuple[Touched, ...]:
    found = {Touched(table.kind, table.name) for table in tables}
    return tuple(sorted(found, key=lambda t: (t.kind == "edge", t.type_name)))
