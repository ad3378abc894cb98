"""Writes a syntax tree as query text; reading that text gives the same tree.

Comments and the order of annotations are not part of the tree, so they are not written.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import assert_never

from omnigraph.lang.gq.ast import (
    Assignment,
    Binding,
    Call,
    Clause,
    Delete,
    Expr,
    Filter,
    Ident,
    Insert,
    ListLiteral,
    Literal,
    LiteralKind,
    Mutation,
    Negation,
    Now,
    OrderKey,
    Predicate,
    Projection,
    PropertyRef,
    Query,
    QueryFile,
    Read,
    Statement,
    TextMatch,
    Traversal,
    Update,
    Var,
)
from omnigraph.lang.pg.printer import print_type, print_value

_STEP = "  "


def print_queries(tree: QueryFile) -> str:
    """The queries in canonical layout, one after the other, ending with a line break."""
    return "\n".join(print_query(query) for query in tree.queries)


def print_query(query: Query) -> str:
    params = ", ".join(f"${param.name}: {print_type(param.type)}" for param in query.params)
    head = [f"query {query.name}({params})"]
    for name, text in (("description", query.description), ("instruction", query.instruction)):
        if text is not None:
            head.append(f"@{name}({print_value(text)})")
    if query.exact:
        head.append("@exact")
    body = _read(query.body) if isinstance(query.body, Read) else _mutation(query.body)
    return f"{' '.join(head)} {{\n{_indented(body)}}}\n"


def print_expr(expr: Expr) -> str:
    match expr:
        case Literal():
            return _literal(expr)
        case ListLiteral(items=items):
            return f"[{', '.join(map(print_expr, items))}]"
        case Now():
            return "now()"
        case Var(name=name):
            return f"${name}"
        case PropertyRef(variable=variable, name=name):
            return f"${variable}.{name}"
        case Ident(text=text):
            return text
        case Call(function=function, args=args):
            return f"{function.value}({', '.join(map(print_expr, args))})"
        case _:
            assert_never(expr)


def _literal(literal: Literal) -> str:
    value = literal.value
    if value is None:
        return "null"
    if literal.kind in (LiteralKind.DATE, LiteralKind.DATETIME):
        return f"{literal.kind.value}({print_value(value)})"
    return print_value(value)


def _indented(lines: Iterable[str]) -> str:
    return "".join(f"{_STEP}{line}\n" for line in lines)


def _block(head: str, lines: Iterable[str]) -> Iterator[str]:
    yield f"{head} {{"
    for line in lines:
        yield f"{_STEP}{line}"
    yield "}"


def _read(body: Read) -> Iterator[str]:
    yield from _block("match", (line for clause in body.clauses for line in _clause(clause)))
    yield f"return {{ {', '.join(map(_projection, body.projections))} }}"
    if body.order:
        yield f"order {{ {', '.join(map(_order_key, body.order))} }}"
    if body.limit is not None:
        yield f"limit {body.limit}"


def _clause(clause: Clause) -> Iterator[str]:
    match clause:
        case Negation(clauses=clauses):
            yield from _block("not", (line for inner in clauses for line in _clause(inner)))
        case Binding(variable=variable, type=type_, properties=properties):
            matches = f" {{ {', '.join(map(_assignment, properties))} }}" if properties else ""
            yield f"${variable.name}: {type_.name}{matches}"
        case Traversal():
            yield _traversal(clause)
        case Filter(left=left, op=op, right=right):
            yield f"{print_expr(left)} {op.value} {print_expr(right)}"
        case TextMatch(call=call):
            yield print_expr(call)
        case _:
            assert_never(clause)


def _traversal(clause: Traversal) -> str:
    named = "" if clause.edge_variable is None else f"${clause.edge_variable.name}:"
    edge = f"<{clause.edge.name}>" if clause.edge.undirected else clause.edge.name
    hops = ""
    if clause.hops is not None:
        hops = f"{{{clause.hops.min},{'' if clause.hops.max is None else clause.hops.max}}}"
    return f"${clause.left.name} {named}{edge}{hops} ${clause.right.name}"


def _projection(item: Projection) -> str:
    return print_expr(item.expr) if item.alias is None else f"{print_expr(item.expr)} as {item.alias}"


def _order_key(key: OrderKey) -> str:
    return f"{print_expr(key.expr)} desc" if key.descending else print_expr(key.expr)


def _mutation(body: Mutation) -> Iterator[str]:
    for statement in body.statements:
        yield _statement(statement)


def _statement(statement: Statement) -> str:
    match statement:
        case Insert(type=type_, assignments=assignments):
            return f"insert {type_.name} {_assignments(assignments)}"
        case Update(type=type_, assignments=assignments, where=where):
            return f"update {type_.name} set {_assignments(assignments)} where {_predicates(where)}"
        case Delete(type=type_, where=where):
            return f"delete {type_.name} where {_predicates(where)}"
        case _:
            assert_never(statement)


def _assignments(assignments: tuple[Assignment, ...]) -> str:
    return f"{{ {', '.join(map(_assignment, assignments))} }}" if assignments else "{}"


def _assignment(assignment: Assignment) -> str:
    return f"{assignment.name}: {print_expr(assignment.value)}"


def _predicates(where: tuple[Predicate, ...]) -> str:
    return " and ".join(f"{p.name} {p.op.value} {print_expr(p.value)}" for p in where)
