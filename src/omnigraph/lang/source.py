"""Reading source text: what the schema language and the query language share.

Holds for every token:
  1. It knows its line and column; words end at a word boundary, so `nodeX` is one word.
  2. Blanks and comments stand between tokens, never inside them; strings are decoded.
  3. Numbers are finite, and integers fit a signed or unsigned 64-bit column.
"""

from __future__ import annotations

import math
import re
from typing import Any, NoReturn

from lark import Token

from omnigraph.lang.diagnostics import START, Position, parse_error

SOURCE_CHARS_MAX = 1024 * 1024
NAME_CHARS_MAX = 255
NUMBER_CHARS_MAX = 2_000
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1

_SKIP = re.compile(r"(?:[ \t\r\n]+|//[^\n]*)+")
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPED = {'"': '"', "\\": "\\", "n": "\n", "r": "\r", "t": "\t"}


def refuse_unreadable(text: str, what: str) -> None:
    """`what` is in this text ("schema", "query") that is too long to read or is no Unicode."""
    if len(text) > SOURCE_CHARS_MAX:
        raise parse_error(f"{what} source has more than {SOURCE_CHARS_MAX} characters", START)
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as broken:
        raise parse_error(f"{what} source is not valid Unicode text", position_of(text, broken.start)) from None


def position_of(text: str, offset: int) -> Position:
    line_start = text.rfind("\n", 0, offset) + 1
    return Position(text.count("\n", 0, offset) + 1, offset - line_start + 1)


def place(token: Token) -> Position:
    return Position(token.line or 1, token.column or 1)


class Scanner:
    """A place in a text that moves forward, token by token."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.offset = 0
        self._line = 1
        self._line_start = 0

    def at(self) -> Position:
        return Position(self._line, self.offset - self._line_start + 1)

    def skip_blanks(self) -> bool:
        """Moves to the next token; False at the end of the text."""
        while True:
            blank = _SKIP.match(self.text, self.offset)
            if blank:
                self._advance(blank.end())
            if not self.text.startswith("/*", self.offset):
                return self.offset < len(self.text)
            end = self.text.find("*/", self.offset + 2)
            if end < 0:
                raise parse_error("unterminated comment", self.at(), "Close it with */.")
            self._advance(end + 2)

    def take(self, kind: str, source: str, value: Any = None) -> Token:
        """The token whose text is `source`; the scanner stands behind it afterwards."""
        at = self.at()
        self._advance(self.offset + len(source))
        return Token(kind, source if value is None else value, line=at.line, column=at.column)

    def take_word(self, kind: str, word: str) -> Token:
        if len(word) > NAME_CHARS_MAX:
            raise parse_error(f"name has more than {NAME_CHARS_MAX} characters", self.at())
        return self.take(kind, word)

    def take_number(self, source: str) -> Token:
        if len(source) > NUMBER_CHARS_MAX:
            raise parse_error(f"number has more than {NUMBER_CHARS_MAX} characters", self.at())
        if "." in source:
            if not math.isfinite(float(source)):
                raise parse_error("number is too large for a float", self.at())
            return self.take("FLOAT", source)
        if not INTEGER_MIN <= int(source) <= INTEGER_MAX:
            raise parse_error(f"integer is outside {INTEGER_MIN}..{INTEGER_MAX}", self.at())
        return self.take("INT", source)

    def take_string(self) -> Token:
        whole = _STRING.match(self.text, self.offset)
        if whole is None:
            self._refuse_open_string()
        body = whole.group()[1:-1]
        for escape in _ESCAPE.finditer(body):
            if escape.group(1) not in _ESCAPED:
                self._refuse_escape(self.offset + 1 + escape.start())
        return self.take("STRING", whole.group(), _ESCAPE.sub(lambda m: _ESCAPED[m.group(1)], body))

    def _advance(self, end: int) -> None:
        breaks = self.text.count("\n", self.offset, end)
        if breaks:
            self._line += breaks
            self._line_start = self.text.rindex("\n", self.offset, end) + 1
        self.offset = end

    def _refuse_open_string(self) -> NoReturn:
        rest = self.text[self.offset :]
        trailing = len(rest) - len(rest.rstrip("\\"))
        if trailing % 2:
            self._advance(len(self.text) - 1)
            raise parse_error("unterminated escape sequence", self.at())
        raise parse_error("unterminated string", self.at(), 'Close it with ".')

    def _refuse_escape(self, offset: int) -> NoReturn:
        sequence = self.text[offset : offset + 2]
        self._advance(offset)
        shown = sequence if sequence.isprintable() else ascii(sequence)[1:-1]
        text = f"unsupported escape sequence '{shown}'"
        raise parse_error(text, self.at(), 'Allowed are \\" \\\\ \\n \\r \\t.')
