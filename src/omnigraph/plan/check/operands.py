"""Values that are compared, matched or assigned: does their type fit?"""

from __future__ import annotations

from omnigraph.base.errors import TypeCheckError
from omnigraph.catalog.types import FLOATS, INTEGER_RANGES, NUMERICS, PropertyType
from omnigraph.lang.diagnostics import Position, type_error
from omnigraph.lang.gq import ast
from omnigraph.plan.check.scope import Scope, meant_variable
from omnigraph.plan.typed import Constant, CurrentTime, Operand, Parameter
from omnigraph.plan.values import DATETIME, fitted, literal_type, literal_value, matched, spelling_hint

NULL_TEXT = "null is only allowed in assignments"


def is_null(value: ast.Expr) -> bool:
    return isinstance(value, ast.Literal) and value.kind is ast.LiteralKind.NULL


def is_scalar(type_: PropertyType) -> bool:
    return not (type_.is_list or type_.is_vector or type_.is_blob)


def comparable(one: PropertyType, other: PropertyType) -> bool:
    """Two scalars of the same type, or two numbers."""
    if not (is_scalar(one) and is_scalar(other)):
        return False
    return one.scalar is other.scalar or (one.scalar in NUMERICS and other.scalar in NUMERICS)


def assignable(given: PropertyType, to: PropertyType) -> bool:
    """Whether every value of one type is a value of the other, but for its range."""
    if given.is_list is not to.is_list or given.dimension != to.dimension:
        return False
    if to.scalar in INTEGER_RANGES:
        return given.scalar in INTEGER_RANGES
    if to.scalar in FLOATS:
        return given.scalar in NUMERICS
    return given.scalar is to.scalar


def constant(literal: ast.Literal | ast.ListLiteral, rule: str = "T7") -> Constant:
    """A literal on its own."""
    if is_null(literal):
        raise type_error("T7", NULL_TEXT, literal.at)
    try:
        return Constant(literal_type(literal), literal_value(literal))
    except ValueError as error:
        raise type_error(rule, str(error), literal.at) from None


def parameter(var: ast.Var, scope: Scope) -> Parameter:
    """A variable where only a parameter may stand."""
    if var.name not in scope.params:
        text = f"'${var.name}' is not a declared parameter"
        raise type_error("T14", text, var.at, meant_variable(var.name, list(scope.params)))
    return Parameter(var.name, scope.params[var.name])


def matched_operand(value: ast.Value, type_: PropertyType, place: str, scope: Scope) -> Operand:
    """A value compared with a scalar property; `place` names the property in errors."""
    match value:
        case ast.Var():
            given = parameter(value, scope)
            if not comparable(given.type, type_):
                raise _mismatch(given, type_, place, value.at)
            return given
        case ast.Now():
            return now_against(type_, place, value.at)
        case ast.Literal() | ast.ListLiteral():
            if is_null(value):
                raise type_error("T7", NULL_TEXT, value.at)
            try:
                return Constant(*matched(type_, value))
            except ValueError as error:
                raise _misfit(place, error, value, type_) from None


def compared_operand(value: ast.Value, type_: PropertyType, op: ast.Op, place: str, scope: Scope) -> Operand:
    """A value on the right of a predicate: as in a filter, any two numbers compare."""
    if not isinstance(value, ast.Literal) or is_null(value):
        return matched_operand(value, type_, place, scope)
    given = constant(value, "T3")
    if not comparable(given.type, type_):
        return matched_operand(value, type_, place, scope)
    if type_.is_enum and op in (ast.Op.EQ, ast.Op.NE):
        return matched_operand(value, type_, place, scope)
    return given


def assigned_operand(value: ast.Value, type_: PropertyType, place: str, scope: Scope) -> Operand:
    """A value stored in a property."""
    match value:
        case ast.Var():
            given = parameter(value, scope)
            if not assignable(given.type, type_):
                raise _mismatch(given, type_, place, value.at)
            return given
        case ast.Now():
            return now_against(type_, place, value.at)
        case ast.Literal() | ast.ListLiteral():
            try:
                return Constant(type_, fitted(type_, value))
            except ValueError as error:
                raise _misfit(place, error, value, type_) from None


def now_against(type_: PropertyType, place: str, at: Position) -> CurrentTime:
    if type_.is_list or type_.scalar is not DATETIME.scalar:
        raise type_error("T7", f"now() is a DateTime, {place} is {type_}", at)
    return CurrentTime()


def _mismatch(given: Parameter, type_: PropertyType, place: str, at: Position) -> TypeCheckError:
    return type_error("T7", f"parameter '${given.name}' is {given.type}, {place} is {type_}", at)


def _misfit(place: str, why: ValueError, value: ast.Literal | ast.ListLiteral, type_: PropertyType) -> TypeCheckError:
    return type_error("T3", f"{place}: {why}", value.at, spelling_hint(type_, value))
