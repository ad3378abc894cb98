"""Writes a syntax tree as schema text; reading that text gives the same tree.

Comments and the order of properties among constraints are not part of the tree, so they are not written.
"""

from __future__ import annotations

from decimal import Decimal
from typing import assert_never

from omnigraph.lang.pg.ast import (
    Annotation,
    Arg,
    Bound,
    Constraint,
    Declaration,
    EdgeDecl,
    Ident,
    InterfaceDecl,
    Literal,
    NodeDecl,
    PropertyDecl,
    SchemaAst,
    TypeExpr,
    TypeForm,
)

_ESCAPES = str.maketrans({'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def print_schema(ast: SchemaAst) -> str:
    """The schema in canonical layout, one declaration after the other, ending with a line break."""
    return "\n".join(_declaration(declaration) for declaration in ast.declarations)


def print_annotation(annotation: Annotation) -> str:
    """`@name` with its arguments."""
    if annotation.value is None:
        return f"@{annotation.name}"
    return f"@{annotation.name}({print_arguments(annotation)})"


def print_arguments(annotation: Annotation) -> str:
    """What stands between the parentheses; empty without any."""
    if annotation.value is None:
        return ""
    keywords = [f"{keyword.name}={print_arg(keyword.value)}" for keyword in annotation.keywords]
    return ", ".join([print_arg(annotation.value), *keywords])


def print_arg(arg: Arg) -> str:
    match arg:
        case Ident(text=text):
            return text
        case Bound(lo=lo, hi=hi):
            return f"{'' if lo is None else print_arg(lo)}..{'' if hi is None else print_arg(hi)}"
        case Literal(value=value):
            return print_value(value)
        case _:
            assert_never(arg)


def print_value(value: str | int | float | bool) -> str:
    """A literal as the language writes it: no exponents, escaped strings."""
    if isinstance(value, str):
        return f'"{value.translate(_ESCAPES)}"'
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    digits = format(Decimal(repr(value)), "f")
    return digits if "." in digits else f"{digits}.0"


def _declaration(declaration: Declaration) -> str:
    match declaration:
        case InterfaceDecl():
            return _with_body(f"interface {declaration.name}", declaration.properties, ())
        case NodeDecl():
            head = " ".join([f"node {declaration.name}", *map(print_annotation, declaration.annotations)])
            if declaration.implements:
                head += " implements " + ", ".join(ref.name for ref in declaration.implements)
            return _with_body(head, declaration.properties, declaration.constraints)
        case EdgeDecl():
            head = f"edge {declaration.name}: {declaration.source.name} -> {declaration.target.name}"
            if declaration.card is not None:
                high = "" if declaration.card.max is None else declaration.card.max
                head += f" @card({declaration.card.min}..{high})"
            head = " ".join([head, *map(print_annotation, declaration.annotations)])
            if not declaration.properties and not declaration.constraints:
                return f"{head}\n"
            return _with_body(head, declaration.properties, declaration.constraints)
        case _:
            assert_never(declaration)


def _with_body(head: str, properties: tuple[PropertyDecl, ...], constraints: tuple[Constraint, ...]) -> str:
    lines = [*map(_property, properties), *map(_constraint, constraints)]
    if not lines:
        return f"{head} {{}}\n"
    return f"{head} {{\n" + "".join(f"  {line}\n" for line in lines) + "}\n"


def _property(declaration: PropertyDecl) -> str:
    head = f"{declaration.name}: {print_type(declaration.type)}"
    return " ".join([head, *map(print_annotation, declaration.annotations)])


def print_type(type_: TypeExpr) -> str:
    match type_.form:
        case TypeForm.SCALAR:
            core = type_.base
        case TypeForm.LIST:
            core = f"[{type_.base}]"
        case TypeForm.ENUM:
            core = f"enum({', '.join(type_.values)})"
        case TypeForm.VECTOR:
            core = f"Vector({type_.dimension})"
        case _:
            assert_never(type_.form)
    return f"{core}?" if type_.nullable else core


def _constraint(constraint: Constraint) -> str:
    return f"@{constraint.name}({', '.join(map(print_arg, constraint.args))})"
