"""Random walks of schema changes and writes, read on handles that stay warm: every commit shows what the model says."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pytest
from walk_model import Prop, World

import omnigraph as og

Seen = dict[str, list[dict[str, Any]]]
STEPS = 30
FEW, MANY = range(1), range(1, 12)


def by_query(graph: og.Graph, world: World, target: dict[str, Any]) -> Seen:
    found: Seen = {}
    for kind in world.types.values():
        names = ["k", *(prop.name for prop in kind.props.values())]
        returned = ", ".join(f"$n.{name} as {name}" for name in names)
        text = f"query q() {{ match {{ $n: {kind.name} }} return {{ {returned} }} order {{ k asc }} }}"
        found[kind.name] = graph.query(text, **target).rows
    return found


def by_sql(graph: og.Graph, world: World, target: dict[str, Any]) -> Seen:
    found: Seen = {}
    for kind in world.types.values():
        names = ", ".join(["k", *(prop.name for prop in kind.props.values())])
        found[kind.name] = graph.sql(f"select {names} from node_{kind.name} order by k", **target).rows
    return found


def by_export(graph: og.Graph, world: World, target: dict[str, Any]) -> Seen:
    found: Seen = {kind.name: [] for kind in world.types.values()}
    for line in b"".join(graph.export(**target)).decode().splitlines():
        row = json.loads(line)
        found[row["type"]].append({name: value for name, value in row["data"].items() if name != "id"})
    return found


def by_condition(graph: og.Graph, world: World, target: dict[str, Any]) -> Seen:
    """Each row found again by one of its values, where it has one."""
    found: Seen = {}
    for kind in world.types.values():
        conditions = [f"$n.{prop.name} >= 0" for prop in kind.props.values()]
        matched = "  ".join([f"$n: {kind.name}", *conditions])
        text = f"query q() {{ match {{ {matched} }} return {{ $n.k as k }} order {{ k asc }} }}"
        found[kind.name] = graph.query(text, **target).rows
    return found


def compare(graph: og.Graph, world: World, content: Any, chance: random.Random, **target: Any) -> None:
    expected = world.seen(content)
    read = chance.choice([by_query, by_sql, by_export])
    assert read(graph, world, target) == expected, f"{read.__name__} at {target}\n{world.source()}"
    full = {name: [{"k": row["k"]} for row in rows if None not in row.values()] for name, rows in expected.items()}
    assert by_condition(graph, world, target) == full, f"by condition at {target}\n{world.source()}"


def change_schema(graph: og.Graph, world: World, chance: random.Random) -> bool:
    changes = [world.add_type, world.drop_type, world.rename_type, world.add_property, world.add_required_property]
    changes += [world.drop_property, world.rename_property, world.rename_property]
    if not chance.choice(changes)():
        return False
    graph.schema_apply(world.source())
    world.without_hints()
    return True


def change_rows(graph: og.Graph, world: World, chance: random.Random) -> bool:
    made = [world.insert, world.insert, world.update, world.delete]
    text = chance.choice(made)()
    if text is None:
        return False
    graph.mutate(f"query q() {{ {text} }}")
    return True


@pytest.mark.slow
@pytest.mark.parametrize("seed", [*FEW, *(pytest.param(seed, marks=pytest.mark.full) for seed in MANY)])
def test_every_commit_shows_what_the_schema_of_now_says_of_it(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    world = World(chance)
    world.add_type()
    graph = og.Graph.init(str(tmp_path / "graph"), world.source())
    cold = og.Settings.resolve(cache_hot_bytes=0, cache_csr_bytes=0)
    handles = [graph, og.Graph.open(graph.uri), og.Graph.open(graph.uri, "r", settings=cold)]
    world.committed(graph.list_commits()[0].graph_commit_id)
    for _ in range(STEPS):
        writer = chance.choice(handles[:2])
        change = change_schema if chance.random() < 0.4 else change_rows
        if not change(writer, world, chance):
            continue
        if chance.random() < 0.15:
            writer.ensure_indices()
        commits = writer.list_commits()
        world.committed(commits[0].graph_commit_id)
        for handle in handles:
            compare(handle, world, world.rows, chance)
        old = chance.choice(sorted(world.past))
        compare(chance.choice(handles), world, world.past[old], chance, snapshot=old)
    fresh = og.Graph.open(graph.uri)
    for commit_id, content in world.past.items():
        compare(fresh, world, content, chance, snapshot=commit_id)
    assert fresh.verify().findings == ()


def test_the_model_fills_in_and_forgets_as_the_page_says() -> None:
    world = World(random.Random(1))
    world.add_type()
    [(number, kind)] = world.types.items()
    world.insert()
    before = {number: {id: dict(row) for id, row in world.rows[number].items()}}
    new = world.number()
    kind.props[new] = Prop("z", required=True)
    [row] = world.seen(before)[kind.name]
    assert row["z"] is None
