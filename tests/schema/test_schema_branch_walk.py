"""Random walks with a branch beside main: additions reach it lazily, and its rows come home under the newest schema."""

from __future__ import annotations

import copy
import random
from pathlib import Path

import pytest
from test_schema_walk import change_schema, compare
from walk_model import Content, World

import omnigraph as og

ROUNDS, STEPS = 3, 8
FEW, MANY = range(1), range(1, 10)


def write(graph: og.Graph, world: World, branch: str, owned: set[str], chance: random.Random) -> None:
    """Insert a row, or change one that this side alone changes, so that a merge has no conflicts."""
    kept = world.rows
    world.rows = {number: {id: row for id, row in rows.items() if id in owned} for number, rows in kept.items()}
    text = chance.choice([world.insert, world.insert, world.update, world.delete])()
    for number, rows in world.rows.items():
        others = {id: row for id, row in kept[number].items() if id not in owned}
        owned |= set(rows)
        kept[number] = {**others, **rows}
    world.rows = kept
    if text is not None:
        graph.mutate(f"query q() {{ {text} }}", branch=branch)
        world.committed(graph.list_commits(branch)[0].graph_commit_id)


def apart(world: World, handles: list[og.Graph], chance: random.Random) -> Content:
    """Work on main and on draft; what the draft holds in the end."""
    draft = copy.deepcopy(world.rows)
    inherited = {id for rows in draft.values() for id in rows}
    owned: dict[str, set[str]] = {"main": set(), "draft": inherited}
    sides = {"main": world.rows, "draft": draft}
    for _ in range(STEPS):
        graph = chance.choice(handles)
        if chance.random() < 0.35:
            world.rows = sides["main"]
            if chance.choice([world.add_type, world.add_property, world.add_property])():
                graph.schema_apply(world.source())
                world.committed(graph.list_commits()[0].graph_commit_id)
            for number in world.types:
                draft.setdefault(number, {})
        else:
            side = chance.choice(["main", "draft", "draft"])
            world.rows = sides[side]
            write(graph, world, side, owned[side], chance)
        for name, content in sides.items():
            compare(chance.choice(handles), world, content, chance, branch=name)
        old = chance.choice(sorted(world.past))
        compare(chance.choice(handles), world, world.past[old], chance, snapshot=old)
    world.rows = sides["main"]
    for number, rows in draft.items():
        own = {id: row for id, row in world.rows[number].items() if id in owned["main"]}
        world.rows[number] = {**rows, **own}
    return draft


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.full) for seed in MANY)])
def test_a_branch_beside_schema_changes_comes_home_whole(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    world = World(chance)
    world.add_type()
    graph = og.Graph.init(str(tmp_path / "graph"), world.source())
    handles = [graph, og.Graph.open(graph.uri)]
    for _ in range(ROUNDS):
        for _ in range(3):
            write(graph, world, "main", {id for rows in world.rows.values() for id in rows}, chance)
        graph.branch_create("draft")
        draft = apart(world, handles, chance)
        if chance.random() < 0.5:
            graph.branch_merge("main", "draft")
            compare(handles[1], world, world.rows, chance, branch="draft")
        else:
            compare(handles[1], world, draft, chance, branch="draft")
        handles[1].branch_merge("draft", "main", delete_branch=True)
        kept = {commit.graph_commit_id for commit in graph.list_commits()}
        world.past = {id: content for id, content in world.past.items() if id in kept}
        for handle in handles:
            compare(handle, world, world.rows, chance)
        if change_schema(graph, world, chance):
            compare(handles[1], world, world.rows, chance)
    fresh = og.Graph.open(graph.uri)
    compare(fresh, world, world.rows, chance)
    assert fresh.verify().findings == ()
