"""The clauses of a `match` or `not` block."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from omnigraph.catalog.catalog import NodeType
from omnigraph.catalog.types import PropertyType
from omnigraph.lang.diagnostics import known_names, type_error
from omnigraph.lang.gq import ast
from omnigraph.plan.check.filters import comparison
from omnigraph.plan.check.operands import matched_operand
from omnigraph.plan.check.scope import Scope
from omnigraph.plan.check.searches import search_function
from omnigraph.plan.check.traversals import bind_nodes, expand
from omnigraph.plan.typed import (
    Comparator,
    Comparison,
    Negation,
    NodeBinding,
    Operand,
    Parameter,
    Pattern,
    PropertyMatch,
    TextSearch,
)
from omnigraph.plan.values import STRING

_SHOWN_MAX = 20


def check_pattern(clauses: Sequence[ast.Clause], scope: Scope) -> Pattern:
    """The block typed; afterwards the scope knows its variables."""
    bindings = [clause for clause in clauses if isinstance(clause, ast.Binding)]
    nodes = bind_nodes(bindings, scope)
    traversals = [clause for clause in clauses if isinstance(clause, ast.Traversal)]
    expansions = expand(traversals, bindings, scope)
    bound = [_binding(written, node, scope) for written, node in zip(bindings, nodes, strict=True)]
    filters = [_filter(clause, scope) for clause in clauses if isinstance(clause, ast.Filter | ast.TextMatch)]
    negations = [_negation(clause, scope) for clause in clauses if isinstance(clause, ast.Negation)]
    return Pattern(scope.variables(), tuple(bound), tuple(expansions), tuple(filters), tuple(negations))


def _filter(clause: ast.Filter | ast.TextMatch, scope: Scope) -> Comparison | TextSearch:
    if isinstance(clause, ast.Filter):
        return comparison(clause, scope)
    found = search_function(clause.call, scope)
    assert isinstance(found, TextSearch), "the parser lets no other function stand alone"
    return found


def _negation(clause: ast.Negation, scope: Scope) -> Negation:
    outer = sorted({name for name in _mentions(clause.clauses) if scope.find(name) is not None})
    if not outer:
        seen = sorted(scope.names())[:_SHOWN_MAX]
        hint = f"Outside are: {', '.join(f'${name}' for name in seen)}." if seen else ""
        raise type_error("T9", "a not block mentions at least one variable from outside", clause.at, hint)
    return Negation(check_pattern(clause.clauses, scope.inner()), tuple(outer))


def _mentions(clauses: Sequence[ast.Clause]) -> Iterator[str]:
    for clause in clauses:
        match clause:
            case ast.Negation():
                yield from _mentions(clause.clauses)
            case ast.Binding():
                yield clause.variable.name
            case ast.Traversal():
                yield from (clause.left.name, clause.right.name)
            case ast.Filter():
                yield from _mentioned_in(clause.left)
                yield from _mentioned_in(clause.right)
            case ast.TextMatch():
                yield from _mentioned_in(clause.call)


def _mentioned_in(expr: ast.Expr) -> Iterator[str]:
    match expr:
        case ast.Var():
            yield expr.name
        case ast.PropertyRef():
            yield expr.variable
        case ast.Call():
            for arg in expr.args:
                yield from _mentioned_in(arg)
        case _:
            return


def _binding(written: ast.Binding, node: NodeType, scope: Scope) -> NodeBinding:
    matches = tuple(_property_match(entry, node, scope) for entry in written.properties)
    return NodeBinding(written.variable.name, node, matches)


def _property_match(entry: ast.Assignment, node: NodeType, scope: Scope) -> PropertyMatch:
    type_ = STRING
    if entry.name != "id":
        known = node.find_property(entry.name)
        if known is None:
            names = [*(other.name for other in node.properties), "id"]
            text = f"node type {node.name} has no property '{entry.name}'"
            raise type_error("T2", text, entry.at, known_names(entry.name, names, "It has"))
        type_ = known.type
    place = f"property '{node.name}.{entry.name}'"
    if isinstance(entry.value, ast.Var) and entry.value.name in scope.params:
        scope.resolve(entry.value)
    if type_.is_blob:
        raise type_error("T3", f"{place} is a Blob and cannot be matched", entry.at)
    if type_.is_vector:
        raise type_error("T3", f"{place} is a Vector and cannot be matched", entry.at, "Order by nearest(…).")
    if type_.is_list:
        return PropertyMatch(entry.name, type_, Comparator.MEMBER, _member(entry, type_, place, scope))
    return PropertyMatch(entry.name, type_, Comparator.EQ, matched_operand(entry.value, type_, place, scope))


def _member(entry: ast.Assignment, type_: PropertyType, place: str, scope: Scope) -> Operand:
    """A list property in a binding asks whether one value is in the list."""
    hint = "Give one value; it matches where the list contains it."
    element = PropertyType(type_.scalar)
    if isinstance(entry.value, ast.ListLiteral):
        raise type_error("T3", f"{place}: list equality is not supported", entry.value.at, hint)
    if isinstance(entry.value, ast.Var) and entry.value.name in scope.params:
        given = Parameter(entry.value.name, scope.params[entry.value.name])
        if given.type.is_list:
            raise type_error("T3", f"{place}: list equality is not supported", entry.value.at, hint)
    return matched_operand(entry.value, element, place, scope)
