"""Cuts a schema text into tokens.

Holds for every token:
  1. Between the parentheses of `: enum( … )`, and only there, words are enum values: `2024-01`, `node`, `7`.
  2. A number never swallows a dot that belongs to `..`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark import Token
from lark.lexer import Lexer

from omnigraph.lang.diagnostics import parse_error
from omnigraph.lang.source import Scanner

BASE_TYPES = ("String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "DateTime", "Date")
KEYWORDS = ("interface", "node", "edge", "implements", "enum")

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENUMVAL = re.compile(r"[A-Za-z0-9_-]+")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_MARKS = {
    "->": "_ARROW", "..": "_DOTDOT", "{": "_LBRACE", "}": "_RBRACE", "(": "_LPAREN", ")": "_RPAREN",
    "[": "_LBRACKET", "]": "_RBRACKET", ":": "_COLON", ",": "_COMMA", "=": "_EQUALS", "@": "AT", "?": "QUESTION",
}  # fmt: skip


class PgLexer(Lexer):
    """The token source lark asks for; one `lex` call per text."""

    def __init__(self, lexer_conf: Any) -> None:
        self._conf = lexer_conf

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        return _PgScanner(text).tokens()


class _PgScanner(Scanner):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._before: tuple[str, str] = ("", "")
        self._in_enum = False

    def tokens(self) -> Iterator[Token]:
        while self.skip_blanks():
            token = self._next()
            self._follow_enum(token.type)
            yield token

    def _next(self) -> Token:
        text, offset = self.text, self.offset
        if self._in_enum and (value := _ENUMVAL.match(text, offset)):
            return self.take("ENUMVAL", value.group())
        if word := _WORD.match(text, offset):
            return self.take_word(_word_kind(word.group()), word.group())
        if number := _NUMBER.match(text, offset):
            return self.take_number(number.group())
        for size in (2, 1):
            mark = text[offset : offset + size]
            if mark in _MARKS:
                return self.take(_MARKS[mark], mark)
        if text[offset] == '"':
            return self.take_string()
        raise parse_error(f"unexpected character {text[offset]!r}", self.at())

    def _follow_enum(self, kind: str) -> None:
        if kind == "_LPAREN" and self._before == ("_COLON", "ENUM"):
            self._in_enum = True
        elif kind == "_RPAREN":
            self._in_enum = False
        self._before = (self._before[1], kind)


def _word_kind(word: str) -> str:
    if word in KEYWORDS:
        return word.upper()
    if word in ("true", "false"):
        return "BOOL"
    return "TYPENAME" if word[0].isupper() else "IDENT"
