"""A process dies inside a verb; the next one finds the graph before it or after it, on every branch."""

from __future__ import annotations

from dataclasses import asdict

import pytest
from crash_children import DIED_BY, Children
from crash_verbs import VERBS, Verb, build, content

from graph_places import DiskPlace, sidecars
from omnigraph.graph import Graph

pytestmark = pytest.mark.slow
CASES = [(verb, point) for verb in VERBS.values() for point in verb.points]


@pytest.fixture(scope="module")
def disk(tmp_path_factory: pytest.TempPathFactory) -> DiskPlace:
    return DiskPlace(tmp_path_factory.mktemp("verbs"))


@pytest.fixture(scope="module")
def template(disk: DiskPlace) -> str:
    path = disk.fresh()
    build(path)
    return path


@pytest.fixture(scope="module")
def afters(disk: DiskPlace, template: str) -> dict[str, dict[str, list[str]]]:
    """What each verb makes of the graph when nobody dies."""
    found = {}
    for verb in VERBS.values():
        graph = Graph.open(disk.copy(template))
        verb.prepare(graph)
        verb.act(graph)
        found[verb.name] = content(graph)
    return found


@pytest.mark.parametrize(("verb", "point"), CASES, ids=lambda value: value.name if isinstance(value, Verb) else value)
def test_a_verb_that_died_left_the_graph_before_or_after(
    verb: Verb, point: str, disk: DiskPlace, template: str, afters: dict[str, dict[str, list[str]]], children: Children
) -> None:
    path = disk.copy(template)
    with Graph.open(path) as graph:
        verb.prepare(graph)
        before = content(graph)
    order = {"does": "verb", "verb": verb.name, "path": path, "settings": asdict(disk.settings), "die_at": point}
    ended = children.live({**order, "how": "kill"})
    assert ended.code == DIED_BY["kill"], f"{point} was not reached: {ended.stderr}"

    created = {**before, "draft": before["main"]}
    allowed = [before, afters[verb.name], *([created] if verb.name == "load_on_new_branch" else [])]
    assert content(Graph.open(path, "r")) in allowed
    again = Graph.open(path)
    assert content(again) in allowed
    if "post_manifest" in point and verb.name != "load_on_new_branch":
        assert content(again) == afters[verb.name]

    branch = verb.branch if verb.branch in again.branch_list() else "main"
    again.mutate('query q() { insert City { name: "next" } }', branch=branch)
    assert '"next"' in "".join(content(again)[branch])
    assert sidecars(disk, path) == []
    for told in again.status().branches:
        owner = None if told.branch == "main" else told.branch
        entries = again.snapshot(told.branch).tables
        drifted = [t for t in told.tables if entries[t.table_key].table_branch == owner and t.head != t.pinned]
        assert drifted == []
    disk.remove(path)
