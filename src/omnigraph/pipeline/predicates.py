"""The option `filter`: conditions on columns of one type, checked before Lance sees them.

Holds for every text: the filter that leaves here names only columns of the type and compares each with values of its
own type, or a BadRequest says what is wrong and where. `DataFrame.where` gives the same text the same meaning.
"""

from __future__ import annotations

import math
import re
from functools import cache
from typing import Any

import pyarrow as pa
from lark import Lark, Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedToken, VisitError

from omnigraph.base.errors import BadRequest, NotFound, OmniError
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.records.times import parse_days, parse_ms
from omnigraph.storage.predicates import sql_string

# Lance reads about fifty brackets deep, and one level here can make three of them.
_DEPTH_MAX = 16
_CHARACTERS_MAX = 64 << 10
_NEGATIONS = re.compile(r"(?:\bnot\s+)+", re.IGNORECASE)
_GRAMMAR = r"""
?start: either
?either: both ("OR"i both)*
?both: single ("AND"i single)*
?single: "NOT"i single -> negated
       | "(" either ")" -> grouped
       | test
?test: column -> holds
     | column COMPARES literal -> compared
     | column "IS"i "NULL"i -> absent
     | column "IS"i "NOT"i "NULL"i -> present
     | column "IN"i "(" literal ("," literal)* ")" -> within
     | column "NOT"i "IN"i "(" literal ("," literal)* ")" -> outside
     | column "BETWEEN"i literal "AND"i literal -> between
     | column "NOT"i "BETWEEN"i literal "AND"i literal -> not_between
     | column "LIKE"i literal -> like
     | column "NOT"i "LIKE"i literal -> not_like
column: NAME | QUOTED
literal: STRING | NUMBER | DATE | TIMESTAMP | TRUE | FALSE
COMPARES: "<=" | ">=" | "<>" | "!=" | "=" | "<" | ">"
TRUE.3: /true\b/i
FALSE.3: /false\b/i
DATE.3: /date\s*'[^']*'/i
TIMESTAMP.3: /timestamp\s*'[^']*'/i
STRING: /'(?:[^']|'')*'/
NUMBER: /[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?/
QUOTED: /`[^`]+`/
NAME: /(?!(?:and|or|not|is|null|in|between|like|true|false)\b)[A-Za-z_][A-Za-z0-9_]*/i
%ignore /\s+/
"""


def lance_filter(text: str, schema: pa.Schema, table_key: str) -> str:
    """The same condition as Lance takes it."""
    if len(text) > _CHARACTERS_MAX or _depth(text) > _DEPTH_MAX:
        raise BadRequest(
            f"filter: more than {_DEPTH_MAX} brackets deep, or more than {_CHARACTERS_MAX} characters",
            "Choose the rows with DataFrame.where, or join with a frame of the values.",
        )
    try:
        tree = _parser().parse(text)
        return str(_Rendered(schema, table_key).transform(tree))
    except VisitError as error:
        if isinstance(error.orig_exc, OmniError):
            raise error.orig_exc from None
        raise
    except (UnexpectedCharacters, UnexpectedToken, UnexpectedEOF) as error:
        ended = isinstance(error, UnexpectedEOF) or (isinstance(error, UnexpectedToken) and error.token.type == "$END")
        place = "at its end" if ended else f"at '{text[error.pos_in_stream or 0 :][:20]}'"
        raise BadRequest(
            f"filter cannot be read {place}: {text!r}",
            "Conditions are column = value (also <> < <= > >=), IS [NOT] NULL, [NOT] IN, BETWEEN and LIKE, joined by "
            "AND, OR, NOT and brackets.",
        ) from None


def _depth(text: str) -> int:
    """How deep the tree of the text is at most; joined conditions make it wide, not deep."""
    depth = deepest = 0
    for character in text:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    return deepest + max((len(run.split()) for run in _NEGATIONS.findall(text)), default=0)


@cache
def _parser() -> Lark:
    return Lark(_GRAMMAR, parser="lalr", maybe_placeholders=False)


