"""A graph with everything a clone has to carry, and what a user can see of one."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa

import omnigraph as og
from graph_places import Home, Place
from omnigraph.engine.clone.cut import ACTOR
from omnigraph.records.blobs import EXTERNAL_MARKER
from processes import FORKED

SCHEMA = """
node Person { name: String @key  age: I32? @index  bio: String? @index  photo: Blob? }
edge Knows: Person -> Person
"""
FIRST = f"{SCHEMA}\nnode Gone {{ name: String @key }}\n"
"""What the graph begins with, before a type is dropped."""
WIDER = SCHEMA.replace("photo: Blob?", "photo: Blob?  mail: String?") + "node Late { name: String @key }\n"
"""What main is changed to while branches live, so that they lag behind."""
WAIT_S = 200
LARGE = b"photo" * 40_000
"""More than a data file keeps inline."""


def people(*names: str, age: int = 1, photo: str | None = None) -> pa.Table:
    columns = {
        "name": list(names),
        "age": pa.array([age] * len(names), pa.int32()),
        "bio": [f"{name} likes the sea" for name in names],
    }
    return pa.table(columns | ({"photo": [photo] * len(names)} if photo is not None else {}))


def knows(*pairs: tuple[str, str]) -> pa.Table:
    return pa.table({"from": [p[0] for p in pairs], "to": [p[1] for p in pairs]})


def add(graph: og.Graph, *names: str, branch: str | None = None, **more: Any) -> None:
    graph.load_frames({"Person": people(*names, **more)}, mode="merge", branch=branch)


def furnish(home: Home) -> None:
    """Branches with forks, one below the other, one without, all behind the schema; a merge, tags, blobs, edges."""
    with home.init(FIRST) as graph:
        graph.load_frames({"Gone": pa.table({"name": ["once"]})}, mode="append")
        graph.schema_apply(SCHEMA, message="no longer wanted")
        managed = "base64:" + base64.b64encode(LARGE).decode()
        add(graph, "ann", photo=managed)
        graph.write({"node:Person": og.Append(_elsewhere(graph, "bob", "s3://elsewhere/bob.png"))})
        graph.load_frames({"Knows": knows(("ann", "bob"))}, mode="merge", message="they met", actor="act-eve")
        graph.tag_create("first", message="a start")
        graph.branch_create("draft")
        add(graph, "cyd", branch="draft")
        add(graph, "dan", branch="draft", age=2)
        graph.tag_create("middle", "draft")
        add(graph, "eve", branch="draft")
        graph.branch_create_from("draft", "team/deep")
        add(graph, "fay", branch="team/deep")
        graph.mutate('query gone() { delete Person where name = "cyd" }', branch="team/deep")
        graph.branch_create("idle")
        graph.branch_create("done")
        add(graph, "gus", branch="done")
        graph.branch_merge("done", message="in it goes")
        add(graph, "hal")
        add(graph, "ida", branch="done")
        graph.schema_apply(WIDER, message="people have mail")
        graph.load_frames({"Late": pa.table({"name": ["new type"]})}, mode="append")


def _elsewhere(graph: og.Graph, name: str, uri: str) -> pa.Table:
    """A person whose photo is a reference, as it is stored."""
    schema = graph.view().table("node:Person").schema
    values = {
        "id": name,
        "name": name,
        "age": 1,
        "bio": f"{name} likes the sea",
        "photo": EXTERNAL_MARKER + uri.encode(),
    }
    return pa.table({f.name: pa.array([values[f.name]], f.type) for f in schema}, schema=schema)


def content(graph: og.Graph) -> dict[str, list[str]]:
    """Every row of every branch, as an export has it."""
    return {branch: exported(graph, branch=branch) for branch in graph.branch_list()}


def exported(graph: og.Graph, **target: Any) -> list[str]:
    return sorted(b"".join(graph.export(**target)).decode().splitlines())


def names(graph: og.Graph, **target: Any) -> list[str]:
    lines = [json.loads(line) for line in exported(graph, **target)]
    return sorted(line["data"]["name"] for line in lines if line.get("type") == "Person")


def histories(graph: og.Graph) -> dict[str, list[Any]]:
    """The commits of every branch, but those by which a clone says that it was one."""
    return {
        branch: [
            {**vars(c), "counts": dict(c.counts), "metadata": dict(c.metadata)}
            for c in graph.list_commits(branch)
            if c.actor_id != ACTOR
        ]
        for branch in graph.branch_list()
    }


def row_identity(graph: og.Graph, branch: str | None) -> list[tuple[Any, ...]]:
    """Rows with their stable ids and the versions that made them."""
    columns = ["id", "_rowid", "_row_created_at_version", "_row_last_updated_at_version"]
    found = graph.view(branch).table("node:Person").read(columns)
    return sorted(zip(*(found.column(c).to_pylist() for c in columns), strict=True))


def clone(source: Home, target: Home, **more: Any) -> og.CloneResult:
    return og.clone(source.uri, target.uri, settings=target.settings, **more)


def homes(from_: Place, to: Place) -> tuple[Home, Home]:
    """Two places; where one of them is a store, its settings reach both."""
    settings = from_.settings if from_.name == "s3" else to.settings
    return Home(from_.fresh(), settings), Home(to.fresh(), settings)


def ended(worker: Callable[..., None], *arguments: Any) -> int:
    """How a process ended."""
    process = FORKED.Process(target=worker, args=arguments)
    process.start()
    process.join(WAIT_S)
    assert process.exitcode is not None, f"{worker.__name__} did not end"
    return int(process.exitcode)


@contextmanager
def running(worker: Callable[..., None], *arguments: Any) -> Iterator[Any]:
    process = FORKED.Process(target=worker, args=arguments)
    process.start()
    try:
        yield process
    finally:
        if process.is_alive():
            process.kill()
        process.join(WAIT_S)
