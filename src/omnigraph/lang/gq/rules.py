"""The rule a query breaks by its shape alone."""

from __future__ import annotations

from typing import ClassVar

from omnigraph.base.errors import BadRequest, ParseError
from omnigraph.lang.diagnostics import Position
from omnigraph.lang.gq.ast import Delete, Statement

RULE_D2 = "rule D2: a mutation query cannot mix inserts/updates and deletes; split into separate mutations"


class MixedMutation(ParseError, BadRequest):
    """Inserts or updates and deletes share a query; seen while parsing, so nothing was read or written."""

    code: ClassVar[str] = BadRequest.code


def refuse_mixed(statements: tuple[Statement, ...]) -> None:
    """Rule D2; the place named is the first statement of the other kind."""
    deletes = isinstance(statements[0], Delete)
    other = next((s for s in statements if isinstance(s, Delete) is not deletes), None)
    if other is not None:
        raise _mixed(other.at)


def _mixed(at: Position) -> MixedMutation:
    return MixedMutation(RULE_D2, "Nothing was changed. Run the deletes as a query of their own.", at.line, at.column)
