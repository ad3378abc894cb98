"""The rules against a model that compares every row with every other, for random graphs and random changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from write_scene import SCHEMA, WAYS, change, edges, findings, people, take_way

from omnigraph.engine.write.changes import Overwrite
from omnigraph.engine.write.changeset import TableChange
from omnigraph.graph import Graph

pytestmark = pytest.mark.slow

P, F, L = "node:Person", "edge:Follows", "edge:Leads"
NAMES = st.sampled_from(["ana", "bo", "cy", "di", "ed"])
PEOPLE = st.dictionaries(NAMES, st.sampled_from(["1@x", "2@x", None]), max_size=5)
EDGES = st.dictionaries(st.sampled_from(["e1", "e2", "e3", "e4"]), st.tuples(NAMES, NAMES), max_size=4)
LEADS = st.dictionaries(st.sampled_from(["l1", "l2", "l3"]), st.tuples(NAMES, st.just("core")), max_size=3)


@dataclass
class Edit:
    """A change of one table; rows are a list because an input may name an id twice."""

    rows: list[tuple[str, Any]] = field(default_factory=list)
    deletes: set[str] = field(default_factory=set)
    how: str = "upsert"

    def after(self, before: dict[str, Any]) -> dict[str, Any]:
        kept = {} if self.how == "replaces_all" else {k: v for k, v in before.items() if k not in self.deletes}
        return {**kept, **dict(self.rows)}

    def survivors(self, before: dict[str, Any]) -> dict[str, Any]:
        gone = self.deletes | {key for key, _ in self.rows}
        return {} if self.how == "replaces_all" else {k: v for k, v in before.items() if k not in gone}

    @property
    def is_empty(self) -> bool:
        return not self.rows and not self.deletes and self.how != "replaces_all"


def edit(rows: st.SearchStrategy[dict[str, Any]], ids: list[str]) -> st.SearchStrategy[Edit]:
    def built(drawn: dict[str, Any], deletes: set[str], how: str) -> Edit:
        return Edit(list(drawn.items()), deletes - set(drawn) if how == "upsert" else set(), how)

    deletes = st.sets(st.sampled_from(ids), max_size=2)
    return st.builds(built, rows, deletes, st.sampled_from(["upsert", "strict_insert", "replaces_all"]))


Graphs = tuple[dict[str, Any], dict[str, Any], dict[str, Any]]


def expected(before: Graphs, nodes: Edit, follows: Edit, leads: Edit) -> Iterator[tuple[int, str]]:
    """`(stage, message)` of every violation of every stage."""
    held, linked, led = before
    for name, edited, stored in (("Person", nodes, held), ("Follows", follows, linked), ("Leads", leads, led)):
        if edited.how == "strict_insert":
            yield from ((4, f"{name} already has id '{key}'") for key, _ in edited.rows if key in stored)
    yield from _clashes(nodes, held)
    people_after = nodes.after(held)
    for edited, stored in ((follows, linked), (leads, led)):
        for side, end in (("src", 0), ("dst", 1)):
            for _, ends in edited.rows:
                if not (edited is leads and side == "dst") and ends[end] not in people_after:
                    yield 7, f"{side} '{ends[end]}' not found in Person"
            for key, ends in edited.survivors(stored).items():
                if not (edited is leads and side == "dst") and ends[end] not in people_after:
                    yield 7, f"{side} '{ends[end]}' not found in Person (stored edge '{key}')"
    if leads.is_empty:
        return
    counts = Counter(ends[0] for ends in leads.after(led).values())
    lost = [ends[0] for key, ends in led.items() if key not in leads.survivors(led)]
    for source in {ends[0] for _, ends in leads.rows} | set(lost):
        if source in people_after and not 1 <= counts[source] <= 2:
            limit = "min 1" if counts[source] < 1 else "max 2"
            yield 8, f"@card violation on edge Leads: source '{source}' has {counts[source]} edges ({limit})"


def _clashes(nodes: Edit, held: dict[str, Any]) -> Iterator[tuple[int, str]]:
    survivors = sorted(nodes.survivors(held).items())
    for place, (name, email) in enumerate(nodes.rows):
        holders = [n for n, e in [*survivors, *nodes.rows] if e == email]
        if email is not None and len(holders) > 1:
            mine = len([1 for _, e in survivors if e == email]) + sum(e == email for _, e in nodes.rows[:place])
            other = holders[1] if mine < 2 else name
            yield 6, f"@unique violation on Person.email: value '{email}' held by '{holders[0]}' and '{other}'"


def applied(edited: Edit, table_key: str, rows: pa.Table, graph: Graph, first: int) -> TableChange:
    how = {} if edited.how == "upsert" else {edited.how: True}
    return change(
        graph.view(), table_key, rows if edited.rows else None, first=first, delete=sorted(edited.deletes), **how
    )


@pytest.fixture(scope="module")
def graph(tmp_path_factory: pytest.TempPathFactory) -> Graph:
    made = Graph.init(str(tmp_path_factory.mktemp("agrees") / "graph"), SCHEMA)
    made.write({"node:Team": Overwrite(pa.table({"id": ["core"], "code": ["core"]}))})
    return made


def stored_graphs() -> st.SearchStrategy[Graphs]:
    """Graphs that keep every rule, as stored ones do."""

    def whole(held: dict[str, Any], linked: dict[str, Any], led: dict[str, Any]) -> Graphs:
        seen: set[str] = set()
        unique = {n: None if e in seen or seen.add(e or n) else e for n, e in held.items()}  # type: ignore[func-returns-value]
        kept = {k: ends for k, ends in linked.items() if set(ends) <= set(unique)}
        few = {k: ends for k, ends in list(led.items())[:2] if ends[0] in unique}
        return unique, kept, few

    return st.builds(whole, PEOPLE, EDGES, LEADS)


@pytest.mark.slow
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    before=stored_graphs(),
    nodes=edit(PEOPLE, ["ana", "bo", "cy", "di", "ed"]),
    follows=edit(EDGES, ["e1", "e2", "e3", "e4"]),
    leads=edit(LEADS, ["l1", "l2", "l3"]),
)
@pytest.mark.parametrize("way", WAYS)
def test_validation_finds_what_comparing_every_row_finds(
    graph: Graph, tmp_path: Path, way: str, before: Graphs, nodes: Edit, follows: Edit, leads: Edit
) -> None:
    held, linked, led = before
    graph.write({P: Overwrite(people(held)), F: Overwrite(edges(**linked)), L: Overwrite(edges(**led))})
    with pytest.MonkeyPatch.context() as patch:
        opened = Graph.open(graph.uri, settings=take_way(patch, way))
        told, _ = findings(
            opened,
            applied(nodes, P, people(dict(nodes.rows)), opened, 1),
            applied(follows, F, edges(**dict(follows.rows)), opened, 100),
            applied(leads, L, edges(**dict(leads.rows)), opened, 200),
            listed=1000,
        )
    every = sorted(expected(before, nodes, follows, leads))
    first = [message for stage, message in every if stage == every[0][0]]
    assert sorted(line.split(": ", 1)[1] for line in told) == sorted(first)
