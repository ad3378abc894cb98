"""An export is the graph, line by line, and loading it gives the graph back."""

from __future__ import annotations

import base64
import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from write_scene import people, town

from omnigraph.base.errors import NotFound
from omnigraph.engine import export as module
from omnigraph.engine.write.changes import Append, Overwrite, Upsert
from omnigraph.graph import Graph

pytestmark = pytest.mark.slow

SCHEMA = """
node Thing {
  key: String
  num: I32
  @key(key, num)
  s: String?
  i: I64?
  u: U64?
  w: U32?
  f: F64?
  g: F32?
  b: Bool?
  d: Date?
  t: DateTime?
  e: enum(red, blue)?
  ls: [String]?
  lf: [F64]?
  lt: [DateTime]?
  v: Vector(3)?
  x: Blob?
}
node Plain { text: String }
edge Likes: Thing -> Plain { since: Date? how: String? }
edge Thing: Plain -> Plain
"""


def exported(graph: Graph, *types: str, **options: Any) -> list[dict[str, Any]]:
    return [json.loads(line) for line in b"".join(graph.export(types, **options)).splitlines()]


@pytest.fixture
def graph(tmp_path: Path) -> Graph:
    return town(tmp_path)


def test_tables_come_by_key_and_rows_by_id(graph: Graph) -> None:
    told = exported(graph)
    keys = [("edge:" + r["edge"] if "edge" in r else "node:" + r["type"], r["data"]["id"]) for r in told]
    assert keys == sorted(keys)
    assert len(keys) == 8
    assert told[0] == {"edge": "Follows", "from": "ana", "to": "bo", "data": {"id": "f1", "weight": None}}
    assert told[3] == {"type": "Person", "data": {"id": "ana", "age": None, "email": "a@x", "name": "ana"}}


def test_types_can_be_chosen_and_an_unknown_one_is_refused(graph: Graph, tmp_path: Path) -> None:
    assert {r["type"] for r in exported(graph, "Team")} == {"Team"}
    with pytest.raises(NotFound, match="unknown export type 'Teem'"):
        graph.export(["Teem"])
    both = Graph.init(str(tmp_path / "both"), SCHEMA)
    both.write({"node:Plain": Append(pa.table({"id": ["p"], "text": ["t"]}))})
    both.write({"edge:Thing": Append(pa.table({"id": ["e"], "src": ["p"], "dst": ["p"]}))})
    both.write({"node:Thing": Append(pa.table({"id": ['["k","1"]'], "key": ["k"], "num": pa.array([1], pa.int32())}))})
    assert [("edge" in r, r["data"]["id"]) for r in exported(both, "Thing")] == [(True, "e"), (False, '["k","1"]')]


def test_a_snapshot_is_exported_as_it_was(graph: Graph) -> None:
    before, then = graph.snapshot(), b"".join(graph.export())
    graph.write({"node:Person": Upsert(people({"ana": "new@x", "zoe": None}))})
    assert b"".join(graph.export(snapshot=before)) == then
    assert b"".join(graph.export()) != then


def test_many_rows_are_sorted_outside_memory_and_give_the_same_bytes(
    graph: Graph, monkeypatch: pytest.MonkeyPatch
) -> None:
    for first in (700, 0, 1400):
        graph.write({"node:Person": Append(people({f"p{n * 7919 % 2100}": None for n in range(first, first + 700)}))})
    sorted_in_memory = b"".join(graph.export())
    monkeypatch.setattr(module, "_FEW_ROWS", 0)
    assert b"".join(graph.export()) == sorted_in_memory
    ids = [r["data"]["id"] for r in exported(graph, "Person")]
    assert ids == sorted(ids, key=str.encode)
    assert len(ids) == 2103


def test_wide_rows_are_fetched_a_few_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph.init(str(tmp_path / "g"), SCHEMA)
    monkeypatch.setattr(module, "_CHUNK_BYTES", 4000)
    ids = [f"n{n:03d}" for n in range(300)]
    graph.write({"node:Plain": Append(pa.table({"id": ids, "text": ["x" * 1000] * 300}))})
    sizes = [piece.count(b"\n") for piece in graph.export()]
    assert sum(sizes) == 300
    assert max(sizes[1:]) <= 4


