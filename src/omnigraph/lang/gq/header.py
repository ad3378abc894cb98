"""What stands before the body of a query: its parameters and annotations.

Holds at every return: parameters have unique names, none reserved, and types that exist; annotations are known and
said once.
"""

from __future__ import annotations

from collections.abc import Sequence

from lark import Token

from omnigraph.lang.diagnostics import did_you_mean, parse_error
from omnigraph.lang.gq import ast
from omnigraph.lang.gq.rules import refuse_mixed
from omnigraph.lang.habits import meant_type
from omnigraph.lang.pg.assemble import VECTOR_DIMENSION_MAX
from omnigraph.lang.pg.ast import TypeExpr, TypeForm
from omnigraph.lang.pg.lexer import BASE_TYPES
from omnigraph.lang.source import place

RESERVED_PREFIX = "__"
_ANNOTATIONS = ("description", "instruction", "exact")
_Annotation = tuple[Token, Token, Token | None]


def assemble_query(
    name: Token, params: tuple[ast.Param, ...], annotations: Sequence[_Annotation], body: ast.Read | ast.Mutation
) -> ast.Query:
    _refuse_bad_names(params)
    texts = _texts(annotations)
    if isinstance(body, ast.Mutation):
        if "exact" in texts:
            mark = next(mark for mark, word, _ in annotations if word == "exact")
            raise parse_error("@exact is not supported on a mutation", place(mark), "It is about nearest in a read.")
        refuse_mixed(body.statements)
    said = texts.get("description"), texts.get("instruction"), "exact" in texts
    return ast.Query(str(name), params, body, *said, place(name))


def parameter_type(form: TypeForm, word: Token, size: Token | None = None) -> TypeExpr:
    """The type of a parameter as written, without its question mark."""
    at = place(word)
    if form is TypeForm.VECTOR:
        assert size is not None
        return TypeExpr(form, dimension=_dimension(word, size), at=at)
    if word == "Vector":
        raise parse_error("Vector requires a dimension", at, "Write Vector(N); there are no lists of vectors.")
    if word not in BASE_TYPES:
        raise parse_error(f"unknown parameter type '{word}'", at, meant_type(word, BASE_TYPES))
    if form is TypeForm.LIST and word == "Blob":
        raise parse_error("Blob is not supported as a list element", at)
    return TypeExpr(form, base=str(word), at=at)


def _dimension(word: Token, size: Token) -> int:
    if word != "Vector":
        raise parse_error(f"type '{word}' takes no dimension", place(word), did_you_mean(word, ["Vector"]))
    if int(size) < 1:
        raise parse_error("Vector dimension must be greater than zero", place(size))
    if int(size) > VECTOR_DIMENSION_MAX:
        raise parse_error(f"Vector dimension must be at most {VECTOR_DIMENSION_MAX}", place(size))
    return int(size)


def _refuse_bad_names(params: tuple[ast.Param, ...]) -> None:
    seen: set[str] = set()
    for param in params:
        if param.name.startswith(RESERVED_PREFIX):
            text = f"parameter name '{param.name}' is reserved"
            raise parse_error(text, param.at, f"Names beginning with {RESERVED_PREFIX} are kept for the engine.")
        if param.name == "_":
            raise parse_error("'$_' binds nothing and is no parameter", param.at, "Give the parameter a name.")
        if param.name in seen:
            raise parse_error(f"duplicate parameter '{param.name}'", param.at)
        seen.add(param.name)


def _texts(annotations: Sequence[_Annotation]) -> dict[str, str]:
    texts: dict[str, str] = {}
    for mark, word, text in annotations:
        name = str(word)
        if name not in _ANNOTATIONS:
            hint = did_you_mean(name, _ANNOTATIONS) or f"A query takes @{', @'.join(_ANNOTATIONS)}."
            raise parse_error(f"unknown query annotation '@{name}'", place(mark), hint)
        if name in texts:
            raise parse_error(f"@{name} is repeated", place(mark))
        if name == "exact" and text is not None:
            raise parse_error("@exact takes no argument", place(mark))
        if name != "exact" and not text:
            raise parse_error(f"@{name} requires a non-empty text", place(mark), f'Write @{name}("…").')
        texts[name] = "" if text is None else str(text)
    return texts
