"""Processes that make, write and delete the same few branches at once."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import pyarrow as pa

import omnigraph as og

NAMES = ("a", "b", "team/x", "team")


@dataclass
class Done:
    """What one process was told: rows acknowledged by branch incarnation, and errors by class."""

    rows: dict[str, list[str]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)


def live(uri: str, number: int, rounds: int) -> Done:
    graph, chance, done = og.Graph.open(uri), random.Random(number), Done()
    for turn in range(rounds):
        name = chance.choice(NAMES)
        verb = chance.choice(("create", "write", "write", "write", "delete"))
        try:
            if verb == "create":
                graph.branch_create(name)
            elif verb == "delete":
                graph.branch_delete(name)
            else:
                view = graph.view(name)
                row = f"w{number}-{turn}"
                table = pa.table({"id": [row], "name": [row]})
                graph.write({"node:Left": og.Append(table), "node:Right": og.Append(table)}, view=view)
                done.rows.setdefault(f"{name}@{view.incarnation}", []).append(row)
        except og.OmniError as error:
            done.errors.append(f"{verb} {name}: {type(error).__name__}: {error}")
    return done
