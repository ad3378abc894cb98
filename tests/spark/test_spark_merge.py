"""Merges spread over executors give the same graph, the same counts, conflicts and words as one process does."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from datetime import date, datetime
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyspark import cloudpickle
from pyspark.sql import SparkSession

import omnigraph as og
from omnigraph.pipeline.bulk import bench, rows, write
from omnigraph.pipeline.merge import room
from omnigraph.pipeline.worker.merge import write_decided

pytestmark = [pytest.mark.spark, pytest.mark.slow]

SCHEMA = """
node Person {
  name: String @key
  a: I32?
  b: String?
  cC: String?
  cc: String?
  mail: String?
  tier: enum(gold, tin)?
  u32: U32?
  u64: U64?
  f: F64?
  day: Date?
  at: DateTime?
  tags: [String]?
  many: [U64]?
  v: Vector(2)?
  photo: Blob?
  @unique(mail)
  @range(a, 0..1000)
  @check(b, "^[a-z]*$")
}
node City { name: String @key }
edge Knows: Person -> Person { w: I32?  t: String? }
edge LivesIn: Person -> City @card(0..1)
"""
BOTH = ("embedded", "spark")
CELLS = [*product(["none"], ["none", "x", "y"], ["none", "x", "y"])]
CELLS += [*product(["b"], ["keep", "x", "y", "delete"], ["keep", "x", "y", "delete"])]
VALUES = {"b": 1, "x": 2, "y": 3}


def person(name: str, **values: Any) -> dict[str, Any]:
    return {"id": name, "name": name, **values}


def node_of(name: str, value: str) -> dict[str, Any]:
    """Rows that differ in every type by the value alone, and where only the type can tell them apart."""
    n = VALUES[value]
    zero = -0.0 if value == "x" else 0.0
    return person(
        name,
        a=n,
        b=value,
        cC=None if value == "x" else "",
        cc=value,
        u32=2**32 - n,
        u64=2**64 - n,
        f=-1e300 if value == "y" else zero,
        day=date(9999, 12, n),
        at=datetime(2020, 1, n),
        tags=[] if value == "x" else [value, ""],
        many=None if value == "x" else [2**64 - n, n],
        v=None if value == "b" else [float(n), zero],
        photo=b"" if value == "x" else bytes([n]) * 3,
    )


def edge_of(name: str, value: str) -> dict[str, Any]:
    return {"id": name, "src": "ana", "dst": "cy" if value == "y" else "bo", "w": VALUES[value], "t": value}


MAKE = {"node:Person": node_of, "edge:Knows": edge_of}


def put(graph: og.Graph, branch: str | None, key: str, some: list[dict[str, Any]], gone: tuple[str, ...] = ()) -> None:
    schema = graph.catalog.arrow_schema(key)
    full = [{**dict.fromkeys(schema.names), **row} for row in some]
    graph.write({key: og.Upsert(pa.Table.from_pylist(full, schema=schema), gone)}, branch=branch)


def new_graph(folder: Path) -> og.Graph:
    graph = og.Graph.init(str(folder / "graph"), SCHEMA, settings=og.Settings(storage_durability="os"))
    put(graph, None, "node:Person", [person(name) for name in ("ana", "bo", "cy")])
    return graph


def celled(graph: og.Graph) -> None:
    """Every cell of the truth table, for nodes and edges; and rows whose properties were set apart."""
    for key, make in MAKE.items():
        put(graph, None, key, [make("-".join(cell), "b") for cell in CELLS if cell[0] == "b"])
    put(graph, None, "node:Person", [person(f"p{n}", a=n, b="b") for n in range(30)])
    graph.branch_create("draft")
    for branch, which in (("draft", 1), (None, 2)):
        for key, make in MAKE.items():
            changed = [make("-".join(cell), cell[which]) for cell in CELLS if cell[which] in VALUES]
            put(graph, branch, key, changed, tuple("-".join(cell) for cell in CELLS if cell[which] == "delete"))
    put(graph, "draft", "node:Person", [person(f"p{n}", a=n + 100, b="b") for n in range(20)])
    put(graph, None, "node:Person", [person(f"p{n}", a=n + n % 2, b="c") for n in range(10)])


@pytest.fixture
def staged(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is few: every table is staged by executors."""
    monkeypatch.setattr(bench, "STAGE_HERE_ROWS_MAX", 0)
    monkeypatch.setattr(write, "ROWS_PER_TASK_MIN", 5)


