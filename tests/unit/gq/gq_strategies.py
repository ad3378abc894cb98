"""Generates query trees that the grammar can say; they need not make sense for any schema."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from omnigraph.lang.gq import ast
from omnigraph.lang.gq.ast import Function, LiteralKind, Op
from omnigraph.lang.gq.lexer import KEYWORDS
from omnigraph.lang.pg.ast import TypeExpr, TypeForm, TypeRef
from omnigraph.lang.pg.lexer import BASE_TYPES

_TAIL = string.ascii_letters + string.digits + "_"
_CALLED = tuple(function.value for function in Function)
_NOT_EXPRESSIONS = ("not", "as", "asc", "desc", "null", "true", "false", "contains", "starts_with")
_CLAUSE_FUNCTIONS = (Function.SEARCH, Function.FUZZY, Function.MATCH_TEXT)

plain_names = st.builds(str.__add__, st.sampled_from(string.ascii_lowercase + "_"), st.text(_TAIL, max_size=4))
names = st.one_of(
    plain_names, st.sampled_from([*KEYWORDS, *_CALLED, "true", "false", "contains", "starts_with", "now"])
)
type_names = st.builds(str.__add__, st.sampled_from(string.ascii_uppercase), st.text(_TAIL, max_size=4))
refs = st.builds(TypeRef, type_names)
variables = st.builds(ast.Var, names)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)

literals = st.one_of(
    st.builds(ast.Literal, st.just(LiteralKind.STRING), texts),
    st.builds(ast.Literal, st.just(LiteralKind.BOOL), st.booleans()),
    st.builds(ast.Literal, st.just(LiteralKind.INTEGER), st.integers(-(2**63), 2**64 - 1)),
    st.builds(ast.Literal, st.just(LiteralKind.FLOAT), st.floats(allow_nan=False, allow_infinity=False)),
    st.builds(ast.Literal, st.sampled_from([LiteralKind.DATE, LiteralKind.DATETIME]), texts),
    st.just(ast.Literal(LiteralKind.NULL, None)),
)
lists = st.recursive(
    st.builds(ast.ListLiteral, st.lists(literals, max_size=3).map(tuple)),
    lambda inner: st.builds(ast.ListLiteral, st.lists(st.one_of(literals, inner), max_size=2).map(tuple)),
    max_leaves=4,
)
values = st.one_of(literals, lists, st.just(ast.Now()), variables)
property_refs = st.builds(ast.PropertyRef, names, names)
idents = st.builds(ast.Ident, names.filter(lambda name: name not in _NOT_EXPRESSIONS))
leaves = st.one_of(values, property_refs, idents)


def _calls(functions: tuple[Function, ...], args: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Call]:
    def with_args(function: Function) -> st.SearchStrategy[ast.Call]:
        low, high = 2, 2
        if function in ast.AGGREGATES:
            low, high = 1, 1
        elif function in (Function.FUZZY, Function.RRF):
            high = 3
        return st.builds(ast.Call, st.just(function), st.lists(args, min_size=low, max_size=high).map(tuple))

    return st.sampled_from(functions).flatmap(with_args)


exprs: st.SearchStrategy[ast.Expr] = st.recursive(leaves, lambda inner: _calls(tuple(Function), inner), max_leaves=4)


def _is_said_as_filter(clause: ast.Filter) -> bool:
    """`$a contains $b` says a traversal."""
    bare = isinstance(clause.left, ast.Var) and isinstance(clause.right, ast.Var)
    return not (bare and clause.op in ast.WORD_OPS)


assignments = st.builds(ast.Assignment, names, values)
bindings = st.builds(ast.Binding, variables, refs, st.lists(assignments, max_size=2).map(tuple))
hops = st.builds(ast.Hops, st.integers(-3, 9), st.none() | st.integers(-3, 9))
edges = st.builds(ast.EdgeRef, names.filter(lambda name: name != "not"), st.booleans())
traversals = st.builds(ast.Traversal, variables, edges, variables, st.none() | variables, st.none() | hops)
filters = st.builds(ast.Filter, exprs, st.sampled_from(Op), exprs).filter(_is_said_as_filter)
text_matches = st.builds(ast.TextMatch, _calls(_CLAUSE_FUNCTIONS, leaves))
clauses: st.SearchStrategy[ast.Clause] = st.recursive(
    st.one_of(bindings, traversals, filters, text_matches),
    lambda inner: st.builds(ast.Negation, st.lists(inner, min_size=1, max_size=3).map(tuple)),
    max_leaves=4,
)


def _is_said_as_key(key: ast.OrderKey) -> bool:
    nearest = isinstance(key.expr, ast.Call) and key.expr.function is Function.NEAREST
    return not (nearest and key.descending)


projections = st.builds(ast.Projection, exprs, st.none() | names)
order_keys = st.builds(ast.OrderKey, exprs, st.booleans()).filter(_is_said_as_key)
reads = st.builds(
    ast.Read,
    st.lists(clauses, min_size=1, max_size=4).map(tuple),
    st.lists(projections, min_size=1, max_size=3).map(tuple),
    st.lists(order_keys, max_size=2).map(tuple),
    st.none() | st.integers(0, 2**64 - 1),
)
predicates = st.builds(ast.Predicate, names, st.sampled_from([op for op in Op if op not in ast.WORD_OPS]), values)
where = st.lists(predicates, min_size=1, max_size=2).map(tuple)
changes = st.one_of(
    st.builds(ast.Insert, refs, st.lists(assignments, max_size=3).map(tuple)),
    st.builds(ast.Update, refs, st.lists(assignments, max_size=3).map(tuple), where),
)
mutations = st.one_of(
    st.builds(ast.Mutation, st.lists(changes, min_size=1, max_size=3).map(tuple)),
    st.builds(ast.Mutation, st.lists(st.builds(ast.Delete, refs, where), min_size=1, max_size=3).map(tuple)),
)
param_types = st.one_of(
    st.builds(TypeExpr, st.just(TypeForm.SCALAR), st.sampled_from(BASE_TYPES), nullable=st.booleans()),
    st.builds(
        TypeExpr,
        st.just(TypeForm.LIST),
        st.sampled_from([base for base in BASE_TYPES if base != "Blob"]),
        nullable=st.booleans(),
    ),
    st.builds(TypeExpr, st.just(TypeForm.VECTOR), dimension=st.integers(1, 2**31 - 1), nullable=st.booleans()),
)
param_names = names.filter(lambda name: name != "_" and not name.startswith("__"))
params = st.lists(st.builds(ast.Param, param_names, param_types), max_size=3, unique_by=lambda p: p.name).map(tuple)
notes = st.none() | texts.filter(bool)
queries = st.one_of(
    st.builds(ast.Query, names, params, reads, notes, notes, st.booleans()),
    st.builds(ast.Query, names, params, mutations, notes, notes),
)
files = st.builds(ast.QueryFile, st.lists(queries, max_size=3, unique_by=lambda q: q.name).map(tuple))
