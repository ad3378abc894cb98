"""Processes that use the verbs on one graph at once, and what each of them was told; imported by name."""

from __future__ import annotations

import json
import os
import random
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from race_helpers import Ground, start_together

import omnigraph as og
from omnigraph.base import failpoints

TOWN = """
node Person { name: String @key  age: I32?  @index(age) }
node City { name: String @key }
edge Knows: Person -> Person
"""
OTHER = "other"
BRANCHES = ("a", "b", "team/x", "team")
PAIR = ("left", "right")


@dataclass(frozen=True)
class Answer:
    """One use of a verb: what it was about, and the commit that holds it or the error it met."""

    about: str
    commit: str | None = None
    error: str = ""
    where: str = ""
    told: str = ""


def person(name: str, age: int | None = None) -> dict[str, Any]:
    return {"type": "Person", "data": {"name": name, "age": age}}


def knows(src: str, dst: str) -> dict[str, Any]:
    return {"edge": "Knows", "from": src, "to": dst}


@contextmanager
def lines(rows: Iterable[dict[str, Any]]) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "in.jsonl")
        with open(path, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in rows)
        yield path


def load(graph: og.Graph, mode: str, *rows: dict[str, Any], **more: Any) -> og.LoadResult:
    with lines(rows) as path:
        return graph.load(path, mode=mode, **{"index": False, **more})  # type: ignore[arg-type]


def mutate(graph: og.Graph, body: str, **more: Any) -> og.MutationResult:
    return graph.mutate(f"query q() {{ {body} }}", **more)


def inserted(name: str, age: int | None = None) -> str:
    return f'insert Person {{ name: "{name}", age: {"null" if age is None else age} }}'


def answered(about: str, act: Callable[[], Any]) -> Answer:
    try:
        done = act()
    except og.OmniError as error:
        return Answer(about, error=type(error).__name__, told=str(error))
    return Answer(about, done.commit if done is not None else None)


def append_the_same(ground: Ground, writer: int, rounds: int) -> list[Answer]:
    """In each round everybody appends the same three people; the age says whose they are."""
    graph, answers = ground.open(), []
    for number in range(rounds):
        rows = [person(f"r{number}-{k}", writer) for k in range(3)]
        start_together(ground)
        answers.append(answered(f"r{number}", lambda rows=rows: load(graph, "append", *rows)))
    return answers


def write_once_prepared(ground: Ground, writer: int, rounds: int, verb: str) -> list[Answer]:
    """All prepare their write on one version of the table before any commits it, and none may try twice."""
    graph, answers = ground.open(), []
    for number in range(rounds):
        name = f"r{number}-w{writer}"
        start_together(ground)
        failpoints.arm("stage.files_written", lambda: start_together(ground))
        answers.append(answered(f"r{number}", lambda name=name: _without_retries(graph, verb, name)))
        failpoints.disarm_all()
    return answers


def _without_retries(graph: og.Graph, verb: str, name: str) -> Any:
    if verb == "insert":
        return mutate(graph, inserted(name), retries=0)
    return load(graph, verb, person(name), retries=0)


def join_or_delete(ground: Ground, writer: int, rounds: int) -> list[Answer]:
    """In each round some join a new person to another one while others delete it.

    All have prepared that on the same state before any of them commits, so that nobody finds out by chance.
    """
    graph, answers = ground.open(), []
    verb = ("delete", "insert", "delete", "append", "delete", "merge", "delete", "insert")[writer]
    for number in range(rounds):
        name = f"r{number}"
        if writer == 0:
            mutate(graph, inserted(name))
        start_together(ground)
        failpoints.arm("stage.files_written", lambda: start_together(ground))
        answers.append(answered(f"{verb} {name}", lambda n=number: _join_or_delete(graph, verb, n)))
        failpoints.disarm_all()
        start_together(ground)
    return answers


def _join_or_delete(graph: og.Graph, verb: str, number: int) -> Any:
    name = f"r{number}"
    if verb == "delete":
        return mutate(graph, f'delete Person where name = "{name}"')
    ends = (name, OTHER) if number % 2 else (OTHER, name)
    if verb == "insert":
        return mutate(graph, f'insert Knows {{ from: "{ends[0]}", to: "{ends[1]}" }}')
    return load(graph, verb, knows(*ends))


