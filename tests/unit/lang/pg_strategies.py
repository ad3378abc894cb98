"""Generates syntax trees that the grammar can say; they need not make sense as a schema."""

from __future__ import annotations

import string

from hypothesis import strategies as st

from omnigraph.lang.pg.ast import (
    Annotation,
    Arg,
    Bound,
    Card,
    Constraint,
    EdgeDecl,
    Ident,
    InterfaceDecl,
    Keyword,
    Literal,
    LiteralKind,
    NodeDecl,
    PropertyDecl,
    SchemaAst,
    TypeExpr,
    TypeForm,
    TypeRef,
)
from omnigraph.lang.pg.lexer import BASE_TYPES, KEYWORDS

_TAIL = string.ascii_letters + string.digits + "_"
_CONSTRAINTS = ("key", "unique", "index", "range", "check")

type_names = st.builds(str.__add__, st.sampled_from(string.ascii_uppercase), st.text(_TAIL, max_size=5))
words = st.one_of(
    st.sampled_from(KEYWORDS),
    st.builds(str.__add__, st.sampled_from(string.ascii_lowercase + "_"), st.text(_TAIL, max_size=5)),
).filter(lambda word: word not in ("true", "false"))
names = st.one_of(words, st.sampled_from(["true", "false"]))

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
integers = st.builds(Literal, st.just(LiteralKind.INTEGER), st.integers(-(2**63), 2**64 - 1))
floats = st.builds(Literal, st.just(LiteralKind.FLOAT), st.floats(allow_nan=False, allow_infinity=False))
literals = st.one_of(
    st.builds(Literal, st.just(LiteralKind.STRING), texts),
    st.builds(Literal, st.just(LiteralKind.BOOL), st.booleans()),
    integers,
    floats,
)
idents = st.builds(Ident, words)
numbers = st.one_of(integers, floats)
bounds = st.one_of(
    st.builds(Bound, numbers, numbers), st.builds(Bound, numbers, st.none()), st.builds(Bound, st.none(), numbers)
)
keywords = st.lists(st.builds(Keyword, words, literals), max_size=2, unique_by=lambda k: k.name).map(tuple)


def _annotations(forbidden: tuple[str, ...]) -> st.SearchStrategy[tuple[Annotation, ...]]:
    free = names.filter(lambda name: name not in forbidden)
    bare = st.builds(Annotation, free)
    full = st.builds(Annotation, free.filter(lambda n: n not in _CONSTRAINTS), st.one_of(literals, idents), keywords)
    return st.lists(st.one_of(bare, full), max_size=3).map(tuple)


types = st.one_of(
    st.builds(
        TypeExpr, st.sampled_from([TypeForm.SCALAR, TypeForm.LIST]), st.sampled_from(BASE_TYPES), nullable=st.booleans()
    ),
    st.builds(
        TypeExpr,
        st.just(TypeForm.ENUM),
        values=st.lists(st.text(_TAIL + "-", min_size=1, max_size=4), min_size=1, max_size=3).map(tuple),
        nullable=st.booleans(),
    ),
    st.builds(TypeExpr, st.just(TypeForm.VECTOR), dimension=st.integers(1, 2**31 - 1), nullable=st.booleans()),
)
properties = st.lists(st.builds(PropertyDecl, names, types, _annotations(("card", "range", "check"))), max_size=3).map(
    tuple
)
args: st.SearchStrategy[Arg] = st.one_of(literals, idents, bounds)
constraints = st.lists(
    st.builds(Constraint, st.sampled_from(_CONSTRAINTS), st.lists(args, min_size=1, max_size=3).map(tuple)), max_size=2
).map(tuple)
headers = _annotations((*_CONSTRAINTS, "embed", "card"))
refs = st.builds(TypeRef, type_names)
cards = st.builds(
    lambda low, more: Card(low, None if more is None else low + more), st.integers(0, 9), st.none() | st.integers(0, 9)
)
declarations = st.one_of(
    st.builds(InterfaceDecl, type_names, properties),
    st.builds(NodeDecl, type_names, headers, st.lists(refs, max_size=2).map(tuple), properties, constraints),
    st.builds(EdgeDecl, type_names, refs, refs, st.none() | cards, headers, properties, constraints),
)
schemas = st.builds(SchemaAst, st.lists(declarations, max_size=4).map(tuple))