FINITE = st.floats(allow_nan=False, allow_infinity=False)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
NARROW = st.floats(width=32, allow_nan=False, allow_infinity=False)
MS = st.integers(-(2**53), 2**53)
OPTIONAL: dict[str, st.SearchStrategy[Any]] = {
    "s": TEXTS,
    "i": st.integers(-(2**63), 2**63 - 1),
    "u": st.integers(0, 2**64 - 1),
    "w": st.integers(0, 2**32 - 1),
    "f": FINITE,
    "g": NARROW,
    "b": st.booleans(),
    "d": st.integers(-(2**31), 2**31 - 1) | st.dates().map(lambda d: d.isoformat()),
    "t": MS | st.datetimes().map(lambda t: t.strftime("%Y").zfill(4) + t.strftime("-%m-%dT%H:%M:%S") + ".123Z"),
    "e": st.sampled_from(["red", "blue"]),
    "ls": st.lists(TEXTS, max_size=3),
    "lf": st.lists(FINITE, max_size=3),
    "lt": st.lists(MS, max_size=2),
    "v": st.lists(NARROW, min_size=3, max_size=3),
    "x": st.binary(max_size=20).map(lambda b: "base64:" + base64.b64encode(b).decode()),
}
THINGS = st.lists(
    st.fixed_dictionaries({"key": TEXTS, "num": st.integers(-(2**31), 2**31 - 1)}, optional=OPTIONAL),
    max_size=6,
    unique_by=lambda d: (d["key"], d["num"]),
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Graph, Graph, Path]:
    folder = tmp_path_factory.mktemp("export")
    return Graph.init(str(folder / "a"), SCHEMA), Graph.init(str(folder / "b"), SCHEMA), folder


def rows(graph: Graph) -> dict[str, Any]:
    """Every table by id; NaN never occurs, so equality is enough. Both zeros are told apart."""

    def exact(value: Any) -> Any:
        return (value, math.copysign(1, value)) if isinstance(value, float) else value

    found = {}
    for key in graph.snapshot().tables:
        for row in graph.view().table(key).read().sort_by("id").to_batches():
            columns = {n: row.column(n) for n in row.schema.names}
            times = {n: c.cast(pa.int64()) if pa.types.is_timestamp(c.type) else c for n, c in columns.items()}
            days = {n: c.cast(pa.int32()) if pa.types.is_date(c.type) else c for n, c in times.items()}
            plain = {n: c for n, c in days.items() if n != "lt"}
            for k in range(row.num_rows):
                found[key, columns["id"][k].as_py()] = {n: exact(c[k].as_py()) for n, c in plain.items()}
    return found


@pytest.mark.slow
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    things=THINGS, texts=st.lists(TEXTS, max_size=3), likes=st.lists(st.tuples(st.integers(0, 5), TEXTS), max_size=3)
)
def test_loading_an_export_reproduces_every_row_and_id(
    pair: tuple[Graph, Graph, Path], things: list[Any], texts: list[str], likes: list[Any]
) -> None:
    first, second, folder = pair
    for graph in pair[:2]:
        empty = {k: pa.schema(graph.catalog.arrow_schema(k)).empty_table() for k in graph.snapshot().tables}
        graph.write({key: Overwrite(table) for key, table in empty.items()})
    lines = [{"type": "Thing", "data": data} for data in things]
    lines += [{"type": "Plain", "data": {"text": t, "id": f"p{n}"}} for n, t in enumerate(texts)]
    if things and texts:
        for n, (place, how) in enumerate(likes):
            thing = things[place % len(things)]
            key = json.dumps([thing["key"], str(thing["num"])], ensure_ascii=False, separators=(",", ":"))
            edge = {"edge": "Likes", "from": key, "to": f"p{n % len(texts)}", "data": {"how": how}}
            lines.append(edge)
    source = folder / "in.jsonl"
    source.write_text("\n".join(json.dumps(line) for line in lines) + "\n", encoding="utf-8")
    first.load(source, mode="append", index=False)
    copy = folder / "out.jsonl"
    copy.write_bytes(b"".join(first.export()))
    second.load(copy, mode="overwrite", index=False)
    assert rows(second) == rows(first)
    assert b"".join(second.export()) == copy.read_bytes()
    assert len(rows(first)) == len(lines)


def test_narrow_floats_come_back_bit_by_bit(pair: tuple[Graph, Graph, Path]) -> None:
    first, second, folder = pair
    values = np.array([0.1, 1e-45, 3.4028235e38, 16777217, -0.0], np.float32)
    table = pa.table(
        {"id": [f'["f","{n}"]' for n in range(5)], "key": ["f"] * 5, "num": pa.array(range(5), pa.int32()), "g": values}
    )
    first.write({"node:Thing": Overwrite(table)})
    copy = folder / "floats.jsonl"
    copy.write_bytes(b"".join(first.export(["Thing"])))
    # Edges that another test left need their nodes, so these are added to them.
    second.load(copy, mode="merge", index=False)
    kept = second.view().table("node:Thing").find(table.column("id").to_pylist(), ["id", "g"])
    found = kept.sort_by("id").column("g").to_numpy()
    assert found.tobytes() == values.tobytes()
