"""Turns a schema text into its syntax tree.

Holds for every text:
  1. The answer is a SchemaAst or a ParseError with line and column; no other error leaves this file.
  2. `@key @unique @index @range @check` followed by `(` is a body constraint wherever it stands.
  3. What the tree says is what the grammar allows; whether it makes sense is decided by the catalog.
"""

from __future__ import annotations

from functools import cache

from lark import Lark
from lark.exceptions import UnexpectedToken

from omnigraph.base.errors import ParseError
from omnigraph.lang.diagnostics import Position, parse_error
from omnigraph.lang.grammars import parsed, parser_of
from omnigraph.lang.habits import SCHEMA_HABITS, hinted
from omnigraph.lang.pg.assemble import Assembler
from omnigraph.lang.pg.ast import SchemaAst
from omnigraph.lang.pg.lexer import PgLexer
from omnigraph.lang.source import position_of, refuse_unreadable

_SAID = {
    "_LBRACE": "'{'", "_RBRACE": "'}'", "_LPAREN": "'('", "_RPAREN": "')'", "_LBRACKET": "'['", "_RBRACKET": "']'",
    "_COLON": "':'", "_COMMA": "','", "_ARROW": "'->'", "_DOTDOT": "'..'", "_EQUALS": "'='", "AT": "'@'",
    "QUESTION": "'?'", "INTERFACE": "'interface'", "NODE": "'node'", "EDGE": "'edge'", "IMPLEMENTS": "'implements'",
    "ENUM": "'enum'", "BOOL": "true or false", "TYPENAME": "a type name", "IDENT": "a name", "ENUMVAL": "an enum value",
    "STRING": "a string", "INT": "an integer", "FLOAT": "a number", "$END": "the end of the file",
}  # fmt: skip


def parse_schema(text: str, file: str | None = None) -> SchemaAst:
    """The syntax tree of a whole `.pg` text; `file` only names the place in errors."""
    try:
        refuse_unreadable(text, "schema")
        declarations = _parse(text)
    except ParseError as error:
        error.file = file
        raise hinted(error, text, SCHEMA_HABITS) from None
    return SchemaAst(declarations.declarations, file)


def _parse(text: str) -> SchemaAst:
    return parsed(_grammar(), text, SchemaAst, _explain)


@cache
def _grammar() -> Lark:
    return parser_of("omnigraph.lang.pg", PgLexer, Assembler())


def _explain(unexpected: UnexpectedToken, text: str) -> ParseError:
    wanted = _wanted(set(unexpected.accepts or unexpected.expected))
    token = unexpected.token
    if token.type == "$END":
        return parse_error(f"unexpected end of file, expected {wanted}", position_of(text, len(text)))
    shown = str(token) if len(token) <= 40 else f"{token[:40]}…"
    return parse_error(f"unexpected '{shown}', expected {wanted}", Position(token.line or 1, token.column or 1))


def _wanted(kinds: set[str]) -> str:
    if "IDENT" in kinds and "NODE" in kinds:
        kinds = kinds - {"INTERFACE", "NODE", "EDGE", "IMPLEMENTS", "ENUM", "BOOL"}
    if "FLOAT" in kinds:
        kinds = kinds - {"INT"}
    said = sorted(_SAID[kind] for kind in kinds)
    return said[0] if len(said) == 1 else ", ".join(said[:-1]) + " or " + said[-1]
