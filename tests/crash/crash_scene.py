"""Fresh copies of one graph, and the lives that end in them."""

from __future__ import annotations

import shutil
from pathlib import Path

from crash_cases import Case, Life
from crash_checks import Known, Wreck
from crash_children import DIED_BY, Children
from crash_world import EFFECTS, build_graph, plan_of

from omnigraph.base.ids import new_ulid
from omnigraph.commit.protocol import commit_plan
from omnigraph.graph import Graph


class World:
    """Fresh copies of one graph, and what becomes of them."""

    def __init__(self, folder: Path, children: Children) -> None:
        self._folder = folder
        self._children = children
        self._template = str(folder / "template")
        self._afters: dict[tuple[str, int], Known] = {}
        self._wrecks: dict[tuple[str, int, tuple[Life, ...]], Wreck] = {}
        build_graph(self._template)
        self.before = Known.of(Graph.open(self._template, "r"))

    def copy(self, source: str | None = None) -> str:
        return str(shutil.copytree(source or self._template, self._folder / new_ulid()))

    def after(self, case: Case) -> Known:
        """The same write without a crash."""
        key = (case.effect.name, len(case.tables))
        if key not in self._afters:
            graph = Graph.open(self.copy())
            commit_plan(graph.context, plan_of(graph, EFFECTS[case.effect.name], case.tables, new_ulid()))
            self._afters[key] = Known.of(graph)
            shutil.rmtree(graph.uri)
        return self._afters[key]

    def wreck(self, case: Case) -> Wreck:
        return self._lived(case, case.lives)

    def _lived(self, case: Case, lives: tuple[Life, ...]) -> Wreck:
        """The graph after these lives. Cases that go on from the same wreck each get a copy of it."""
        if len(lives) == 1:
            return self._life(case, lives[0], Wreck(self.copy(), new_ulid(), None, False), does="write")
        key = (case.effect.name, len(case.tables), lives[:1])
        if key not in self._wrecks:
            self._wrecks[key] = self._lived(case, lives[:1])
        first = self._wrecks[key]
        wreck = Wreck(self.copy(first.path), first.operation_id, first.planned_commit_id, first.acknowledged)
        for life in lives[1:]:
            self._life(case, life, wreck, does="open")
        return wreck

    def _life(self, case: Case, life: Life, wreck: Wreck, does: str) -> Wreck:
        order = {
            "does": does,
            "path": wreck.path,
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
        return Wreck(wreck.path, wreck.operation_id, ended.said.get("planned"), "acknowledged" in ended.said)
