"""What query-execution.md says, sentence by sentence: a graph, a query, its parameters and the rows it must give.

The cases are data, so that whatever answers queries can be run over all of them; `read.agree.misfit` judges an answer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from omnigraph.plan.check import compile_query
from omnigraph.plan.typed import ReadQuery
from read.case_scenes import Scene


@dataclass(frozen=True, eq=False)
class Case:
    promise: str
    scene: Scene
    body: str
    expected: list[dict[str, Any]]
    declares: str = ""
    params: dict[str, Any] = field(default_factory=dict)

    @property
    def source(self) -> str:
        return f"query q({self.declares}) {{ {self.body} }}"

    @cached_property
    def query(self) -> ReadQuery:
        found = compile_query(self.scene.catalog, self.source)
        assert isinstance(found, ReadQuery)
        return found

    def __str__(self) -> str:
        return f"{self.scene.name}: {self.promise}".replace(" ", "-")


def column(name: str, *values: Any) -> list[dict[str, Any]]:
    return [{name: value} for value in values]


def table(names: str, *rows: tuple[Any, ...]) -> list[dict[str, Any]]:
    return [dict(zip(names.split(), row, strict=True)) for row in rows]


def all_cases() -> list[Case]:
    """Every case, whatever file holds it."""
    from read import case_filters, case_results, case_walks

    return [*case_filters.CASES, *case_walks.CASES, *case_results.CASES]
