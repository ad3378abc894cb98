"""Cuts a query text into tokens.

Holds for every token:
  1. A word is a keyword only as a whole: `matchX` and `$match` are names.
  2. A minus belongs to the number behind it; a number never runs into a word.
  3. Brackets nest at most NESTING_MAX deep, so nothing built from the tokens does either.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from lark import Token
from lark.lexer import Lexer

from omnigraph.lang.diagnostics import parse_error
from omnigraph.lang.source import Scanner

KEYWORDS = (
    "query", "match", "return", "order", "limit", "not", "as", "asc", "desc",
    "insert", "update", "delete", "set", "where", "and", "null",
)  # fmt: skip
NESTING_MAX = 64

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_VAR = re.compile(r"\$[a-z_][A-Za-z0-9_]*")
_NUMBER = re.compile(r"-?[0-9]+(?:\.[0-9]+)?")
_KINDS = {
    **{word: word.upper() for word in KEYWORDS},
    "true": "BOOL", "false": "BOOL", "contains": "WORD_OP", "starts_with": "WORD_OP",
}  # fmt: skip
_MARKS = {
    ">=": "MARK", "<=": "MARK", "!=": "MARK", "=": "MARK", "<": "LT", ">": "GT", ".": "DOT", "@": "AT", "?": "QUESTION",
    "{": "_LBRACE", "}": "_RBRACE", "(": "_LPAREN", ")": "_RPAREN", "[": "LBRACKET", "]": "_RBRACKET",
    ":": "_COLON", ",": "_COMMA",
}  # fmt: skip


class GqLexer(Lexer):
    """The token source lark asks for; one `lex` call per text."""

    def __init__(self, lexer_conf: Any) -> None:
        self._conf = lexer_conf

    def lex(self, text: str) -> Iterator[Token]:  # type: ignore[override]
        return _GqScanner(text).tokens()


class _GqScanner(Scanner):
    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._depth = 0

    def tokens(self) -> Iterator[Token]:
        while self.skip_blanks():
            yield self._next()

    def _next(self) -> Token:
        text, offset = self.text, self.offset
        if word := _WORD.match(text, offset):
            return self.take_word(_word_kind(word.group()), word.group())
        if variable := _VAR.match(text, offset):
            return self.take_word("VAR", variable.group())
        if number := _NUMBER.match(text, offset):
            return self._take_number(number.group())
        for size in (2, 1):
            mark = text[offset : offset + size]
            if mark in _MARKS:
                self._follow_nesting(mark)
                return self.take(_MARKS[mark], mark)
        if text[offset] == '"':
            return self.take_string()
        if text[offset] == "$":
            hint = "Variables start lower-case, directly after the $: $name."
            raise parse_error("expected a variable name after '$'", self.at(), hint)
        raise parse_error(f"unexpected character {text[offset]!r}", self.at())

    def _take_number(self, source: str) -> Token:
        if tail := _WORD.match(self.text, self.offset + len(source)):
            written = source + tail.group()
            shown = written if len(written) <= 40 else f"{written[:40]}…"
            raise parse_error(f"malformed number '{shown}'", self.at(), "Write digits, with a decimal point if needed.")
        return self.take_number(source)

    def _follow_nesting(self, mark: str) -> None:
        if mark in "{([":
            self._depth += 1
            if self._depth > NESTING_MAX:
                raise parse_error(f"brackets are nested more than {NESTING_MAX} deep", self.at())
        elif mark in "})]":
            self._depth -= 1


def _word_kind(word: str) -> str:
    return _KINDS.get(word) or ("TYPENAME" if word[0].isupper() else "IDENT")
