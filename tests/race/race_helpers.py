"""Writers and readers that run in processes of their own, and the log each keeps of what it was told.

Workers live here, not in the test modules, because processes import them by name.
"""

import json
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from graph_places import DISK, S3, Home
from omnigraph import Append, Compact, Conflict, Graph, KeyConflict, Upsert
from omnigraph.commit.plan import OPTIMIZE
from omnigraph.storage.tables import open_table

SCHEMA = "".join(f"node {name} {{\n  name: String @key\n}}\n" for name in ("Left", "Right", *"ABCDEFGH"))
TABLES = ("node:Left", "node:Right")
CREWS = {DISK: 8, S3: 4}
TRIES_MAX = 2000
COMPACT_EVERY = 16
# All of a crew are waited for, however busy the machine is.
GATE_S_MAX = 240

_gates: dict[int, Any] = {}
_stop: Any = None


@dataclass(frozen=True)
class Ground(Home):
    """A graph that so many writers race on."""

    writers: int


def enter_pool(gates: dict[int, Any], stop: Any) -> None:
    """Give a pool process the barriers that crews of a size start at and the event that ends the readers."""
    global _gates, _stop
    _gates, _stop = gates, stop


def start_together(ground: Ground) -> None:
    _gates[ground.writers].wait(GATE_S_MAX)


@dataclass(frozen=True)
class Told:
    """What a writer was told about one write: the commit that holds it, or a refusal."""

    key: str
    tables: list[str]
    commit_id: str | None = None
    version: int | None = None
    tries: int = 1


@dataclass(frozen=True)
class Seen:
    """What a reader saw: how often it looked, how many states, and what was wrong with them."""

    looks: int
    states: int
    wrong: list[str]


class AckLog:
    """One durable line per answer of one kind; a line is whole or it was never told."""

    def __init__(self, path: str | Path, kind: type[Any] = Told) -> None:
        self.path, self.kind = path, kind

    def note(self, told: Any) -> None:
        with open(self.path, "ab") as file:
            file.write(json.dumps(asdict(told)).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def answers(self) -> list[Any]:
        if not os.path.exists(self.path):
            return []
        lines = Path(self.path).read_bytes().split(b"\n")[:-1]
        return [self.kind(**json.loads(line)) for line in lines]


def tables_of(shape: str, writer: int) -> tuple[str, ...]:
    match shape:
        case "one table":
            return TABLES[:1]
        case "own table":
            return (f"node:{'ABCDEFGH'[writer]}",)
        case "two tables":
            return TABLES
    raise AssertionError(shape)


def rows(*keys: str) -> pa.Table:
    return pa.table({"id": list(keys), "name": list(keys)})


def write_many(
    ground: Ground, writer: int, keys: list[str], shape: str, compact_fragments: int = 50, tries_max: int = TRIES_MAX
) -> list[Told]:
    """Each key once into every table of the shape, planned anew after each lost race."""
    graph = ground.open(manifest_compact_fragments=compact_fragments)
    tables = tables_of(shape, writer)
    start_together(ground)
    told = []
    for number, key in enumerate(keys):
        told.append(write_one(graph, key, tables, tries_max))
        if number % COMPACT_EVERY == writer:
            compact(graph, tables)
    graph.close()
    return told


def compact(graph: Graph, tables: Iterable[str]) -> None:
    """Fold fragments together among the other writers; without it each look-up would open hundreds of files."""
    for table in tables:
        for _ in range(20):
            try:
                graph.write({table: Compact()}, writer=OPTIMIZE)
            except Conflict:
                continue
            break


def write_one(graph: Graph, key: str, tables: Iterable[str], tries_max: int = TRIES_MAX) -> Told:
    names = list(tables)
    for tries in range(1, tries_max + 1):
        try:
            receipt = graph.write({t: Upsert(rows(key)) for t in names}, message=key)
        except Conflict:
            continue
        return Told(key, names, receipt.graph_commit_id, receipt.graph_version, tries)
    return Told(key, names, tries=tries_max)


def insert_same(ground: Ground, writer: int, keys: list[str]) -> list[Told]:
    """Strict inserts of keys every other writer inserts too; a key somebody has is a refusal."""
    graph = ground.open()
    start_together(ground)
    told = []
    for key in keys:
        told.append(insert_one(graph, key, f"{writer}"))
    return told


def insert_one(graph: Graph, key: str, name: str) -> Told:
    table = pa.table({"id": [key], "name": [name]})
    for tries in range(1, TRIES_MAX + 1):
        try:
            receipt = graph.write({"node:Left": Append(table)})
        except KeyConflict:
            return Told(key, ["node:Left"], tries=tries)
        except Conflict:
            continue
        return Told(key, ["node:Left"], receipt.graph_commit_id, receipt.graph_version, tries)
    raise AssertionError(f"{key} was neither accepted nor refused")


def watch_pairs(ground: Ground) -> Seen:
    """Look until told to stop: one handle, each look at exactly one snapshot of both tables."""
    graph = ground.open("r")
    looks, versions, wrong = 0, [0], []
    while not _stop.is_set() and len(wrong) < 5:
        looks += 1
        snapshot = graph.snapshot()
        if snapshot.version < versions[-1]:
            wrong.append(f"version went back from {versions[-1]} to {snapshot.version}")
        if snapshot.version == versions[-1]:
            continue
        versions.append(snapshot.version)
        left, right = (read_at(graph, snapshot, table) for table in TABLES)
        if left != right:
            wrong.append(f"version {snapshot.version}: {sorted(set(left) ^ set(right))} in one table only")
        counts = [snapshot.tables[t].row_count for t in TABLES]
        if counts != [len(left), len(right)]:
            wrong.append(f"version {snapshot.version}: pinned {counts} rows, found {len(left)} and {len(right)}")
    return Seen(looks, len(versions) - 1, wrong)


def read_at(graph: Graph, snapshot: Any, table_key: str) -> list[str]:
    entry = snapshot.tables[table_key]
    ref = graph.context.ref(entry.location, entry.table_branch)
    return sorted(open_table(ref, entry.table_version, table_key).read(["id"]).column("id").to_pylist())


def write_until_done(home: Home, keys: list[str], log: str, compact_fragments: int, writing: Any) -> None:
    """A writer that may be killed anywhere: it goes on after the last answer it noted."""
    acks = AckLog(log)
    done = {told.key for told in acks.answers()}
    graph = home.open(manifest_compact_fragments=compact_fragments)
    writing.send_bytes(b"writing")
    for key in keys:
        if key not in done:
            acks.note(write_one(graph, key, TABLES))
