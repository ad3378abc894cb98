"""Fresh copies of one graph, and the lives that end in them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from crash_cases import Case, Life
from crash_checks import Known, Wreck
from crash_children import DIED_BY, Children
from crash_world import EFFECTS, build_graph, plan_of

from graph_places import DiskPlace, Home, Place, unusual
from omnigraph.base.ids import new_ulid
from omnigraph.commit.protocol import commit_plan
from omnigraph.graph import Graph


class Template:
    """The graph every crash starts from, and what each write makes of it when nobody dies."""

    def __init__(self, disk: DiskPlace) -> None:
        self._disk = disk
        self.path = disk.fresh()
        self._afters: dict[tuple[str, int], Known] = {}
        build_graph(self.path)
        self.before = Known.of(Graph.open(self.path, "r"))

    def after(self, case: Case) -> Known:
        """The same write without a crash, on the local disk; a graph looks the same wherever it lies."""
        key = (case.effect.name, len(case.tables))
        if key not in self._afters:
            graph = Graph.open(self._disk.copy(self.path))
            commit_plan(graph.context, plan_of(graph, EFFECTS[case.effect.name], case.tables, new_ulid()))
            self._afters[key] = Known.of(graph)
            self._disk.remove(graph.uri)
        return self._afters[key]


class World:
    """Fresh copies of the template in one place, and what becomes of them."""

    def __init__(self, template: Template, place: Place, children: Children) -> None:
        self.place = place
        self._template = template
        self._children = children
        self._wrecks: dict[tuple[str, int, tuple[Life, ...]], Wreck] = {}

    def copy(self, source: str | None = None) -> Home:
        return Home(self.place.copy(source or self._template.path), self.place.settings)

    def wreck(self, case: Case) -> Wreck:
        return self._lived(case, case.lives)

    def _lived(self, case: Case, lives: tuple[Life, ...]) -> Wreck:
        """The graph after these lives. Cases that go on from the same wreck each get a copy of it."""
        if len(lives) == 1:
            return self._life(case, lives[0], Wreck(self.copy(), new_ulid(), None, False), does="write")
        key = (case.effect.name, len(case.tables), lives[:1])
        if key not in self._wrecks:
            self._wrecks[key] = self._lived(case, lives[:1])
        wreck = replace(self._wrecks[key], home=self.copy(self._wrecks[key].home.uri))
        for life in lives[1:]:
            self._life(case, life, wreck, does="open")
        return wreck

    def _life(self, case: Case, life: Life, wreck: Wreck, does: str) -> Wreck:
        order = {
            **order_in(wreck.home, does),
            "effect": case.effect.name,
            "tables": case.tables,
            "operation_id": wreck.operation_id,
            "die_at": life.die_at,
            "skip": life.skip,
            "how": life.how,
            "fail_at": life.fail_at,
        }
        ended = self._children.live(order)
        assert ended.code == DIED_BY[life.how], f"{life.name} was not reached: exit {ended.code}\n{ended.stderr}"
        return Wreck(wreck.home, wreck.operation_id, ended.said.get("planned"), "acknowledged" in ended.said)


def order_in(home: Home, does: str) -> dict[str, Any]:
    """The part of an order that says what to do to which graph, and how to reach it."""
    return {"does": does, "path": home.uri, "settings": unusual(home.settings)}