def write_or_index(ground: Ground, writer: int, turns: int) -> list[Answer]:
    """Every fourth writer builds indexes, the others insert, append and merge people of their own."""
    graph, answers = ground.open(), []
    start_together(ground)
    for turn in range(turns):
        name = f"w{writer}-{turn}"
        verb = "index" if writer % 4 == 0 else ("insert", "append", "merge")[turn % 3]
        answers.append(answered(f"{verb} {name}", lambda v=verb, n=name, t=turn: _write_or_index(graph, v, n, t)))
    return answers


def _write_or_index(graph: og.Graph, verb: str, name: str, turn: int) -> Any:
    if verb == "index":
        return graph.ensure_indices()
    if verb == "insert":
        return mutate(graph, inserted(name, turn))
    done = load(graph, verb, person(name, turn), index=turn % 2 == 0)
    assert done.warnings == (), done.warnings
    return done


def write_pairs(ground: Ground, writer: int, turns: int) -> list[Answer]:
    """Both of a pair get the same new age by a merge, by inserts or by an update; the commit says which."""
    graph, answers = ground.open(), []
    start_together(ground)
    for turn in range(turns):
        age, verb = (writer + 1) * 1000 + turn, ("merge", "insert", "update")[(writer + turn) % 3]
        answers.append(answered(f"{verb} {age}", lambda v=verb, a=age: _write_pair(graph, v, a)))
    return answers


def _write_pair(graph: og.Graph, verb: str, age: int) -> Any:
    if verb == "merge":
        return load(graph, "merge", *(person(name, age) for name in PAIR), message=str(age))
    if verb == "insert":
        return mutate(graph, " ".join(inserted(name, age) for name in PAIR), message=str(age))
    return mutate(graph, f"update Person set {{ age: {age} }} where age >= 0", message=str(age))


def live_on_branches(ground: Ground, writer: int, turns: int) -> list[Answer]:
    """Make, delete and write the same few branches; a write is one row in two tables, by a mutation or by a load."""
    graph, chance, answers = ground.open(), random.Random(writer), []
    start_together(ground)
    for turn in range(turns):
        name = chance.choice(BRANCHES)
        verb = chance.choice(("create", "delete", "insert", "insert", "load", "load_from"))
        row, before = f"w{writer}-{turn}", _incarnation(graph, name)
        told = answered(row, lambda v=verb, n=name, r=row: _on_branch(graph, v, n, r))
        same = before is not None and before == _incarnation(graph, name)
        answers.append(Answer(row, told.commit, told.error, f"{name}@{before}" if same else "", f"{verb} {told.told}"))
    return answers


def _incarnation(graph: og.Graph, name: str) -> str | None:
    try:
        return graph.view(name).incarnation
    except og.OmniError:
        return None


def _on_branch(graph: og.Graph, verb: str, name: str, row: str) -> Any:
    match verb:
        case "create":
            return graph.branch_create(name)
        case "delete":
            return graph.branch_delete(name)
        case "insert":
            return mutate(graph, f'insert Person {{ name: "{row}" }} insert City {{ name: "{row}" }}', branch=name)
    rows = (person(row), {"type": "City", "data": {"name": row}})
    return load(graph, "append", *rows, branch=name, from_branch="main" if verb == "load_from" else None)


def load_onto_new_branches(ground: Ground, writer: int, rounds: int) -> list[Answer]:
    """In each round everybody loads onto a branch that nobody has made yet."""
    graph, answers = ground.open(), []
    for number in range(rounds):
        start_together(ground)
        row, branch = f"w{writer}", f"new{number}"
        try:
            done = load(graph, "append", person(row), branch=branch, from_branch="main")
        except og.OmniError as error:
            answers.append(Answer(row, error=type(error).__name__, where=branch, told=str(error)))
            continue
        answers.append(Answer(row, done.commit, where=branch, told="made" if done.branch_created else ""))
    return answers
