"""Processes that apply schemas, write and read at the same time. What each of them met is its answer."""

from __future__ import annotations

from multiprocessing.connection import Connection
from typing import Any

import omnigraph as og
from omnigraph.base.errors import Conflict, OmniError
from omnigraph.storage.tables import head_version


def answer(work: Any, to: Connection, *given: Any) -> None:
    """The whole life of a process: what `work` returns, or the error it ended with."""
    try:
        to.send(work(*given))
    except BaseException as error:
        to.send(error)
        raise


def apply_each(uri: str, sources: list[str]) -> list[str]:
    """Apply the sources in turn, each until it is in force; how each attempt ended."""
    graph, met = og.Graph.open(uri), []
    for source in sources:
        while True:
            try:
                met.append("applied" if graph.schema_apply(source).applied else "nothing")
                break
            except Conflict as error:
                met.append(str(error))
    return met


def apply_once(uri: str, source: str) -> str:
    try:
        return "applied" if og.Graph.open(uri).schema_apply(source).applied else "nothing"
    except Conflict as error:
        return str(error)


def insert_until(uri: str, name: str, count: int) -> list[str]:
    """Insert people until `count` of them are in; the names that were acknowledged."""
    graph, known = og.Graph.open(uri), []
    number = 0
    while len(known) < count:
        number += 1
        try:
            graph.mutate(f'query q() {{ insert Person {{ name: "{name}{number}" }} }}')
            known.append(f"{name}{number}")
        except Conflict:
            continue
    return known


def read_until(uri: str, count: int) -> list[str]:
    """Open, read and refresh over and over; what went wrong."""
    wrong = []
    graph = og.Graph.open(uri, "r")
    for number in range(count):
        try:
            handle = og.Graph.open(uri, "r") if number % 3 == 0 else graph
            if number % 5 == 0:
                graph.refresh()
            catalog = handle.schema().catalog
            assert catalog.find_node("Person") is not None
            list(handle.export(["Person"]))
            handle.query("query q() { match { $p: Person } return { $p.name } }")
        except OmniError as error:
            wrong.append(f"{type(error).__name__}: {error}")
    return wrong


def drifted(graph: og.Graph) -> list[str]:
    entries = graph.snapshot().tables.items()
    ref = graph.context.ref
    return [k for k, e in entries if head_version(ref(e.location, e.table_branch), e.table_version) != e.table_version]
