"""Whether stored queries still fit a schema that is about to be put in force."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omnigraph.base.errors import BreaksQueries, ParseError, TypeCheckError
from omnigraph.catalog.catalog import Catalog
from omnigraph.lang.gq import parse_queries
from omnigraph.plan.check import check_query


@dataclass(frozen=True)
class BrokenQuery:
    """A query that does not fit; `name` is None for a file that does not parse at all."""

    name: str | None
    error: ParseError | TypeCheckError

    def to_json(self) -> dict[str, Any]:
        error = self.error
        return {"file": error.file, "line": error.line, "query": self.name, "message": error.describe()}


def broken_queries(catalog: Catalog, sources: Mapping[str, str]) -> tuple[BrokenQuery, ...]:
    """Every query of these `.gq` texts, by path, that the catalog does not bear out, in the order of the texts."""
    found: list[BrokenQuery] = []
    for path, text in sources.items():
        try:
            queries = parse_queries(text, path).queries
        except ParseError as error:
            found.append(BrokenQuery(None, error))
            continue
        for query in queries:
            try:
                check_query(catalog, query, path)
            except TypeCheckError as error:
                found.append(BrokenQuery(query.name, error))
    return tuple(found)


def refuse_broken(before: Catalog, after: Catalog, sources: Mapping[str, str]) -> None:
    """Raise what the new catalog breaks. A query that fitted the old one no better is none of the change's doing."""
    already = {(broken.error.file, broken.name) for broken in broken_queries(before, sources)}
    broken = [b for b in broken_queries(after, sources) if (b.error.file, b.name) not in already]
    if broken:
        raise BreaksQueries(broken=tuple(b.to_json() for b in broken))
