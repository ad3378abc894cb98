"""Ordering keys, and what ranking functions ask of a query."""

from __future__ import annotations

from omnigraph.catalog.types import PropertyType
from omnigraph.lang.diagnostics import did_you_mean, type_error
from omnigraph.lang.gq import ast
from omnigraph.plan.check.operands import is_scalar
from omnigraph.plan.check.scope import Scope
from omnigraph.plan.check.searches import search_function
from omnigraph.plan.typed import Aggregate, Column, ColumnRef, Nearest, PropertyValue, Rrf, SortKey

_KEYS = "An ordering key is $v.property, an alias or a search function."


def check_order(body: ast.Read, columns: tuple[Column, ...], scope: Scope) -> tuple[SortKey, ...]:
    aliases = {item.alias: index for index, item in enumerate(body.projections) if item.alias is not None}
    keys = tuple(_key(written, columns, aliases, scope) for written in body.order)
    if any(isinstance(column.value, Aggregate) for column in columns):
        groups = _groups(columns)
        keys = tuple(_grouped(key, written, groups) for key, written in zip(keys, body.order, strict=True))
    _check_nearest(body, keys, columns)
    _check_rrf(body, keys, columns)
    return keys


def _key(written: ast.OrderKey, columns: tuple[Column, ...], aliases: dict[str, int], scope: Scope) -> SortKey:
    expr = written.expr
    match expr:
        case ast.Ident():
            if expr.text not in aliases:
                hint = did_you_mean(expr.text, aliases) or _KEYS
                raise type_error("T6", f"alias '{expr.text}' is not bound", expr.at, hint)
            index = aliases[expr.text]
            return SortKey(ColumnRef(index, _ordered(columns[index].type, written)), written.descending)
        case ast.PropertyRef():
            found = scope.property(expr)
            _ordered(found.type, written)
            return SortKey(found, written.descending)
        case ast.Call() if expr.function not in ast.AGGREGATES:
            return SortKey(search_function(expr, scope), written.descending)
        case ast.Call():
            hint = f"Return {expr.function.value}(…) as name, and order by that name."
            raise type_error("T7", f"{expr.function.value}(…) is no ordering key", expr.at, hint)
        case ast.Var():
            scope.resolve(expr)
            raise type_error("T7", f"'${expr.name}' is no ordering key", expr.at, _KEYS)
        case _:
            raise type_error("T7", "a value is no ordering key", expr.at, _KEYS)


def _ordered(type_: PropertyType, written: ast.OrderKey) -> PropertyType:
    if not is_scalar(type_):
        raise type_error("T7", f"{type_} has no order", written.at)
    return type_


def _groups(columns: tuple[Column, ...]) -> dict[tuple[str, str], int]:
    found = [(index, column.value) for index, column in enumerate(columns)]
    return {(value.variable, value.name): index for index, value in found if isinstance(value, PropertyValue)}


def _grouped(key: SortKey, written: ast.OrderKey, groups: dict[tuple[str, str], int]) -> SortKey:
    """Rows became groups, so only what a group has can order it."""
    if isinstance(key.value, ColumnRef):
        return key
    if isinstance(key.value, PropertyValue):
        index = groups.get((key.value.variable, key.value.name))
        if index is not None:
            return SortKey(ColumnRef(index, key.value.type), key.descending)
    raise type_error("T9", "beside an aggregate, order by a returned property or an alias", written.at)


def _check_nearest(body: ast.Read, keys: tuple[SortKey, ...], columns: tuple[Column, ...]) -> None:
    ranked = [index for index, key in enumerate(keys) if isinstance(_behind(key, columns), Nearest)]
    if not ranked:
        return
    if body.limit is None:
        raise type_error("T17", "ordering by nearest requires limit", body.order[ranked[0]].at, "Add limit N.")
    for index, (key, written) in enumerate(zip(keys, body.order, strict=True)):
        if index != ranked[0] and isinstance(key.value, ColumnRef):
            text = "ordering by nearest excludes further alias ordering keys"
            raise type_error("T18", text, written.at, "Order ties by $v.property, or leave the key out.")


def _check_rrf(body: ast.Read, keys: tuple[SortKey, ...], columns: tuple[Column, ...]) -> None:
    if body.limit is not None:
        return
    used = [written.at for key, written in zip(keys, body.order, strict=True) if isinstance(_behind(key, columns), Rrf)]
    used += [item.at for item, column in zip(body.projections, columns, strict=True) if isinstance(column.value, Rrf)]
    if used:
        raise type_error("T21", "rrf requires limit", used[0], "Add limit N.")


def _behind(key: SortKey, columns: tuple[Column, ...]) -> object:
    return columns[key.value.index].value if isinstance(key.value, ColumnRef) else key.value
