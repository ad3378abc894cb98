"""Builds syntax-tree nodes while lark recognises them, and refuses what the grammar alone cannot.

Holds at every return:
  1. A call names a known function and has as many arguments as it takes.
  2. Where only a value may stand, a value stands; a list holds literals.
  3. A query says each annotation once; `@exact` and rule D2 were looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from lark import Token, Transformer

from omnigraph.lang.diagnostics import did_you_mean, parse_error
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.ast import Function, LiteralKind
from omnigraph.lang.gq.header import assemble_query, parameter_type
from omnigraph.lang.pg.ast import TypeExpr, TypeForm, TypeRef
from omnigraph.lang.source import place

_ARGUMENTS = {function: (1, 1) if function in ast.AGGREGATES else (2, 2) for function in Function}
_ARGUMENTS |= {Function.FUZZY: (2, 3), Function.RRF: (2, 3)}
_CLAUSES = (Function.SEARCH, Function.FUZZY, Function.MATCH_TEXT)
_CALLED = ("now", "date", "datetime", *(function.value for function in Function))
_MOMENTS = {"date": LiteralKind.DATE, "datetime": LiteralKind.DATETIME}
_VALUE = "expected a literal, a parameter or now()"


class Assembler(Transformer[Token, ast.QueryFile]):
    """One method per grammar rule; lark calls it with the finished parts."""

    def start(self, parts: list[ast.Query]) -> ast.QueryFile:
        seen: set[str] = set()
        for query in parts:
            if query.name in seen:
                raise parse_error(f"duplicate query name '{query.name}'", query.at, "Give each query its own name.")
            seen.add(query.name)
        return ast.QueryFile(tuple(parts))

    def query(self, parts: list[Any]) -> ast.Query:
        _, name, params, annotations, body = parts
        return assemble_query(name, params, annotations, body)

    def params(self, parts: list[ast.Param | None]) -> tuple[ast.Param, ...]:
        return tuple(part for part in parts if part is not None)

    def param(self, parts: list[Any]) -> ast.Param:
        name, type_, question = parts
        return ast.Param(name[1:], replace(type_, nullable=question is not None), place(name))

    def scalar(self, parts: list[Token]) -> TypeExpr:
        return parameter_type(TypeForm.SCALAR, parts[0])

    def list_of(self, parts: list[Token]) -> TypeExpr:
        return parameter_type(TypeForm.LIST, parts[1])

    def vector(self, parts: list[Token]) -> TypeExpr:
        return parameter_type(TypeForm.VECTOR, parts[0], parts[1])

    def annotations(self, parts: list[Any]) -> list[Any]:
        return parts

    def annotation(self, parts: list[Any]) -> tuple[Token, Token, Token | None]:
        mark, name, text = parts
        return mark, name, text

    def read(self, parts: list[Any]) -> ast.Read:
        clauses = tuple(parts[1:-3])
        returns, order, limit = parts[-3:]
        return ast.Read(clauses, returns, order or (), limit)

    def returns(self, parts: list[Any]) -> tuple[ast.Projection, ...]:
        return tuple(parts[1:])

    def projection(self, parts: list[Any]) -> ast.Projection:
        expr, alias = parts
        if alias is None:
            return ast.Projection(expr, at=expr.at)
        return ast.Projection(expr, str(alias), expr.at, place(alias))

    def alias(self, parts: list[Token]) -> Token:
        return parts[1]

    def order(self, parts: list[Any]) -> tuple[ast.OrderKey, ...]:
        return tuple(parts[1:])

    def order_key(self, parts: list[Any]) -> ast.OrderKey:
        expr, direction = parts
        if direction is not None and isinstance(expr, ast.Call) and expr.function is Function.NEAREST:
            text = f"nearest takes no '{direction}'"
            raise parse_error(text, place(direction), "It orders by distance, nearest first.")
        return ast.OrderKey(expr, direction == "desc", expr.at)

    def limit(self, parts: list[Token]) -> int:
        if int(parts[1]) < 0:
            raise parse_error("limit must not be negative", place(parts[1]))
        return int(parts[1])

    def negation(self, parts: list[Any]) -> ast.Negation:
        return ast.Negation(tuple(parts[1:]), place(parts[0]))

    def binding(self, parts: list[Any]) -> ast.Binding:
        variable, type_, matches = parts
        return ast.Binding(_var(variable), _type(type_), matches or (), place(variable))

    def matches(self, parts: list[ast.Assignment]) -> tuple[ast.Assignment, ...]:
        return tuple(parts)

    def traversal(self, parts: list[Any]) -> ast.Traversal:
        left, edge, hops, right = parts
        return ast.Traversal(_var(left), edge, _var(right), None, hops, place(left))

    def operator_traversal(self, parts: list[Any]) -> ast.Traversal:
        left, edge, hops, right = parts
        return ast.Traversal(_var(left), _edge(edge, False, edge), _var(right), None, hops, place(left))

    def named_traversal(self, parts: list[Any]) -> ast.Traversal:
        left, named, edge, hops, right = parts
        return ast.Traversal(_var(left), edge, _var(right), _var(named), hops, place(left))

    def directed(self, parts: list[Token]) -> ast.EdgeRef:
        return _edge(parts[0], False, parts[0])

    def undirected(self, parts: list[Token]) -> ast.EdgeRef:
        return _edge(parts[1], True, parts[0])

    def hops(self, parts: list[Token | None]) -> ast.Hops:
        low, high = parts
        assert low is not None
        return ast.Hops(int(low), None if high is None else int(high), place(low))

    def filter(self, parts: list[Any]) -> ast.Filter:
        left, op, right = parts
        operand = _var(left) if isinstance(left, Token) else left
        return ast.Filter(operand, ast.Op(str(op)), right, operand.at)

    def text_match(self, parts: list[Any]) -> ast.TextMatch:
        call = parts[0]
        if not isinstance(call, ast.Call):
            raise parse_error("a value alone is no clause", call.at, "Compare it with something.")
        if call.function not in _CLAUSES:
            text = f"{call.function.value} is no clause of a match"
            raise parse_error(text, call.at, f"{_sentence(_CLAUSES)} are; others belong into return or order.")
        return ast.TextMatch(call, call.at)

    def property_ref(self, parts: list[Token]) -> ast.PropertyRef:
        variable, _, name = parts
        return ast.PropertyRef(variable[1:], str(name), place(variable), place(name))

    def var(self, parts: list[Token]) -> ast.Var:
        return _var(parts[0])

    def ident(self, parts: list[Token]) -> ast.Ident:
        return ast.Ident(str(parts[0]), place(parts[0]))

    def call(self, parts: list[Any]) -> ast.Call | ast.Now | ast.Literal:
        word, *given = parts
        args = tuple(arg for arg in given if arg is not None)
        if word == "now":
            _refuse_count(word, len(args), (0, 0))
            return ast.Now(place(word))
        if word in _MOMENTS:
            return _moment(word, args)
        try:
            function = Function(str(word))
        except ValueError:
            raise parse_error(f"unknown function '{word}'", place(word), did_you_mean(word, _CALLED)) from None
        _refuse_count(word, len(args), _ARGUMENTS[function])
        return ast.Call(function, args, place(word))

    def list_literal(self, parts: list[Any]) -> ast.ListLiteral:
        bracket, *items = parts
        given = [item for item in items if item is not None]
        for item in given:
            if not isinstance(item, ast.Literal | ast.ListLiteral):
                hint = "Declare a list parameter to pass values in."
                raise parse_error("a list literal holds only literals", item.at, hint)
        return ast.ListLiteral(tuple(given), place(bracket))

    def literal(self, parts: list[Token]) -> ast.Literal:
        token = parts[0]
        kind, convert = _LITERALS[token.type]
        return ast.Literal(kind, convert(token), place(token))

    def mutation(self, parts: list[ast.Statement]) -> ast.Mutation:
        return ast.Mutation(tuple(parts))

    def insert(self, parts: list[Any]) -> ast.Insert:
        word, type_, assignments = parts
        return ast.Insert(_type(type_), assignments, place(word))

    def update(self, parts: list[Any]) -> ast.Update:
        word, type_, _, assignments, _, where = parts
        return ast.Update(_type(type_), assignments, where, place(word))

    def delete(self, parts: list[Any]) -> ast.Delete:
        word, type_, _, where = parts
        return ast.Delete(_type(type_), where, place(word))

    def assignments(self, parts: list[ast.Assignment | None]) -> tuple[ast.Assignment, ...]:
        return tuple(part for part in parts if part is not None)

    def assignment(self, parts: list[Any]) -> ast.Assignment:
        return ast.Assignment(str(parts[0]), _value(parts[1]), place(parts[0]))

    def predicates(self, parts: list[Any]) -> tuple[ast.Predicate, ...]:
        return tuple(part for part in parts if isinstance(part, ast.Predicate))

    def predicate(self, parts: list[Any]) -> ast.Predicate:
        name, op, value = parts
        return ast.Predicate(str(name), ast.Op(str(op)), _value(value), place(name))


_LITERALS: dict[str, tuple[LiteralKind, Callable[[Token], str | int | float | bool | None]]] = {
    "STRING": (LiteralKind.STRING, str),
    "BOOL": (LiteralKind.BOOL, lambda token: token == "true"),
    "INT": (LiteralKind.INTEGER, int),
    "FLOAT": (LiteralKind.FLOAT, float),
    "NULL": (LiteralKind.NULL, lambda token: None),
}


def _var(token: Token) -> ast.Var:
    return ast.Var(token[1:], place(token))


def _type(token: Token) -> TypeRef:
    return TypeRef(str(token), place(token))


def _edge(name: Token, undirected: bool, first: Token) -> ast.EdgeRef:
    return ast.EdgeRef(str(name), undirected, place(first))


def _value(part: ast.Expr) -> ast.Value:
    if isinstance(part, ast.Ident):
        raise parse_error(f"unexpected '{part.text}', {_VALUE}", part.at, f'A text is quoted: "{part.text}".')
    if isinstance(part, ast.PropertyRef | ast.Call):
        raise parse_error(f"unexpected '{_written(part)}', {_VALUE}", part.at)
    return part


def _written(part: ast.PropertyRef | ast.Call) -> str:
    return f"{part.function.value}(…)" if isinstance(part, ast.Call) else f"${part.variable}.{part.name}"


def _moment(word: Token, args: Sequence[ast.Expr]) -> ast.Literal:
    _refuse_count(word, len(args), (1, 1))
    text = args[0]
    if not isinstance(text, ast.Literal) or text.kind is not LiteralKind.STRING:
        example = "2024-01-31" if word == "date" else "2024-01-31T12:00:00Z"
        raise parse_error(f"{word} takes a text", text.at, f'Write {word}("{example}").')
    return ast.Literal(_MOMENTS[str(word)], text.value, place(word))


def _refuse_count(word: Token, given: int, allowed: tuple[int, int]) -> None:
    low, high = allowed
    if not low <= given <= high:
        takes = f"{low}" if low == high else f"{low} or {high}"
        plural = "" if takes == "1" else "s"
        raise parse_error(f"{word} takes {takes} argument{plural}, got {given}", place(word))


def _sentence(functions: Sequence[Function]) -> str:
    names = [function.value for function in functions]
    return f"{', '.join(names[:-1])} and {names[-1]}"
