"""What a read returns: columns, their names and types, and aggregates."""

from __future__ import annotations

from dataclasses import replace

from omnigraph.catalog.types import PropertyType, ScalarType
from omnigraph.lang.diagnostics import type_error
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.ast import Function
from omnigraph.plan.check.filters import value
from omnigraph.plan.check.scope import Scope
from omnigraph.plan.check.searches import search_function
from omnigraph.plan.typed import Aggregate, Column, EntityId, Plain, Selected
from omnigraph.plan.values import F64_OR_NULL, I64

_ORDERED = frozenset({ScalarType.STRING, ScalarType.DATE, ScalarType.DATETIME})


def check_returns(items: tuple[ast.Projection, ...], scope: Scope) -> tuple[Column, ...]:
    columns = tuple(Column(_column_name(item), _selected(item, scope)) for item in items)
    if any(isinstance(column.value, Aggregate) for column in columns):
        for item, column in zip(items, columns, strict=True):
            if not isinstance(column.value, Aggregate) and not isinstance(item.expr, ast.Var | ast.PropertyRef):
                text = "beside an aggregate every other item is $v.property or $v"
                raise type_error("T9", text, item.at)
    _refuse_repeated_names(items, columns)
    return columns


def _selected(item: ast.Projection, scope: Scope) -> Selected:
    expr = item.expr
    if isinstance(expr, ast.Ident):
        text = f"'{expr.text}' is not bound"
        raise type_error("T6", text, expr.at, f"Write $v.{expr.text} for a property.")
    if not isinstance(expr, ast.Call):
        return value(expr, scope)
    if expr.function in ast.AGGREGATES:
        return _aggregate(expr, scope)
    if item.alias is None:
        text = f"{expr.function.value}(…) in return needs an alias"
        raise type_error("T25", text, item.at, f"Write {expr.function.value}(…) as name.")
    return search_function(expr, scope)


def _aggregate(call: ast.Call, scope: Scope) -> Aggregate:
    word, written = call.function.value, call.args[0]
    if isinstance(written, ast.Call):
        raise type_error("T8", f"{word} takes no function", written.at, "Give it $v.property.")
    if isinstance(written, ast.Ident):
        raise type_error("T6", f"'{written.text}' is not bound", written.at, f"Write $v.{written.text}.")
    argument = value(written, scope)
    return Aggregate(call.function, argument, _aggregate_type(call, argument, written))


def _aggregate_type(call: ast.Call, argument: Plain, written: ast.Expr) -> PropertyType:
    word, type_ = call.function.value, argument.type
    if call.function is Function.COUNT:
        return I64
    if isinstance(argument, EntityId):
        text = f"{word} takes a property, '${argument.variable}' is a node"
        raise type_error("T8", text, written.at, f"Write {word}(${argument.variable}.property).")
    if call.function in (Function.SUM, Function.AVG):
        if not type_.is_numeric:
            raise type_error("T8", f"{word} takes a number, not {type_}", written.at)
        return F64_OR_NULL
    if not (type_.is_numeric or (type_.scalar in _ORDERED and not type_.is_list)):
        raise type_error("T8", f"{word} takes a number, String, Date or DateTime, not {type_}", written.at)
    return replace(type_, nullable=True)


def _column_name(item: ast.Projection) -> str:
    return item.alias if item.alias is not None else _unaliased(item.expr)


def _unaliased(expr: ast.Expr) -> str:
    match expr:
        case ast.PropertyRef():
            return f"{expr.variable}.{expr.name}"
        case ast.Var():
            return expr.name
        case ast.Ident():
            return expr.text
        case ast.Now():
            return "now"
        case ast.Call():
            return _unaliased(expr.args[0])
        case _:
            return "literal"


def _refuse_repeated_names(items: tuple[ast.Projection, ...], columns: tuple[Column, ...]) -> None:
    seen: set[str] = set()
    for item, column in zip(items, columns, strict=True):
        if column.name in seen:
            at = item.at if item.alias is None else item.alias_at
            raise type_error("T25", f"column '{column.name}' is returned twice", at, "Give one of them an alias.")
        seen.add(column.name)
