"""Builds syntax-tree nodes while lark recognises them, and tells apart what shares one written form.

Holds at every return:
  1. `@name(…)` became an annotation, a body constraint or a cardinality, or was refused with its position.
  2. An annotation belongs to the property directly before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from lark import Token, Transformer

from omnigraph.lang.diagnostics import Position, did_you_mean, parse_error
from omnigraph.lang.habits import meant_type
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
from omnigraph.lang.pg.lexer import BASE_TYPES

CONSTRAINTS = ("key", "unique", "index", "range", "check")
VECTOR_DIMENSION_MAX = 2_147_483_647


@dataclass(frozen=True)
class _At:
    """`@name` or `@name(args)` before it is known what it is."""

    name: str
    args: tuple[Arg | Keyword, ...] | None
    at: Position


def _place(token: Token) -> Position:
    return Position(token.line or 1, token.column or 1)


class Assembler(Transformer[Token, SchemaAst]):
    """One method per grammar rule; lark calls it with the finished parts."""

    def start(self, parts: list[Any]) -> SchemaAst:
        return SchemaAst(tuple(parts))

    def interface(self, parts: list[Any]) -> InterfaceDecl:
        _, name, *items = parts
        properties, constraints = _body(items)
        if constraints:
            text = f"@{constraints[0].name} constraint is not supported in an interface"
            raise parse_error(
                text, constraints[0].at, "Put the annotation after the property, or the constraint in nodes."
            )
        return InterfaceDecl(str(name), properties, _place(name))

    def node(self, parts: list[Any]) -> NodeDecl:
        _, name, *rest = parts
        split = next(i for i, part in enumerate(rest) if part is None or isinstance(part, tuple))
        properties, constraints = _body(rest[split + 1 :])
        annotations = tuple(_type_annotation(at) for at in rest[:split])
        return NodeDecl(str(name), annotations, rest[split] or (), properties, constraints, _place(name))

    def implements(self, parts: list[Any]) -> tuple[TypeRef, ...]:
        return tuple(TypeRef(str(name), _place(name)) for name in parts[1:])

    def edge(self, parts: list[Any]) -> EdgeDecl:
        _, name, source, target, header, body = parts
        card = None
        if header and header[0].name == "card":
            card, header = _card(header[0]), header[1:]
        properties, constraints = _body(body)
        annotations = tuple(_type_annotation(at) for at in header)
        ends = TypeRef(str(source), _place(source)), TypeRef(str(target), _place(target))
        return EdgeDecl(str(name), *ends, card, annotations, properties, constraints, _place(name))

    def header(self, parts: list[_At]) -> list[_At]:
        return parts

    def body(self, parts: list[Any]) -> list[Any]:
        return parts

    def property(self, parts: list[Any]) -> PropertyDecl:
        name, core, question = parts
        return PropertyDecl(str(name), replace(core, nullable=question is not None), (), _place(name))

    def scalar(self, parts: list[Token]) -> TypeExpr:
        return TypeExpr(TypeForm.SCALAR, base=_base(parts[0]), at=_place(parts[0]))

    def list_of(self, parts: list[Token]) -> TypeExpr:
        return TypeExpr(TypeForm.LIST, base=_base(parts[0]), at=_place(parts[0]))

    def vector(self, parts: list[Token]) -> TypeExpr:
        word, size = parts
        if word != "Vector":
            raise parse_error(f"type '{word}' takes no dimension", _place(word), did_you_mean(word, ["Vector"]))
        dimension = int(size)
        if dimension < 1:
            raise parse_error("Vector dimension must be greater than zero", _place(size))
        if dimension > VECTOR_DIMENSION_MAX:
            raise parse_error(f"Vector dimension must be at most {VECTOR_DIMENSION_MAX}", _place(size))
        return TypeExpr(TypeForm.VECTOR, dimension=dimension, at=_place(word))

    def enum(self, parts: list[Token | None]) -> TypeExpr:
        word, *values = [part for part in parts if part is not None]
        if not values:
            raise parse_error("enum requires at least one value", _place(word))
        return TypeExpr(TypeForm.ENUM, values=tuple(str(value) for value in values), at=_place(word))

    def at(self, parts: list[Any]) -> _At:
        mark, name, args = parts
        return _At(str(name), args, _place(mark))

    def args(self, parts: list[Any]) -> tuple[Arg | Keyword, ...]:
        return tuple(part for part in parts if part is not None)

    def keyword(self, parts: list[Any]) -> Keyword:
        return Keyword(str(parts[0]), parts[1], _place(parts[0]))

    def between(self, parts: list[Literal]) -> Bound:
        return Bound(parts[0], parts[1], parts[0].at)

    def at_least(self, parts: list[Literal]) -> Bound:
        return Bound(parts[0], None, parts[0].at)

    def at_most(self, parts: list[Literal]) -> Bound:
        return Bound(None, parts[0], parts[0].at)

    def literal(self, parts: list[Token]) -> Literal:
        token = parts[0]
        match token.type:
            case "STRING":
                return Literal(LiteralKind.STRING, str(token), _place(token))
            case "BOOL":
                return Literal(LiteralKind.BOOL, token == "true", _place(token))
            case "INT":
                return Literal(LiteralKind.INTEGER, int(token), _place(token))
            case _:
                return Literal(LiteralKind.FLOAT, float(token), _place(token))

    number = literal

    def ident(self, parts: list[Token]) -> Ident:
        return Ident(str(parts[0]), _place(parts[0]))


def _base(word: Token) -> str:
    if word in BASE_TYPES:
        return str(word)
    if word == "Vector":
        raise parse_error("Vector requires a dimension", _place(word), "Write Vector(N).")
    raise parse_error(f"unknown property type '{word}'", _place(word), meant_type(word, BASE_TYPES))


def _body(items: Sequence[PropertyDecl | _At]) -> tuple[tuple[PropertyDecl, ...], tuple[Constraint, ...]]:
    properties: list[tuple[PropertyDecl, list[Annotation]]] = []
    constraints: list[Constraint] = []
    open_property = False
    for item in items:
        if isinstance(item, PropertyDecl):
            properties.append((item, []))
            open_property = True
        elif item.name in CONSTRAINTS and item.args is not None:
            constraints.append(_constraint(item))
            open_property = False
        elif open_property:
            properties[-1][1].append(_annotation(item))
        else:
            text = f"annotation @{item.name} does not follow a property"
            raise parse_error(text, item.at, "Write it directly after the property, before any constraint.")
    decided = tuple(replace(decl, annotations=tuple(annotations)) for decl, annotations in properties)
    return decided, tuple(constraints)


def _constraint(item: _At) -> Constraint:
    args: list[Arg] = []
    for arg in item.args or ():
        if isinstance(arg, Keyword):
            raise parse_error(f"@{item.name} takes no keyword '{arg.name}'", arg.at)
        args.append(arg)
    if not args:
        raise parse_error(f"@{item.name} requires at least one property name", item.at)
    return Constraint(item.name, tuple(args), item.at)


def _type_annotation(item: _At) -> Annotation:
    if item.name in (*CONSTRAINTS, "embed"):
        text = f"@{item.name} is not supported as a type-level annotation"
        raise parse_error(text, item.at, "It belongs to a property, or as a constraint into the body.")
    return _annotation(item)


def _annotation(item: _At) -> Annotation:
    if item.name == "card":
        text = "@card must directly follow the endpoints of an edge"
        raise parse_error(text, item.at, "Write it as: edge E: A -> B @card(0..1).")
    if item.name in ("range", "check"):
        raise parse_error(f"@{item.name} requires at least one property name", item.at)
    if item.args is None:
        return Annotation(item.name, at=item.at)
    value = item.args[0] if item.args else None
    if value is None or isinstance(value, Keyword):
        raise parse_error(f"@{item.name} requires a value before any keyword", item.at)
    keywords: dict[str, Keyword] = {}
    for arg in item.args[1:]:
        if not isinstance(arg, Keyword):
            raise parse_error(f"@{item.name} takes one value, then only name=value", arg.at)
        if arg.name in keywords:
            raise parse_error(f"@{item.name} repeats keyword '{arg.name}'", arg.at)
        keywords[arg.name] = arg
    if isinstance(value, Bound):
        raise parse_error(f"@{item.name} does not take a range", value.at)
    return Annotation(item.name, value, tuple(keywords.values()), item.at)


def _card(item: _At) -> Card:
    form = "@card requires min..max or min.., both integers"
    match item.args:
        case (Bound(lo=Literal() as lo, hi=hi),):
            ends = [end for end in (lo, hi) if end is not None]
            if any(end.kind is not LiteralKind.INTEGER for end in ends):
                raise parse_error(form, item.at)
            low, high = int(lo.value), None if hi is None else int(hi.value)
        case _:
            raise parse_error(form, item.at)
    if low < 0 or (high is not None and high < 0):
        raise parse_error("@card bounds must not be negative", item.at)
    if high is not None and low > high:
        raise parse_error(f"@card min {low} > max {high}", item.at)
    return Card(low, high, item.at)
