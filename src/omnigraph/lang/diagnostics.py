"""Where in a source text something stands, and what the writer probably meant.

Holds for every language error:
  1. Lines and columns count from 1; a column counts characters, a tab is one.
  2. A suggestion is a name that exists at that place.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass

from omnigraph.base.errors import CatalogError, ParseError, TypeCheckError


@dataclass(frozen=True, order=True)
class Position:
    line: int
    column: int


START = Position(1, 1)
_CANDIDATES_MAX = 2_000
_LISTED_MAX = 12


def nearest_name(name: str, candidates: Iterable[str]) -> str | None:
    """The candidate that looks most like `name`; None if none is close, or if looking would take too long."""
    known = sorted(set(candidates))
    by_folded = {candidate.lower(): candidate for candidate in known}
    if name.lower() in by_folded:
        return by_folded[name.lower()]
    if len(known) > _CANDIDATES_MAX:
        return None
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
    return close[0] if close else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """A hint sentence with the nearest name, or an empty text."""
    meant = nearest_name(name, candidates)
    return f"Did you mean '{meant}'?" if meant is not None else ""


def known_names(name: str, candidates: Iterable[str], lead: str) -> str:
    """A hint sentence with the nearest name, or else with those that exist, led in by `lead`."""
    known = list(candidates)
    more = f" and {len(known) - _LISTED_MAX} more" if len(known) > _LISTED_MAX else ""
    listed = f"{lead} {', '.join(known[:_LISTED_MAX])}{more}." if known else ""
    return did_you_mean(name, known) or listed


def parse_error(text: str, at: Position, hint: str = "") -> ParseError:
    return ParseError(text, hint, line=at.line, column=at.column)


def catalog_error(text: str, at: Position, hint: str = "") -> CatalogError:
    return CatalogError(text, hint, line=at.line, column=at.column)


def type_error(rule: str, text: str, at: Position, hint: str = "") -> TypeCheckError:
    """`rule` is the code of the broken rule, `T1` to `T25`."""
    return TypeCheckError(text, hint, line=at.line, column=at.column, rule=rule)
