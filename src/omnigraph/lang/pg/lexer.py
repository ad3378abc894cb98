"""Cuts a schema text into tokens.

Holds for every token:
  1. It knows its line and column; words end at a word boundary, so `nodeX` is one word.
  2. Between the parentheses of `: enum( … )`, and only there, words are enum values: `2024-01`, `node`, `7`.
  3. A number never swallows a dot that belongs to `..`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any, NoReturn

from lark import Token
from lark.lexer import Lexer

from omnigraph.lang.diagnostics import Position, parse_error

BASE_TYPES = ("String", "Blob", "Bool", "I32", "I64", "U32", "U64", "F32", "F64", "DateTime", "Date")
KEYWORDS = ("interface", "node", "edge", "implements", "enum")
NAME_CHARS_MAX = 255
NUMBER_CHARS_MAX = 2_000
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1

_SKIP = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)+")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ENUMVAL = re.compile(r"[A-Za-z0-9_-]+")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}
_MARKS = {
    "->": "_ARROW", "..": "_DOTDOT", "{": "_LBRACE", "}": "_RBRACE", "(": "_LPAREN", ")": "_RPAREN",
    "[": "_LBRACKET", "]": "_RBRACKET", ":": "_COLON", ",": "_COMMA", "=": "_EQUALS", "@": "AT", "?": "QUESTION",
}  # fmt: skip


class PgLexer(Lexer):
    """The token source lark asks for; one `lex` call per text."""

    def __init__(self, lexer_conf: Any) -> None:
        self._conf = lexer_conf

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        return _Scanner(text).tokens()


class _Scanner:
    def __init__(self, text: str) -> None:
        self._text = text
        self._offset = 0
        self._line = 1
        self._line_start = 0
        self._before: tuple[str, str] = ("", "")
        self._in_enum = False

    def tokens(self) -> Iterator[Token]:
        while self._skip_blanks():
            token = self._next()
            self._follow_enum(token.type)
            yield token

    def _at(self) -> Position:
        return Position(self._line, self._offset - self._line_start + 1)

    def _advance(self, end: int) -> None:
        breaks = self._text.count("\n", self._offset, end)
        if breaks:
            self._line += breaks
            self._line_start = self._text.rindex("\n", self._offset, end) + 1
        self._offset = end

    def _skip_blanks(self) -> bool:
        """Moves to the next token; False at the end of the text."""
        while True:
            blank = _SKIP.match(self._text, self._offset)
            if blank:
                self._advance(blank.end())
            if not self._text.startswith("/*", self._offset):
                return self._offset < len(self._text)
            end = self._text.find("*/", self._offset + 2)
            if end < 0:
                raise parse_error("unterminated comment", self._at(), "Close it with */.")
            self._advance(end + 2)

    def _next(self) -> Token:
        text, offset = self._text, self._offset
        if self._in_enum and (value := _ENUMVAL.match(text, offset)):
            return self._take("ENUMVAL", value.group())
        if word := _WORD.match(text, offset):
            return self._take_word(word.group())
        if number := _NUMBER.match(text, offset):
            return self._take_number(number.group())
        for size in (2, 1):
            mark = text[offset : offset + size]
            if mark in _MARKS:
                return self._take(_MARKS[mark], mark)
        if text[offset] == '"':
            return self._take_string()
        raise parse_error(f"unexpected character {text[offset]!r}", self._at())

    def _take(self, kind: str, source: str, value: Any = None) -> Token:
        at = self._at()
        self._advance(self._offset + len(source))
        return Token(kind, source if value is None else value, line=at.line, column=at.column)

    def _take_word(self, word: str) -> Token:
        if len(word) > NAME_CHARS_MAX:
            raise parse_error(f"name has more than {NAME_CHARS_MAX} characters", self._at())
        return self._take(_word_kind(word), word)

    def _take_number(self, source: str) -> Token:
        if len(source) > NUMBER_CHARS_MAX:
            raise parse_error(f"number has more than {NUMBER_CHARS_MAX} characters", self._at())
        if "." in source:
            if not math.isfinite(float(source)):
                raise parse_error("number is too large for a float", self._at())
            return self._take("FLOAT", source)
        if not INTEGER_MIN <= int(source) <= INTEGER_MAX:
            raise parse_error(f"integer is outside {INTEGER_MIN}..{INTEGER_MAX}", self._at())
        return self._take("INT", source)

    def _take_string(self) -> Token:
        whole = _STRING.match(self._text, self._offset)
        if whole is None:
            self._refuse_open_string()
        body = whole.group()[1:-1]
        for escape in _ESCAPE.finditer(body):
            if escape.group(1) not in _ESCAPED:
                self._refuse_escape(self._offset + 1 + escape.start())
        return self._take("STRING", whole.group(), _ESCAPE.sub(lambda m: _ESCAPED[m.group(1)], body))

    def _refuse_open_string(self) -> NoReturn:
        rest = self._text[self._offset :]
        trailing = len(rest) - len(rest.rstrip("\\"))
        if trailing % 2:
            self._advance(len(self._text) - 1)
            raise parse_error("unterminated escape sequence", self._at())
        raise parse_error("unterminated string", self._at(), 'Close it with ".')

    def _refuse_escape(self, offset: int) -> NoReturn:
        sequence = self._text[offset : offset + 2]
        self._advance(offset)
        shown = sequence if sequence.isprintable() else ascii(sequence)[1:-1]
        text = f"unsupported escape sequence '{shown}'"
        raise parse_error(text, self._at(), 'Allowed are \\" \\\\ \\n \\r \\t.')

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
