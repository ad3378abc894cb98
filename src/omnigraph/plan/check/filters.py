"""Comparisons in a match: what may stand on each side of which operator."""

from __future__ import annotations

from omnigraph.catalog.types import PropertyType
from omnigraph.lang.diagnostics import type_error
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.ast import Op
from omnigraph.plan.check.operands import comparable, constant, is_scalar
from omnigraph.plan.check.scope import Scope
from omnigraph.plan.check.searches import search_function
from omnigraph.plan.typed import (
    Comparator,
    Comparison,
    Constant,
    CurrentTime,
    EntityId,
    Plain,
    PropertyValue,
    TextSearch,
)
from omnigraph.plan.values import refuse_non_member

COMPARATORS = {
    Op.EQ: Comparator.EQ,
    Op.NE: Comparator.NE,
    Op.LT: Comparator.LT,
    Op.LE: Comparator.LE,
    Op.GT: Comparator.GT,
    Op.GE: Comparator.GE,
}


def comparison(clause: ast.Filter, scope: Scope) -> Comparison:
    left, right = _operand(clause.left, scope), _operand(clause.right, scope)
    match clause.op:
        case Op.CONTAINS:
            return Comparison(left, _containment(clause, left.type, right.type), right)
        case Op.STARTS_WITH:
            if not (left.type.is_string and right.type.is_string):
                text = f"starts_with compares String with String, not {left.type} with {right.type}"
                raise type_error("T7", text, clause.at)
            return Comparison(left, Comparator.STARTS_WITH, right)
        case _:
            _refuse_incomparable(clause, left, right)
            return Comparison(left, COMPARATORS[clause.op], right)


def value(expr: ast.Value | ast.PropertyRef, scope: Scope) -> Plain:
    """A value as it stands, without asking what it is compared with."""
    match expr:
        case ast.Literal() | ast.ListLiteral():
            return constant(expr)
        case ast.Now():
            return CurrentTime()
        case ast.Var():
            return scope.resolve(expr)
        case ast.PropertyRef():
            return scope.property(expr)


def _operand(expr: ast.Expr, scope: Scope) -> Plain | TextSearch:
    if isinstance(expr, ast.Ident):
        hint = f'Write $v.{expr.text} for a property, "{expr.text}" for a text.'
        raise type_error("T7", f"'{expr.text}' is no operand of a filter", expr.at, hint)
    if isinstance(expr, ast.Call):
        word = expr.function.value
        if expr.function in ast.AGGREGATES:
            raise type_error("T7", f"{word}(…) is no operand of a filter", expr.at, "Aggregates belong into return.")
        found = search_function(expr, scope)
        if not isinstance(found, TextSearch):
            raise type_error("T7", f"{word}(…) is no operand of a filter", expr.at, "Use it in return or order.")
        return found
    plain = value(expr, scope)
    if isinstance(plain, EntityId):
        text = f"node variable '${plain.variable}' is no operand of a filter"
        raise type_error("T7", text, expr.at, f"Compare ${plain.variable}.id.")
    return plain


def _containment(clause: ast.Filter, left: PropertyType, right: PropertyType) -> Comparator:
    if left.is_list:
        if not comparable(PropertyType(left.scalar), right):
            raise type_error("T7", f"{left} cannot contain {right}", clause.right.at)
        return Comparator.MEMBER
    if not left.is_string:
        raise type_error("T7", f"contains needs a list or a String on its left, not {left}", clause.at)
    if not right.is_string:
        raise type_error("T7", f"{left} cannot contain {right}", clause.right.at)
    return Comparator.SUBSTRING


def _refuse_incomparable(clause: ast.Filter, left: Plain | TextSearch, right: Plain | TextSearch) -> None:
    op = clause.op.value
    for side, operand in ((clause.left, left), (clause.right, right)):
        if not is_scalar(operand.type):
            hint = "Lists take only contains." if operand.type.is_list else "Order by nearest(…)."
            raise type_error("T7", f"{operand.type} cannot be compared with {op}", side.at, hint)
    if comparable(left.type, right.type):
        _refuse_strange_member(clause, left, right)
        return
    if isinstance(left, CurrentTime) or isinstance(right, CurrentTime):
        other = left.type if isinstance(right, CurrentTime) else right.type
        raise type_error("T7", f"now() is compared only with a DateTime, not {other}", clause.at)
    text = f"{left.type} and {right.type} cannot be compared"
    raise type_error("T7", text, clause.at, _dated(left.type, right.type))


def _dated(left: PropertyType, right: PropertyType) -> str:
    names = {left.scalar.value, right.scalar.value}
    for kind, example in (("DateTime", 'datetime("2024-01-31T12:00:00Z")'), ("Date", 'date("2024-01-31")')):
        if names == {kind, "String"}:
            return f"Write {example}."
    return ""


def _refuse_strange_member(clause: ast.Filter, left: Plain | TextSearch, right: Plain | TextSearch) -> None:
    """Equality with a text that the enum does not have is a slip, not a question."""
    if clause.op not in (Op.EQ, Op.NE):
        return
    for read, other, at in ((left, right, clause.right.at), (right, left, clause.left.at)):
        if isinstance(read, PropertyValue) and read.type.is_enum and isinstance(other, Constant):
            try:
                refuse_non_member(read.type, other.value)
            except ValueError as error:
                raise type_error("T3", f"property '{read.owner.name}.{read.name}': {error}", at) from None
