"""A small graph and the ways to harm it from outside, on a disk or an object store alike."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from typing import Any

import lance
import obstore
import pyarrow as pa

import omnigraph as og
from omnigraph.storage.inventory import recorded_files, recorded_segments
from omnigraph.storage.tables import Table, TableRef, open_table

PERSON, CITY, KNOWS, LIVES = "node:Person", "node:City", "edge:Knows", "edge:Lives"
SCHEMA = """
node Person { name: String @key  age: I32?  bio: String? @index  @range(age, 0..150) }
node City { name: String @key  code: String? @unique }
edge Knows: Person -> Person { since: I32? }
edge Lives: Person -> City @card(0..1)
"""
PEOPLE = [f"p{number:02d}" for number in range(20)]


def fill(graph: og.Graph) -> None:
    """Rows in every table, indexes, and a past."""
    people = pa.table({"name": PEOPLE, "age": pa.array(range(20), pa.int32()), "bio": [f"likes {p}" for p in PEOPLE]})
    graph.load_frames({"Person": people}, mode="merge")
    graph.load_frames({"City": pa.table({"name": ["Rome", "Oslo"], "code": ["ro", "os"]})}, mode="merge")
    knows = {"from": PEOPLE[:-1], "to": PEOPLE[1:], "since": pa.array(range(19), pa.int32())}
    lives = {"from": PEOPLE[:10], "to": ["Rome"] * 10}
    graph.load_frames({"Knows": pa.table(knows), "Lives": pa.table(lives)}, mode="append")
    insert(graph, "later")


def insert(graph: og.Graph, name: str, branch: str | None = None) -> None:
    graph.mutate(f'query add() {{ insert Person {{ name: "{name}", age: 1 }} }}', branch=branch)


def ref_of(graph: og.Graph, key: str, branch: str | None = None) -> TableRef:
    entry = graph.snapshot(branch).tables[key]
    return graph.context.ref(entry.location, entry.table_branch)


def pinned(graph: og.Graph, key: str, branch: str | None = None) -> Table:
    return open_table(ref_of(graph, key, branch), graph.snapshot(branch).tables[key].table_version, key, fresh=True)


def foreign(graph: og.Graph, key: str, branch: str | None = None) -> lance.LanceDataset:
    """The table as another tool opens it: its head, past the manifest."""
    ref = ref_of(graph, key, branch)
    return lance.dataset(ref.uri, storage_options=ref.options)


def rows_like(graph: og.Graph, key: str, **columns: Any) -> pa.Table:
    """Rows with these values and nulls in the columns that are not named."""
    schema = pinned(graph, key).dataset.schema
    count = len(next(iter(columns.values())))
    arrays = [pa.array(columns.get(f.name, [None] * count), f.type) for f in schema]
    return pa.table(arrays, schema=schema)


def append(graph: og.Graph, key: str, **columns: Any) -> None:
    ref = ref_of(graph, key)
    lance.write_dataset(rows_like(graph, key, **columns), ref.uri, mode="append", storage_options=ref.options)


def copy_of(graph: og.Graph, key: str) -> bytes:
    stored = graph.context.objects.get(key)
    assert stored is not None, key
    return stored.data


def lose(graph: og.Graph, key: str) -> None:
    assert graph.context.objects.exists(key), key
    graph.context.objects.delete_files([key])


def data_file(graph: og.Graph, key: str, number: int = 0) -> str:
    return [file.path for file in recorded_files(pinned(graph, key))][number]


def index_files(graph: og.Graph, key: str, index: str = "id_btree_idx") -> list[str]:
    folders = [s.folder for s in recorded_segments(pinned(graph, key)) if s.index == index]
    return sorted(file.key for folder in folders for file in graph.context.objects.walk(folder))


def contents(graph: og.Graph) -> dict[str, str]:
    """Every file of the graph, with a digest of its bytes."""
    root = graph.context.root
    if root.is_local:
        names = [os.path.join(folder, name) for folder, _, files in os.walk(root.uri) for name in files]
        read: Callable[[str], bytes] = lambda name: open(name, "rb").read()  # noqa: SIM115, E731
    else:
        store: Any = root.objects._store  # type: ignore[attr-defined]
        names = [str(found["path"]) for batch in obstore.list(store) for found in batch]
        read = lambda name: bytes(store.get(name).bytes())  # noqa: E731
    return {name: hashlib.sha256(read(name)).hexdigest() for name in names}


def kinds(result: og.VerifyResult) -> list[tuple[str, str | None, str | None]]:
    return [(f.finding.value, f.branch, f.table_key) for f in result.findings]


def actions(result: og.RepairResult) -> list[tuple[str | None, str, str, str]]:
    """What became of each finding: table, branch, finding, action."""
    told = [t for t in result.tables if t.finding is not None]
    return [(t.table_key, t.branch, t.finding.value, t.action.value) for t in told if t.finding is not None]


def ids(graph: og.Graph, key: str, branch: str | None = None) -> list[str]:
    return sorted(graph.view(branch).table(key).read(["id"]).column("id").to_pylist())


def reopened(graph: og.Graph, mode: str = "rw") -> og.Graph:
    return og.Graph.open(graph.uri, mode, settings=graph.settings)


def verify(graph: og.Graph, *branches: str) -> og.VerifyResult:
    return og.verify(graph.uri, branches, settings=graph.settings)


def repair(graph: og.Graph, confirm: bool = False, force: bool = False) -> og.RepairResult:
    return og.repair(graph.uri, confirm=confirm, force=force, settings=graph.settings)


def torn_next(graph: og.Graph, key: str) -> str:
    """A version above the pin of which a power cut kept the name alone."""
    table = pinned(graph, key)
    name = table.ref.version_file(table.version + 1)
    graph.context.objects.put(name, b"")
    return name
