"""Processes that write, merge, undo, make and delete the same few branches at once, and what each was told."""

from __future__ import annotations

import random
import threading
from dataclasses import dataclass
from typing import Any

import omnigraph as og

# Those that stay take nothing from those that come and go, so that all their history can be read afterwards.
STAYING, PASSING = ("main", "a", "b"), ("c", "d")
SETTINGS = og.Settings(storage_durability="os")
_VERBS = {"insert": 10, "age": 6, "delete": 6, "merge": 12, "revert": 4, "reset": 2, "create": 5, "drop": 1}
_gate: threading.Barrier | None = None


def enter(gate: Any) -> None:
    """Give a process of the pool the barrier that all begin at."""
    global _gate
    _gate = gate


@dataclass(frozen=True)
class Answer:
    """One use of a verb; `where` is the branch and the life of it, if it was the same before and afterwards."""

    verb: str
    commit: str | None = None
    error: str = ""
    where: str = ""
    told: str = ""


def live(uri: str, worker: int, turns: int) -> list[Answer]:
    graph, chance, answers = og.Graph.open(uri, settings=SETTINGS), random.Random(worker), []
    assert _gate is not None
    _gate.wait(120)
    for turn in range(turns):
        verb = chance.choices(list(_VERBS), list(_VERBS.values()))[0]
        name = chance.choice(PASSING if verb in ("create", "drop") else (*STAYING, *PASSING))
        other = chance.choice([n for n in (STAYING if name in STAYING else (*STAYING, *PASSING)) if n != name])
        before = life_of(graph, name)
        answer = _answered(graph, chance, verb, name, other, f"w{worker}-{turn}")
        same = before is not None and before == life_of(graph, name)
        answers.append(Answer(verb, answer.commit, answer.error, f"{name}@{before}" if same else "", answer.told))
    return answers


def life_of(graph: og.Graph, name: str) -> str | None:
    try:
        return graph.view(name).incarnation
    except og.OmniError:
        return None


def _answered(graph: og.Graph, chance: random.Random, verb: str, name: str, other: str, row: str) -> Answer:
    try:
        return Answer(verb, _act(graph, chance, verb, name, other, row))
    except og.OmniError as error:
        return Answer(verb, error=type(error).__name__, told=str(error))


def _act(graph: og.Graph, chance: random.Random, verb: str, name: str, other: str, row: str) -> str | None:
    """The commit it made, if any; what a mutation says of itself is its message."""
    match verb:
        case "insert":
            edge = f'insert MemberOf {{ from: "{row}", to: "{row}" }}'
            body = f'insert Person {{ name: "{row}" }} insert Team {{ code: "{row}" }} {edge}'
            return graph.mutate(f"query q() {{ {body} }}", branch=name, message=f"insert {row}").commit
        case "age" | "delete":
            people = graph.view(name).table("node:Person").read(["id"])["id"].to_pylist()
            chosen, age = chance.choice([*people, "nobody"]), chance.randrange(10)
            body = f"update Person set {{ age: {age} }}" if verb == "age" else "delete Person"
            text = f'query q() {{ {body} where name = "{chosen}" }}'
            return graph.mutate(text, branch=name, message=f"{verb} {chosen} {age}").commit
        case "merge":
            done = graph.branch_merge(other, name, strategy=chance.choice(("ours", "theirs")))
            assert isinstance(done, og.MergeResult)
            return done.graph_commit_id
        case "revert":
            return graph.commit_revert(f"{name}~{chance.randrange(3)}", branch=name).graph_commit_id
        case "reset":
            return graph.branch_reset(name, f"{name}~{chance.randrange(4)}").graph_commit_id
        case "create":
            graph.branch_create_from(other, name)
        case "drop":
            graph.branch_delete(name)
    return None
