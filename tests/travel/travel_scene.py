"""A small graph with a past: what each commit showed is written down beside it."""

from __future__ import annotations

from dataclasses import dataclass

import orjson

import omnigraph as og

SCHEMA = """
node Person { name: String @key  age: I32? }
node City { name: String @key }
edge Knows: Person -> Person
"""
NAMES = "query names() { match { $p: Person } return { $p.name } order { $p.name asc } }"
SQL = "SELECT name FROM node_Person ORDER BY name"


def add(graph: og.Graph, name: str, branch: str | None = None, **more: str) -> str:
    """One person more; the commit."""
    done = graph.mutate(f'query add() {{ insert Person {{ name: "{name}" }} }}', branch=branch, **more)
    assert done.commit is not None
    return done.commit


def people(graph: og.Graph, **target: object) -> list[str]:
    """The names a query finds; every other way to read must find the same."""
    found = [row["p.name"] for row in graph.query(NAMES, **target).rows]
    assert [row["name"] for row in graph.sql(SQL, **target).rows] == found
    lines = b"".join(graph.export(["Person"], **target)).splitlines()
    assert [orjson.loads(line)["data"]["name"] for line in lines] == found
    return found


@dataclass(frozen=True)
class Past:
    """Main grew by ana, bo, cy; draft left it after bo and grew by di, ed."""

    graph: og.Graph
    ids: dict[str, str]

    @property
    def shown(self) -> dict[str, list[str]]:
        return {
            "ana": ["ana"],
            "bo": ["ana", "bo"],
            "cy": ["ana", "bo", "cy"],
            "di": ["ana", "bo", "di"],
            "ed": ["ana", "bo", "di", "ed"],
        }


def past_in(graph: og.Graph) -> Past:
    ids = {name: add(graph, name, actor=f"act-{name}", message=f"{name} came") for name in ("ana", "bo")}
    graph.branch_create("draft")
    ids["di"] = add(graph, "di", "draft")
    ids["cy"] = add(graph, "cy")
    ids["ed"] = add(graph, "ed", "draft")
    return Past(graph, ids)


def clean(graph: og.Graph, keep: int = 1) -> int:
    """Keep the newest commits of each branch only; how many versions went."""
    return graph.cleanup(keep=keep, confirm=True).versions_removed
