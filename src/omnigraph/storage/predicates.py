"""The one place where values become filter text."""

from __future__ import annotations

from collections.abc import Iterable

from omnigraph.base.errors import BadRequest

# Beyond this many ids a scan of the id column beats a filter that names them.
LOOKUP_BY_FILTER_MAX = 1000


def sql_string(value: str) -> str:
    """A string literal that means exactly `value`."""
    if "\x00" in value:
        raise BadRequest("a value with a NUL character cannot be compared")
    return "'" + value.replace("'", "''") + "'"


def id_is(value: str) -> str:
    return f"id = {sql_string(value)}"


def id_in(values: Iterable[str]) -> str:
    return f"id IN ({', '.join(sql_string(v) for v in values)})"
