"""A process dies inside a schema apply; the graph has the old schema or the new one, as a whole, for every reader."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, get_args

import pytest
from crash_children import DIED_BY, Children
from crash_scene import order_in
from crash_schemas import (
    REMODELS,
    SCHEMA,
    GraphSeen,
    Remodel,
    RemodelCase,
    build,
    check_at_rest,
    every_remodel_case,
    is_short,
)

from graph_places import DiskPlace, Home
from omnigraph.base.errors import Reclaimed
from omnigraph.catalog.contract import accept
from omnigraph.catalog.evolution.sources import plan_source
from omnigraph.catalog.evolution.steps import Step
from omnigraph.graph import Graph

pytestmark = pytest.mark.slow
CASES = every_remodel_case()


@dataclass
class Origin:
    """The graph every case starts from, and what each apply makes of it when nobody dies."""

    disk: DiskPlace
    path: str
    known: dict[str, tuple[GraphSeen, GraphSeen]] = field(default_factory=dict)
    prepared: dict[str, str] = field(default_factory=dict)

    def start(self, remodel: Remodel) -> Home:
        """A copy that is ready for the apply. A branch knows where its base lies, so it is made in the copy."""
        home = Home(self.disk.copy(self.path), self.disk.settings)
        if remodel.branch is not None:
            with home.open() as graph:
                graph.branch_create(remodel.branch)
                graph.mutate('query q() { insert City { name: "rome" } }', branch=remodel.branch)
        return home

    def sides(self, remodel: Remodel) -> tuple[GraphSeen, GraphSeen]:
        if remodel.name not in self.known:
            home = self.start(remodel)
            graph = home.open()
            before = GraphSeen.of(graph)
            remodel.act(graph)
            self.known[remodel.name] = before, GraphSeen.of(graph)
            self.disk.remove(home.uri)
        return self.known[remodel.name]


@pytest.fixture(scope="module")
def origin(disk: DiskPlace) -> Origin:
    path = disk.fresh()
    build(path)
    return Origin(disk, path)


def _marked(case: RemodelCase) -> Any:
    return pytest.param(case, id=case.id, marks=() if is_short(case) else pytest.mark.full)


@pytest.mark.parametrize("case", [_marked(case) for case in CASES])
def test_an_apply_that_died_left_the_old_schema_or_the_new_one(
    case: RemodelCase, origin: Origin, children: Children
) -> None:
    remodel = case.remodel
    before, after = origin.sides(remodel)
    home = origin.start(remodel)
    version = home.open("r").snapshot().version
    _die(children, home, "apply", case.point, case.skip, remodel)
    assert GraphSeen.of(home.open("r")) in (before, after)
    for point, skip in case.then:
        _die(children, home, "open", point, skip, remodel)
        assert GraphSeen.of(home.open("r")) in (before, after)

    graph = home.open()
    assert GraphSeen.of(graph) == (after if case.lands else before)
    check_at_rest(graph)
    if case.armed:
        assert graph.snapshot().version > version, "an armed apply leaves a commit, also if it is rolled back"
    check_next_apply(graph, remodel)
    check_at_rest(home.open())
    origin.disk.remove(home.uri)


def _die(children: Children, home: Home, does: str, point: str, skip: int, remodel: Remodel) -> None:
    order = {**order_in(home, does), "remodel": remodel.name, "die_at": point, "skip": skip, "how": "kill"}
    ended = children.live(order)
    assert ended.code == DIED_BY["kill"], f"{point} was not reached: {ended.code} {ended.stderr}"


def check_next_apply(graph: Graph, remodel: Remodel) -> None:
    """The apply is done again, or for the first time, and then another one; rows can be written."""
    remodel.act(graph)
    more = graph.schema_apply(graph.schema().source + "node Later { name: String @key }\n")
    assert more.applied
    graph.mutate('query q() { insert Later { name: "l" } }')
    assert [row["l.name"] for row in graph.query("query q() { match { $l: Later } return { $l.name } }").rows] == ["l"]


def test_what_a_hard_drop_removed_before_it_died_is_gone_for_good(origin: Origin, children: Children) -> None:
    remodel = REMODELS["drop_hard"]
    home = origin.start(remodel)
    old = home.open("r").snapshot()
    _die(children, home, "apply", "schema_apply.mid_reclaim", remodel.reclaims - 1, remodel)
    graph = home.open()
    with pytest.raises(Reclaimed):
        list(graph.export(snapshot=old))
    assert b"".join(graph.export())


def test_an_apply_of_every_kind_of_step_dies_at_every_point() -> None:
    accepted = accept(SCHEMA, "domain").ir
    plans = [plan_source(accepted, remodel.source, **remodel.options) for remodel in REMODELS.values()]
    kinds = {step.kind for step in get_args(Step)} - {"unsupported_change"}
    assert {step.kind for plan in plans for step in plan.steps} == kinds


def test_every_point_of_an_apply_is_met_by_the_short_ring() -> None:
    short = {(case.point, case.skip) for case in CASES if is_short(case)}
    assert {(case.point, case.skip) for case in CASES} <= short