@pytest.fixture
def spread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is few: every rule is asked of executors."""
    monkeypatch.setattr(rows, "COMPARE_HERE_ROWS_MAX", -1)


class Pair:
    """The same graph made twice, each merged by its own engine."""

    def __init__(self, folder: Path, build: Callable[[og.Graph], None]) -> None:
        self.graphs = {engine: new_graph(folder / engine) for engine in BOTH}
        for graph in self.graphs.values():
            build(graph)

    def outcome(self, engine: str, resolve: Mapping[str, Path] | None = None, **options: Any) -> Any:
        graph = self.graphs[engine]
        if resolve is not None:
            options["resolve"] = resolve[engine]
        try:
            told = graph.branch_merge("draft", engine=engine, **options).to_json()
        except og.MergeConflicts as error:
            return str(error), error.merge_conflicts
        except og.OmniError as error:
            return type(error).__name__, str(error)
        commit = graph.get_commit(told.pop("graph_commit_id", None) or graph.head_commit_id_for_branch("main"))
        for own in ("operation_id", "base_commit_id", "template"):
            told.pop(own, None)
        return told, commit.metadata, {key: vars(c) for key, c in commit.counts.items()}

    def both(self, **options: Any) -> Any:
        embedded, spark = (self.outcome(engine, **options) for engine in BOTH)
        assert spark == embedded
        assert self.content("spark") == self.content("embedded")
        return embedded

    def content(self, engine: str) -> bytes:
        return b"".join(self.graphs[engine].export())

    def staging(self) -> list[Path]:
        return [path for path in (Path(self.graphs["spark"].uri) / "__staging").rglob("*") if path.is_file()]


@pytest.fixture
def pair(tmp_path: Path, spark: SparkSession) -> Pair:
    return Pair(tmp_path, celled)


def test_a_strategy_and_properties_merge_alike(pair: Pair, staged: None) -> None:
    told, metadata, _ = pair.both(strategy="theirs", granularity="property")
    assert told["outcome"] == "merged"
    assert {t["table_key"] for t in told["tables"]} == set(MAKE)
    # Whoever set `a` on both sides is in dispute, whoever set only `b` on one is not.
    disputed = [c for c in metadata["omnigraph"]["merge"]["choices"] if c["row_id"].startswith("p")]
    assert len(disputed) == 5
    assert pair.staging() == []


def test_a_dry_run_and_its_resolution_file_agree(pair: Pair, tmp_path: Path) -> None:
    paths = {engine: tmp_path / f"{engine}.json" for engine in BOTH}
    before = pair.graphs["spark"].head_commit_id_for_branch("main")
    told = pair.both(dry_run=True, limit=7, resolve=paths)[0]
    assert len(told["changes"]) == 7
    assert len(told["conflicts"]) == 2 * 8 + 10
    assert {c["kind"] for c in told["conflicts"]} == {"divergent_insert", "divergent_update", "delete_vs_update"}
    assert pair.graphs["spark"].head_commit_id_for_branch("main") == before
    assert pair.staging() == []
    made = [json.loads(paths[engine].read_text()) for engine in BOTH]
    assert made[0]["choices"] == made[1]["choices"]
    given = {"properties": {"name": "b-x-y", "a": 7, "mail": "held"}}
    for engine, file in zip(BOTH, made, strict=True):
        for entry, choice in zip(file["choices"], ["base", "delete", "ours"] * 20, strict=False):
            entry["choice"] = given if entry["row_id"] == "b-x-y" and "node" in entry["table_key"] else choice
        paths[engine].write_text(json.dumps(file))
    pair.both(resolve=paths)
    assert b'"mail":"held"' in pair.content("spark")


def violating(graph: og.Graph) -> None:
    put(graph, None, "node:City", [{"id": c, "name": c} for c in ("rome", "oslo")])
    put(graph, None, "node:Person", [person(f"p{n}", mail=f"m{n}") for n in range(40)])
    put(graph, None, "edge:LivesIn", [{"id": f"l{n}", "src": f"p{n}", "dst": "rome"} for n in range(20)])
    graph.branch_create("draft")
    put(graph, "draft", "edge:LivesIn", [{"id": f"d{n}", "src": f"p{n}", "dst": "rome"} for n in range(15, 30)])
    put(graph, "draft", "edge:Knows", [{"id": f"k{n}", "src": f"p{n}", "dst": "ana"} for n in range(30, 40)])
    # Enums and ranges as only a hand-made write can break them.
    broken = [person(f"q{n}", mail=f"new{n % 5}", tier="lead", a=2000, b="NO") for n in range(10)]
    put(graph, "draft", "node:Person", broken)
    put(graph, None, "node:Person", [person(f"r{n}", mail=f"new{n}") for n in range(3)], ("p35", "p36"))


def test_every_violation_is_a_conflict_in_the_same_words(tmp_path: Path, spark: SparkSession, spread: None) -> None:
    _, told = Pair(tmp_path, violating).both()
    kinds = {"orphan_edge", "unique_violation", "cardinality_violation", "value_constraint_violation"}
    assert {c["kind"] for c in told} == kinds


def parted(graph: og.Graph) -> None:
    put(graph, None, "node:Person", [person(f"p{n:03d}", a=n) for n in range(300)])
    graph.branch_create("draft")
    put(graph, "draft", "node:Person", [person(f"p{n:03d}", a=n + 1) for n in range(0, 200, 2)])
    put(graph, "draft", "node:Person", [person(f"q{n}") for n in range(50)], tuple(f"p{n}" for n in range(200, 260)))
    put(graph, None, "node:Person", [person(f"p{n:03d}", a=n + 5) for n in range(1, 200, 2)])


def only_once(batches: Iterator[pa.RecordBatch], task: Any, seen: str) -> Iterator[pa.RecordBatch]:
    """Does the work, and fails when it is done, once for each partition."""
    from pyspark import TaskContext

    answer = list(write_decided(batches, task))
    flag = Path(seen) / str(TaskContext.get().partitionId())
    if not flag.exists():
        flag.touch()
        raise RuntimeError("lost")
    yield from answer


def test_inserts_updates_and_deletes_survive_lost_tasks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession, staged: None
) -> None:
    seen = tmp_path / "seen"
    seen.mkdir()
    pair = Pair(tmp_path, parted)
    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    monkeypatch.setattr(room, "write_decided", partial(only_once, seen=str(seen)))
    try:
        told, _, counts = pair.both()
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert list(seen.iterdir())
    assert counts["node:Person"] == {"inserts": 50, "updates": 100, "deletes": 60}
    # A row that was updated is the same row: its history goes on.
    for engine in BOTH:
        past = pair.graphs[engine].history("Person", "p002")
        assert [one.op for one in past] == ["update", "insert"]
    assert told["tables"] == [{"table_key": "node:Person", "inserts": 50, "updates": 100, "deletes": 60}]
