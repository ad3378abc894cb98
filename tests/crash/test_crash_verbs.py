"""A process dies inside a verb; the next one finds the graph before it or after it, on every branch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from crash_cases import seed_of_today
from crash_children import DIED_BY, Children
from crash_scene import order_in
from crash_verbs import VERBS, Verb, VerbCase, build, chosen, chosen_on_s3, content, every_case

from graph_places import DISK, S3, DiskPlace, Home, Place, S3Place, sidecars
from index_answers import disagreements
from omnigraph.graph import Graph

pytestmark = pytest.mark.slow
CASES = every_case()
SHORT = {DISK: chosen(CASES, seed_of_today()), S3: chosen_on_s3(CASES)}
Branches = dict[str, list[str]]


@dataclass
class Origin:
    """The graph every case starts from, and what each verb makes of it when nobody dies."""

    disk: DiskPlace
    path: str
    afters: dict[str, Branches] = field(default_factory=dict)

    def after(self, verb: Verb) -> Branches:
        """On the local disk; a graph looks the same wherever it lies."""
        if verb.name not in self.afters:
            graph = Graph.open(self.disk.copy(self.path))
            verb.prepare(graph)
            verb.act(graph)
            self.afters[verb.name] = content(graph)
            self.disk.remove(graph.uri)
        return self.afters[verb.name]


@pytest.fixture(scope="module")
def origin(disk: DiskPlace) -> Origin:
    path = disk.fresh()
    build(path)
    return Origin(disk, path)


@pytest.fixture(scope="module")
def place_of(disk: DiskPlace, request: pytest.FixtureRequest) -> Callable[[str], Place]:
    return lambda where: S3Place(request.getfixturevalue("s3_server")) if where == S3 else disk


def marked(where: str, case: VerbCase) -> Any:
    name = case.id if where == DISK else f"{case.id}-on-{where}"
    return pytest.param(where, case, id=name, marks=() if case.id in SHORT[where] else pytest.mark.full)


@pytest.mark.parametrize(("where", "case"), [marked(where, c) for where in SHORT for c in CASES])
def test_a_verb_that_died_left_the_graph_before_or_after(
    where: str, case: VerbCase, place_of: Callable[[str], Place], origin: Origin, children: Children
) -> None:
    place, verb = place_of(where), case.verb
    home = Home(place.copy(origin.path), place.settings)
    with home.open() as graph:
        verb.prepare(graph)
        before = content(graph)
    order = {**order_in(home, "verb"), "verb": verb.name, "die_at": case.point, "skip": case.skip, "how": "kill"}
    ended = children.live(order)
    assert ended.code == DIED_BY["kill"], f"{case.point} was not reached: {ended.stderr}"

    after = origin.after(verb)
    if verb.name == "load_on_new_branch":
        before = {**before, "draft": before["main"]}
    assert content(home.open("r")) in (before, after)
    again = home.open()
    assert content(again) == (after if case.lands else before)
    assert disagreements(again) == []
    check_next_writes(again, verb.branch)
    check_at_rest(place, home)
    place.remove(home.uri)


def check_next_writes(graph: Graph, branch: str) -> None:
    """The branch, made anew if it is not there, is written, indexed and deleted as if nobody had died."""
    if branch not in graph.branch_list():
        graph.branch_create(branch)
    before = content(graph)
    graph.mutate('query q() { insert City { name: "next" } }', branch=branch)
    graph.ensure_indices(branch)
    now = content(graph)
    assert {name: rows for name, rows in now.items() if name != branch} == {
        name: rows for name, rows in before.items() if name != branch
    }
    (added,) = set(now[branch]) - set(before[branch])
    assert '"next"' in added
    assert len(now[branch]) == len(before[branch]) + 1
    if branch != "main":
        graph.branch_delete(branch)
        assert branch not in graph.branch_list()


def check_at_rest(place: Place, home: Home) -> None:
    assert sidecars(place, home.uri) == []
    graph = home.open("r")
    assert [t for told in graph.status().branches for t in told.tables if t.drifted] == []


def test_the_short_ring_meets_every_point_and_every_verb() -> None:
    for where, place in ((DISK, "point"), (S3, "window")):
        short = [c for c in CASES if c.id in SHORT[where]]
        assert {getattr(c, place) for c in short} == {getattr(c, place) for c in CASES}
        assert {c.verb.name for c in short} == set(VERBS)
