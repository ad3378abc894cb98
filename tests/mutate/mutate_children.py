"""Processes that mutate the same graph at once."""

from __future__ import annotations

import random

import omnigraph as og

NAMES = [f"p{i}" for i in range(6)]


def live(uri: str, number: int, turns: int) -> tuple[int, list[str]]:
    """Insert people and edges between them, delete people; answers how many succeeded and what was refused."""
    graph, chance = og.Graph.open(uri), random.Random(number)
    done, refused = 0, []
    for _ in range(turns):
        one, two = chance.choice(NAMES), chance.choice(NAMES)
        text = chance.choice(
            [
                f'insert Person {{ name: "{one}" }}',
                f'insert Follows {{ from: "{one}", to: "{two}" }}',
                f'insert Person {{ name: "{one}" }} insert Follows {{ from: "{one}", to: "{two}" }}',
                f'delete Person where name = "{one}"',
                f'update Person set {{ age: {number} }} where name = "{one}"',
            ]
        )
        try:
            graph.mutate(f"query q() {{ {text} }}")
            done += 1
        except og.OmniError as error:
            refused.append(f"{type(error).__name__}: {error}")
    return done, refused


def insert_many(uri: str, number: int, count: int) -> list[str]:
    """Insert rows nobody else inserts; every one must be accepted, however many others write."""
    graph = og.Graph.open(uri)
    names = [f"w{number}-{i}" for i in range(count)]
    for name in names:
        graph.mutate("query q($n: String) { insert Person { name: $n } }", {"n": name})
    return names
