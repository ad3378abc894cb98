"""Random graphs of two node types and three edge types, and what the algorithms say of them, worked out plainly."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import pyarrow as pa

import omnigraph as og

SCHEMA = """
node Person { name: String @key }
node Place { name: String @key }
edge Knows: Person -> Person
edge Lives: Person -> Place
edge Near: Place -> Place
"""
ENDS = {"Knows": ("Person", "Person"), "Lives": ("Person", "Place"), "Near": ("Place", "Place")}
Key = tuple[str, str]


class Net:
    """Nodes are (id, type); ids of the two types overlap."""

    def __init__(self, seed: int, size: int) -> None:
        chance = np.random.default_rng(seed)
        self.ids = {t: [f"n{i:03d}" for i in range(int(chance.integers(1, size)))] for t in ("Person", "Place")}
        self.edges: dict[str, list[tuple[str, str]]] = {}
        for name, (src, dst) in ENDS.items():
            count = int(chance.integers(0, 2 * size))
            self.edges[name] = [
                (str(chance.choice(self.ids[src])), str(chance.choice(self.ids[dst]))) for _ in range(count)
            ]

    def load(self, graph: og.Graph) -> og.Graph:
        frames: dict[str, Any] = {t: pa.table({"name": ids}) for t, ids in self.ids.items()}
        for name, pairs in self.edges.items():
            frames[name] = pa.table({"from": [a for a, _ in pairs], "to": [b for _, b in pairs]}, _PAIR)
        graph.load_frames(frames, mode="append")
        return graph

    def nodes(self, names: Iterable[str]) -> list[Key]:
        types = {end for name in names for end in ENDS[name]}
        return sorted((id, t) for t in types for id in self.ids[t])

    def arrows(self, names: Iterable[str]) -> list[tuple[Key, Key]]:
        return [((a, ENDS[n][0]), (b, ENDS[n][1])) for n in names for a, b in self.edges[n]]

    def degrees(self, names: list[str], direction: str) -> dict[Key, int]:
        found = dict.fromkeys(self.nodes(names), 0)
        for src, dst in self.arrows(names):
            if direction != "in":
                found[src] += 1
            if direction != "out":
                found[dst] += 1
        return found

    def components(self, names: list[str]) -> dict[Key, str]:
        group = {key: {key} for key in self.nodes(names)}
        for src, dst in self.arrows(names):
            if group[src] is not group[dst]:
                group[src] |= group[dst]
                for key in group[dst]:
                    group[key] = group[src]
        return {key: min(members)[0] for key, members in group.items()}

    def ranks(self, names: list[str], damping: float, iterations: int) -> dict[Key, float]:
        nodes, arrows = self.nodes(names), self.arrows(names)
        out = self.degrees(names, "out")
        rank = dict.fromkeys(nodes, 1 / len(nodes))
        for _ in range(iterations):
            stranded = sum(rank[key] for key in nodes if not out[key])
            after = dict.fromkeys(nodes, (1 - damping + damping * stranded) / len(nodes))
            for src, dst in arrows:
                after[dst] += damping * rank[src] / out[src]
            rank = after
        return rank


_PAIR = pa.schema([("from", pa.string()), ("to", pa.string())])


def found(result: Any) -> dict[Key, Any]:
    rows = result.rows
    keys = [(row["id"], row["type"]) for row in rows]
    assert keys == sorted(keys)
    return dict(zip(keys, (row["value"] for row in rows), strict=True))
