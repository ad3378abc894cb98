"""Inserts, updates and deletes."""

from __future__ import annotations

from collections.abc import Sequence

from omnigraph.base.errors import TypeCheckError
from omnigraph.catalog.catalog import Catalog, EdgeType, NodeType, TableType
from omnigraph.catalog.types import PropertyType
from omnigraph.lang.diagnostics import known_names, type_error
from omnigraph.lang.gq import ast
from omnigraph.plan.check.filters import COMPARATORS
from omnigraph.plan.check.operands import assigned_operand, compared_operand, is_scalar
from omnigraph.plan.check.scope import Scope
from omnigraph.plan.typed import (
    Assigned,
    Change,
    ColumnPredicate,
    DeleteRows,
    InsertRow,
    Operand,
    UpdateRows,
)
from omnigraph.plan.values import STRING

_ENDS = {"from": "src", "to": "dst"}


def check_statement(statement: ast.Statement, scope: Scope) -> Change:
    table = table_of(statement, scope.catalog)
    match statement:
        case ast.Insert():
            return _insert(statement, table, scope)
        case ast.Update():
            _refuse_empty(statement.assignments, statement)
            _refuse_repeated(statement.assignments)
            values = tuple(_updated(entry, table, scope) for entry in statement.assignments)
            return UpdateRows(table, values, _where(statement.where, table, scope))
        case ast.Delete():
            return DeleteRows(table, _where(statement.where, table, scope))


def table_of(statement: ast.Statement, catalog: Catalog) -> TableType:
    """The type meant. Where a node and an edge share the name, `from` or `to` tells that the edge is."""
    name = statement.type.name
    node, edge = catalog.find_node(name), catalog.find_edge(name)
    if node is not None and edge is not None:
        named = {entry.name for entry in _entries(statement)} & _ENDS.keys()
        return edge if any(node.find_property(end) is None for end in named) else node
    if node is not None:
        return node
    if edge is not None:
        return edge
    if catalog.find_interface(name) is not None:
        hint = "It is an interface; interfaces hold no rows."
    else:
        hint = known_names(name, [table.name for table in catalog.tables()], "There are")
    raise type_error("T10", f"unknown type '{name}'", statement.type.at, hint)


def _entries(statement: ast.Statement) -> Sequence[ast.Assignment | ast.Predicate]:
    match statement:
        case ast.Insert():
            return statement.assignments
        case ast.Update():
            return (*statement.assignments, *statement.where)
        case ast.Delete():
            return statement.where


def _insert(statement: ast.Insert, table: TableType, scope: Scope) -> InsertRow:
    _refuse_empty(statement.assignments, statement)
    _refuse_repeated(statement.assignments)
    ends: dict[str, Operand] = {}
    values: list[Assigned] = []
    for entry in statement.assignments:
        if isinstance(table, EdgeType) and entry.name in _ENDS:
            place = f"'{entry.name}' of {table.name}"
            ends[entry.name] = assigned_operand(entry.value, STRING, place, scope)
        else:
            values.append(_assigned(entry, table, scope))
    given = {entry.name for entry in statement.assignments}
    needed = list(_ENDS) if isinstance(table, EdgeType) else []
    needed += [known.name for known in table.properties if not known.type.nullable]
    missing = [name for name in needed if name not in given]
    if missing:
        listed = ", ".join(f"'{name}'" for name in missing)
        text = f"insert {table.name} must supply {listed}"
        raise type_error("T12", text, statement.at)
    return InsertRow(table, tuple(values), ends.get("from"), ends.get("to"))


def _updated(entry: ast.Assignment, table: TableType, scope: Scope) -> Assigned:
    if entry.name == "id" or (isinstance(table, EdgeType) and entry.name in _ENDS):
        hint = "Delete the edge and insert another." if isinstance(table, EdgeType) else "Delete and insert."
        raise type_error("T16", f"update of {table.name} cannot assign '{entry.name}'", entry.at, hint)
    if isinstance(table, NodeType) and entry.name in {known.name for known in table.key_properties}:
        hint = "The key makes the id; delete the node and insert another."
        raise type_error("T16", f"cannot update @key property '{entry.name}'", entry.at, hint)
    return _assigned(entry, table, scope)


def _assigned(entry: ast.Assignment, table: TableType, scope: Scope) -> Assigned:
    known = table.find_property(entry.name)
    if known is None:
        raise _unknown(entry, table, [other.name for other in table.properties])
    place = f"property '{table.name}.{entry.name}'"
    return Assigned(known, assigned_operand(entry.value, known.type, place, scope))


def _where(where: Sequence[ast.Predicate], table: TableType, scope: Scope) -> tuple[ColumnPredicate, ...]:
    return tuple(_predicate(entry, table, scope) for entry in where)


def _predicate(entry: ast.Predicate, table: TableType, scope: Scope) -> ColumnPredicate:
    column, type_ = _column(entry, table)
    place = f"property '{table.name}.{entry.name}'"
    if type_.is_blob:
        raise type_error("T11", f"{place} is a Blob and cannot be predicated", entry.at)
    if not is_scalar(type_):
        raise type_error("T7", f"{place} is {type_} and cannot be compared with {entry.op.value}", entry.at)
    value = compared_operand(entry.value, type_, entry.op, place, scope)
    return ColumnPredicate(column, type_, COMPARATORS[entry.op], value)


def _column(entry: ast.Predicate, table: TableType) -> tuple[str, PropertyType]:
    if entry.name == "id":
        return "id", STRING
    if isinstance(table, EdgeType) and entry.name in _ENDS:
        return _ENDS[entry.name], STRING
    known = table.find_property(entry.name)
    if known is None:
        own = ["id", *(_ENDS if isinstance(table, EdgeType) else ())]
        raise _unknown(entry, table, [*(other.name for other in table.properties), *own])
    return known.name, known.type


def _unknown(entry: ast.Assignment | ast.Predicate, table: TableType, names: list[str]) -> TypeCheckError:
    if entry.name == "id":
        text = f"'id' of {table.name} cannot be assigned"
        return type_error("T11", text, entry.at, "It is derived from the @key, or made by the engine.")
    hint = known_names(entry.name, names, "It has")
    if isinstance(table, EdgeType) and entry.name in _ENDS.values():
        hint = "The ends of an edge are called 'from' and 'to'."
    return type_error("T11", f"{table.kind} type {table.name} has no property '{entry.name}'", entry.at, hint)


def _refuse_empty(entries: tuple[ast.Assignment, ...], statement: ast.Insert | ast.Update) -> None:
    if not entries:
        word = "insert" if isinstance(statement, ast.Insert) else "update"
        raise type_error("T10", f"{word} {statement.type.name} assigns nothing", statement.at)


def _refuse_repeated(entries: tuple[ast.Assignment, ...]) -> None:
    seen: set[str] = set()
    for entry in entries:
        if entry.name in seen:
            raise type_error("T13", f"property '{entry.name}' is assigned twice", entry.at)
        seen.add(entry.name)
