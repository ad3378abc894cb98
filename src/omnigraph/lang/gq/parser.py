"""Turns a query text into its syntax tree.

Holds for every text:
  1. The answer is a QueryFile or a ParseError with line and column; no other error leaves this file.
  2. `$a word $b` is a traversal, whatever the word; `$a.p contains $b` and `$a contains "x"` are filters.
  3. No query mixes inserts or updates with deletes. Whether names exist is for the type checker.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from lark import Lark, Token, Tree
from lark.exceptions import UnexpectedToken

from omnigraph.base.errors import BadRequest, NotFound, ParseError
from omnigraph.lang.diagnostics import did_you_mean, parse_error
from omnigraph.lang.gq.assemble import Assembler
from omnigraph.lang.gq.ast import Query, QueryFile
from omnigraph.lang.gq.lexer import KEYWORDS, GqLexer
from omnigraph.lang.grammars import parsed, parser_of
from omnigraph.lang.habits import QUERY_HABITS, hinted
from omnigraph.lang.source import place, position_of, refuse_unreadable

_SAID = {
    "_LBRACE": "'{'", "_RBRACE": "'}'", "_LPAREN": "'('", "_RPAREN": "')'", "LBRACKET": "'['", "_RBRACKET": "']'",
    "_COLON": "':'", "_COMMA": "','", "DOT": "'.'", "AT": "'@'", "QUESTION": "'?'", "LT": "'<'", "GT": "'>'",
    "MARK": "an operator", "WORD_OP": "'contains' or 'starts_with'", "BOOL": "true or false", "TYPENAME": "a type name",
    "IDENT": "a name", "VAR": "a variable", "STRING": "a string", "INT": "an integer", "FLOAT": "a number",
    "$END": "the end of the file", **{word.upper(): f"'{word}'" for word in KEYWORDS},
}  # fmt: skip
_LITERALS = {"STRING", "BOOL", "INT", "FLOAT", "NULL", "LBRACKET"}
_OPERATORS = {"LT", "GT", "MARK"}
_WORDS = {word.upper() for word in KEYWORDS} | {"BOOL"}
_SECTIONS = {"MATCH", "RETURN", "ORDER", "LIMIT", "QUERY"}


def parse_queries(text: str, file: str | None = None) -> QueryFile:
    """The syntax tree of a whole `.gq` text; `file` only names the place in errors."""
    try:
        refuse_unreadable(text, "query")
        tree = _parse(text)
    except ParseError as error:
        error.file = file
        raise hinted(error, text, QUERY_HABITS) from None
    return QueryFile(tree.queries, file)


def select_query(tree: QueryFile, name: str | None = None) -> Query:
    """The query of that name, or the only one."""
    names = [query.name for query in tree.queries]
    if name is not None:
        for query in tree.queries:
            if query.name == name:
                return query
        hint = did_you_mean(name, names) or (f"The source has: {', '.join(names)}." if names else "")
        raise NotFound(f"query '{name}' not found", hint)
    if not names:
        raise BadRequest("the source holds no query", "Write: query name() { … }.")
    if len(names) > 1:
        raise BadRequest(f"the source holds several queries: {', '.join(names)}", "Name the one to run.")
    return tree.queries[0]


def _parse(text: str) -> QueryFile:
    return parsed(_grammar(), text, QueryFile, _explain)


@cache
def _grammar() -> Lark:
    return parser_of("omnigraph.lang.gq", GqLexer, Assembler())


def _explain(unexpected: UnexpectedToken, text: str) -> ParseError:
    accepted = set(unexpected.accepts or unexpected.expected)
    token = unexpected.token
    if token.type == "$END":
        return parse_error(f"unexpected end of file, expected {_wanted(accepted)}", position_of(text, len(text)))
    opened = _section_before(unexpected)
    if token.type == "_LBRACE" and opened is not None:
        return parse_error(f"unexpected '{opened}', expected '}}'", place(opened), "A block before it is still open.")
    shown = str(token) if len(token) <= 40 else f"{token[:40]}…"
    return parse_error(f"unexpected '{shown}', expected {_wanted(accepted)}", place(token), _hint(token, accepted))


def _section_before(unexpected: UnexpectedToken) -> Token | None:
    """The keyword directly before the unexpected token: where it was read as a name, a block was left open."""
    parser: Any = unexpected.interactive_parser
    stack = parser.parser_state.value_stack if parser is not None else ()
    before = stack[-1] if stack else None
    while isinstance(before, Tree) and len(before.children) == 1:
        before = before.children[0]
    return before if isinstance(before, Token) and before.type in _SECTIONS else None


def _hint(token: Token, accepted: set[str]) -> str:
    if token.type == "TYPENAME" and "IDENT" in accepted:
        return f"Names of edges and properties start lower-case here: {token[0].lower()}{token[1:]}."
    if token.type == "IDENT" and "TYPENAME" in accepted:
        return f"Type names start upper-case: {token[0].upper()}{token[1:]}."
    if token.type == "IDENT":
        return did_you_mean(token, [word for word in KEYWORDS if word.upper() in accepted])
    return ""


def _wanted(kinds: set[str]) -> str:
    if "IDENT" in kinds:
        kinds = kinds - _WORDS - {"WORD_OP"} | ({"NOT"} & kinds if "VAR" in kinds else set())
    said: set[str] = set()
    if _LITERALS - {"BOOL", "NULL"} <= kinds:
        kinds = kinds - _LITERALS
        said.add("a value")
    if kinds >= _OPERATORS:
        kinds = kinds - _OPERATORS - {"WORD_OP"}
        said.add("an operator")
    ordered = sorted(said | {_SAID[kind] for kind in kinds})
    return ordered[0] if len(ordered) == 1 else ", ".join(ordered[:-1]) + " or " + ordered[-1]
