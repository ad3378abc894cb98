"""What writers of other languages try first, and how it is said here.

Holds for every hint: it is chosen by the text around the place of an error alone, and only where the error has none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from omnigraph.base.errors import ParseError
from omnigraph.lang.diagnostics import did_you_mean

_NEAR_CHARS = 80


@dataclass(frozen=True)
class Habit:
    """`before` ends at the place of the error, `found` begins there; both are compiled only for an error."""

    before: str
    found: str
    hint: str

    def shows(self, before: str, found: str) -> bool:
        ended = re.search(rf"(?:{self.before})\Z", before, re.IGNORECASE)
        return ended is not None and re.match(self.found, found, re.IGNORECASE) is not None


_COMMENT = Habit("", r"#|--", "A comment begins with //.")
_QUOTES = Habit("", r"'", 'A text stands in double quotes: "text".')
_NO_OR = "All clauses must hold, there is no or: ask twice, or use omnigraph sql."
_NO_IN = "Nothing is compared with a list of values: ask once for each with =, or use omnigraph sql."
_PATTERN = "A step is written $a edge $b, or $a $e:edge $b to read the edge."
_PROPERTY = r"\.\w+\s+"

QUERY_HABITS = (
    _COMMENT,
    _QUOTES,
    Habit(r"\bor\s*", "", _NO_OR),
    Habit("", r"or\b", _NO_OR),
    Habit(r"\band\s*", "", "Write the next clause without and: all must hold."),
    Habit(_PROPERTY, r"in\b", _NO_IN),
    Habit(_PROPERTY, r"like\b", "Write contains or starts_with, or search(…) for words."),
    Habit(_PROPERTY, r"is\b", "A missing value is not compared; see omnigraph sql for IS NULL."),
    Habit("=", "=", "Equal is written =."),
    Habit("<", ">", "Not equal is written !=."),
    Habit("=", "[<>]", "Write >= or <=."),
    Habit(r"count\(\s*", r"\*|\)", "Write count($v) with a variable of the pattern."),
    Habit(r"\w", r"\*", "Several steps are written edge{1,3}."),
    Habit("", r"\(\s*\$?\w*\s*[):]|-\[|->|<-", _PATTERN),
    Habit(r"order\s+", r"by\b", "Write order { name desc }."),
    Habit("", r"(?:offset|skip)\b", "There is no offset: order by a key and filter by the last one seen."),
    Habit("", r"distinct\b", "Return count($v) beside it: equal rows become one."),
    Habit("", r"where\b", "Conditions stand inside match { … }: $v.name = 1."),
    Habit("", r"with\b|select\b", "SQL is run by omnigraph sql."),
    Habit(r"\A\s*|\}\s*", r"(?:match|return|insert|update|delete)\b", "Write query name() { … } around it."),
)
SCHEMA_HABITS = (
    _COMMENT,
    _QUOTES,
    Habit(r"\b(?:list|array|set)\s*", "<", "A list is written [String]."),
    Habit(r"\b(?:list|array|set)\s*\(\s*", "", "A list is written [String]."),
    Habit(r"\bVector\s*", r"\[|<", "Write Vector(4)."),
    Habit(r"\b[A-Z]\w*\s*", r"\[", "A list is written [String]."),
    Habit(r"\benum\s*\(\s*|\benum\s*\([^)]*,\s*", "", "Write enum(small, large), without quotes."),
    Habit(r"\benum\s*", r"\{", "Write enum(small, large)."),
    Habit("", r"\|", "A property that may be missing is written String?."),
    Habit("", ";", "Properties are separated by blanks or lines."),
    Habit("", ",", "Properties are separated by blanks or lines."),
    Habit(r"-", "-", "An edge is written edge Name: From -> To."),
)
_KNOWN_AS = {
    **dict.fromkeys(("int", "integer", "int32", "smallint", "short"), "I32"),
    **dict.fromkeys(("long", "int64", "bigint", "number"), "I64"),
    **dict.fromkeys(("float", "double", "decimal", "real", "float64", "numeric"), "F64"),
    **dict.fromkeys(("text", "str", "varchar", "char", "uuid", "json"), "String"),
    **dict.fromkeys(("timestamp", "time", "instant", "datetimetz"), "DateTime"),
    **dict.fromkeys(("boolean", "bit"), "Bool"),
    **dict.fromkeys(("bytes", "binary"), "Blob"),
    **dict.fromkeys(("list", "array", "set"), "[String]"),
    **dict.fromkeys(("embedding", "floatvector"), "Vector(N)"),
    "enum": "enum(small, large)",
}


def hinted(error: ParseError, text: str, habits: Iterable[Habit]) -> ParseError:
    """The error, with a hint if it had none and the text at its place looks like another language."""
    if not error.hint and error.line is not None:
        offset = _offset(text, error.line, error.column or 1)
        before, found = text[max(0, offset - _NEAR_CHARS) : offset], text[offset : offset + _NEAR_CHARS]
        meant = (habit.hint for habit in habits if habit.shows(before, found))
        error.hint = next(meant, "")
    return error


def meant_type(word: str, types: Sequence[str]) -> str:
    """A hint for a name that is none of the types."""
    if word.lower() in _KNOWN_AS:
        return f"Write {_KNOWN_AS[word.lower()]}."
    return did_you_mean(word, [*types, "Vector"]) or f"There are {', '.join(types)} and Vector(N)."


def _offset(text: str, line: int, column: int) -> int:
    start = 0
    for _ in range(line - 1):
        start = text.find("\n", start) + 1
    return start + column - 1
