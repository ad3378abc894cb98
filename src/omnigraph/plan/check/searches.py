"""Search functions: their fields, queries and numbers."""

from __future__ import annotations

from omnigraph.catalog.catalog import Index, Key, NodeType
from omnigraph.catalog.types import PropertyType, ScalarType
from omnigraph.lang.diagnostics import did_you_mean, type_error
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.ast import Function, LiteralKind
from omnigraph.plan.check.operands import NULL_TEXT, is_null
from omnigraph.plan.check.scope import Scope
from omnigraph.plan.typed import Bm25, Constant, EntityId, Nearest, Parameter, PropertyValue, Rrf, TextSearch
from omnigraph.plan.values import STRING, vector_of

MAX_EDITS = 2
RRF_K = 60

_RULES = {
    Function.SEARCH: "T19",
    Function.FUZZY: "T19",
    Function.MATCH_TEXT: "T20",
    Function.BM25: "T20",
    Function.NEAREST: "T15",
}


def search_function(call: ast.Call, scope: Scope) -> TextSearch | Bm25 | Nearest | Rrf:
    """A call that is no aggregate."""
    match call.function:
        case Function.NEAREST:
            return _nearest(call, scope)
        case Function.RRF:
            return _rrf(call, scope)
        case Function.BM25:
            return Bm25(*_text_arguments(call, scope))
        case Function.FUZZY:
            edits = _max_edits(call.args[2], scope) if len(call.args) > 2 else MAX_EDITS
            return TextSearch(call.function, *_text_arguments(call, scope), edits)
        case _:
            return TextSearch(call.function, *_text_arguments(call, scope))


def _text_arguments(call: ast.Call, scope: Scope) -> tuple[PropertyValue, Constant | Parameter]:
    rule, word = _RULES[call.function], call.function.value
    written = call.args[0]
    if not isinstance(written, ast.PropertyRef):
        raise type_error(rule, f"the field of {word} is a property", written.at, f"Write {word}($v.property, …).")
    field = scope.property(written)
    if not field.type.is_string:
        raise type_error(rule, f"{word} needs a String property, {_named(field)} is {field.type}", written.at)
    if not _is_searchable(field):
        text = f"{word} needs a property with @index or @key, {_named(field)} has neither"
        raise type_error("T25", text, written.at, "Declare it with @index in the schema.")
    query = _query_text(call, scope)
    if query is None:
        raise type_error(rule, f"the query of {word} is a String literal or parameter", call.args[1].at)
    return field, query


def _is_searchable(field: PropertyValue) -> bool:
    marks = [mark for mark in field.owner.constraints if isinstance(mark, Index | Key)]
    return any(field.name in mark.columns for mark in marks)


def _query_text(call: ast.Call, scope: Scope) -> Constant | Parameter | None:
    """The query, if it is a text that is known before any row is read."""
    written = call.args[1]
    if is_null(written):
        raise type_error("T7", NULL_TEXT, written.at)
    if isinstance(written, ast.Literal) and written.kind is LiteralKind.STRING:
        return Constant(STRING, written.value)
    given = _parameter(written, scope)
    return given if given is not None and given.type.is_string else None


def _parameter(written: ast.Expr, scope: Scope) -> Parameter | None:
    if not isinstance(written, ast.Var):
        return None
    found = scope.resolve(written)
    return None if isinstance(found, EntityId) else found


def _max_edits(written: ast.Expr, scope: Scope) -> int | Parameter:
    number = _whole_number(written, scope)
    if number is None or (isinstance(number, int) and number < 0):
        raise type_error("T19", "max_edits of fuzzy is an integer of at least 0", written.at)
    return number


def _whole_number(written: ast.Expr, scope: Scope) -> int | Parameter | None:
    if is_null(written):
        raise type_error("T7", NULL_TEXT, written.at)
    if isinstance(written, ast.Literal) and written.kind is LiteralKind.INTEGER:
        assert isinstance(written.value, int)
        return written.value
    given = _parameter(written, scope)
    return given if given is not None and given.type.is_integer else None


def _nearest(call: ast.Call, scope: Scope) -> Nearest:
    written = call.args[0]
    if not isinstance(written, ast.PropertyRef):
        raise type_error(
            "T15", "the field of nearest is a Vector property", written.at, "Write nearest($v.property, …)."
        )
    field = scope.property(written, unbound_rule="T15")
    if not isinstance(field.owner, NodeType):
        text = f"nearest needs a node variable, '${field.variable}' is an edge of type {field.owner.name}"
        raise type_error("T15", text, written.at)
    if not field.type.is_vector:
        vectors = [known.name for known in field.owner.properties if known.type.is_vector]
        text = f"nearest needs a Vector property, {_named(field)} is {field.type}"
        raise type_error("T15", text, written.name_at, did_you_mean(field.name, vectors))
    return Nearest(field, _query_vector(call, field.type, scope))


def _query_vector(call: ast.Call, type_: PropertyType, scope: Scope) -> Constant | Parameter:
    written = call.args[1]
    text = _query_text(call, scope)
    if text is not None:
        return text
    if isinstance(written, ast.ListLiteral):
        if len(written.items) != type_.dimension:
            why = f"the query of nearest has {len(written.items)} dimensions, the property {type_.dimension}"
            raise type_error("T15", why, written.at)
        try:
            return Constant(PropertyType(ScalarType.VECTOR, dimension=type_.dimension), vector_of(written))
        except ValueError as error:
            raise type_error("T15", f"the query of nearest: {error}", written.at) from None
    given = _parameter(written, scope)
    if given is None or not given.type.is_vector:
        shown = "" if given is None else f", '${given.name}' is {given.type}"
        raise type_error("T15", f"the query of nearest is a Vector or a String{shown}", written.at)
    if given.type.dimension != type_.dimension:
        why = f"parameter '${given.name}' is {given.type}, the property has {type_.dimension} dimensions"
        raise type_error("T15", why, written.at)
    return given


def _rrf(call: ast.Call, scope: Scope) -> Rrf:
    arms: list[Nearest | Bm25] = []
    for written in call.args[:2]:
        if not isinstance(written, ast.Call) or written.function not in (Function.NEAREST, Function.BM25):
            raise type_error("T21", "both rankings of rrf are nearest(…) or bm25(…)", written.at)
        arm = search_function(written, scope)
        assert isinstance(arm, Nearest | Bm25)
        arms.append(arm)
    first, second = arms
    if first.field.variable != second.field.variable:
        text = f"both rankings of rrf rank one variable, not '${first.field.variable}' and '${second.field.variable}'"
        raise type_error("T21", text, call.args[1].at)
    return Rrf(first, second, _rrf_k(call.args[2], scope) if len(call.args) > 2 else RRF_K)


def _rrf_k(written: ast.Expr, scope: Scope) -> int | Parameter:
    number = _whole_number(written, scope)
    if number is None or (isinstance(number, int) and number < 1):
        raise type_error("T21", "k of rrf is an integer greater than 0", written.at)
    return number


def _named(field: PropertyValue) -> str:
    return f"{field.owner.name}.{field.name}"