class _Rendered(Transformer[Token, str]):
    """Each rule as a piece of SQL; brackets are written out, so precedence is ours and not the reader's."""

    def __init__(self, schema: pa.Schema, table_key: str) -> None:
        super().__init__()
        self._schema = schema
        self._table_key = table_key

    def either(self, parts: list[str]) -> str:
        return f"({' OR '.join(parts)})"

    def both(self, parts: list[str]) -> str:
        return f"({' AND '.join(parts)})"

    def negated(self, parts: list[str]) -> str:
        return f"(NOT {parts[0]})"

    def grouped(self, parts: list[str]) -> str:
        return parts[0]

    def column(self, parts: list[Token]) -> pa.Field:
        name = str(parts[0]).strip("`")
        if name not in self._schema.names:
            hint = did_you_mean(name, self._schema.names) or f"Its columns are: {', '.join(self._schema.names)}."
            raise NotFound(f"filter: {self._table_key} has no column '{name}'", hint)
        return self._schema.field(name)

    def literal(self, parts: list[Token]) -> Token:
        return parts[0]

    def holds(self, parts: list[Any]) -> str:
        if not pa.types.is_boolean(parts[0].type):
            raise BadRequest(f"filter: '{parts[0].name}' is not a Bool", "Compare it with a value.")
        return f"`{parts[0].name}`"

    def compared(self, parts: list[Any]) -> str:
        column, operator, value = parts
        return f"({_side(column)} {operator} {self._value(column, value)})"

    def absent(self, parts: list[pa.Field]) -> str:
        return f"(`{parts[0].name}` IS NULL)"

    def present(self, parts: list[pa.Field]) -> str:
        return f"(`{parts[0].name}` IS NOT NULL)"

    def within(self, parts: list[Any]) -> str:
        return f"({_side(parts[0])} IN ({', '.join(self._value(parts[0], v) for v in parts[1:])}))"

    def outside(self, parts: list[Any]) -> str:
        return f"(NOT {self.within(parts)})"

    def between(self, parts: list[Any]) -> str:
        column, low, high = parts
        side = _side(column)
        return f"({side} >= {self._value(column, low)} AND {side} <= {self._value(column, high)})"

    def not_between(self, parts: list[Any]) -> str:
        return f"(NOT {self.between(parts)})"

    def like(self, parts: list[Any]) -> str:
        column, pattern = parts
        if not pa.types.is_string(column.type):
            raise BadRequest(f"filter: LIKE needs a text and '{column.name}' is none", "Compare it with = or <.")
        return f"(`{column.name}` LIKE {self._value(column, pattern)})"

    def not_like(self, parts: list[Any]) -> str:
        return f"(NOT {self.like(parts)})"

    def _value(self, column: pa.Field, value: Token) -> str:
        rendered = _literal(column.type, value)
        if rendered is None:
            raise BadRequest(f"filter: '{column.name}' cannot be compared with {value}", _expected(column.type))
        return rendered


def _side(column: pa.Field) -> str:
    # A number with a fraction is a double, on both sides.
    return f"CAST(`{column.name}` AS DOUBLE)" if pa.types.is_float32(column.type) else f"`{column.name}`"


def _literal(type_: pa.DataType, token: Token) -> str | None:
    """The value as a literal of the column's type, None where it is none."""
    if pa.types.is_boolean(type_):
        return str(token).lower() if token.type in ("TRUE", "FALSE") else None
    if pa.types.is_integer(type_):
        return _integer(type_, str(token)) if token.type == "NUMBER" else None
    if pa.types.is_floating(type_):
        number = float(token) if token.type == "NUMBER" else math.inf
        return repr(number) if math.isfinite(number) else None
    if token.type not in ("STRING", "DATE", "TIMESTAMP"):
        return None
    text = str(token)[str(token).index("'") + 1 : -1].replace("''", "'")
    if pa.types.is_string(type_):
        return sql_string(text) if token.type == "STRING" else None
    if pa.types.is_date(type_) and token.type != "TIMESTAMP":
        days, good = parse_days(pa.array([text]))
        return f"arrow_cast({days[0]}, 'Date32')" if good[0] else None
    if pa.types.is_timestamp(type_) and token.type != "DATE":
        ms, good = parse_ms(pa.array([text]))
        return f"arrow_cast({ms[0]}, 'Timestamp(Millisecond, Some(\"UTC\"))')" if good[0] else None
    return None


def _integer(type_: pa.DataType, text: str) -> str | None:
    digits = text.removeprefix("+").removeprefix("-")
    if not digits.isdigit():
        return None
    width, unsigned = type_.bit_width, str(type_).startswith("u")
    low, high = (0, 2**width - 1) if unsigned else (-(2 ** (width - 1)), 2 ** (width - 1) - 1)
    number = int(text)
    return str(number) if low <= number <= high else None


def _expected(type_: pa.DataType) -> str:
    if pa.types.is_boolean(type_):
        return "It is a Bool: true or false."
    if pa.types.is_integer(type_):
        return f"It is a whole number of the range of {type_}."
    if pa.types.is_floating(type_):
        return "It is a finite number."
    if pa.types.is_string(type_):
        return "It is a text: 'in quotes'."
    if pa.types.is_date(type_):
        return "It is a date: DATE '2024-02-29'."
    if pa.types.is_timestamp(type_):
        return "It is a moment: TIMESTAMP '2024-02-29 12:00:00Z'."
    return "It can only be tested with IS NULL and IS NOT NULL."
