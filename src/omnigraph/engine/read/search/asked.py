"""A text match of a query, with what its operands stand for in one run."""

from __future__ import annotations

from typing import Literal

from omnigraph.engine.read.search.text import MAX_EDITS, TextQuery
from omnigraph.lang.gq.ast import Function
from omnigraph.plan.operands import Values
from omnigraph.plan.typed import Parameter, TextSearch

_FUNCTIONS: dict[Function, Literal["search", "match_text", "fuzzy"]] = {
    Function.SEARCH: "search",
    Function.MATCH_TEXT: "match_text",
    Function.FUZZY: "fuzzy",
}


def asked(search: TextSearch, values: Values) -> TextQuery | None:
    """None where the text asked for is NULL, which nothing matches."""
    text = values.of(search.query)
    if text is None:
        return None
    edits = MAX_EDITS if search.max_edits is None else search.max_edits
    number = values.of(edits) if isinstance(edits, Parameter) else edits
    assert isinstance(number, int)
    return TextQuery(_FUNCTIONS[search.function], search.field.name, str(text), number)
