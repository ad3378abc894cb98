"""Frames load like files: same rules, same texts, no value changed on the way."""

from __future__ import annotations

from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from write_scene import stored, town

from omnigraph.base.errors import BadRequest, InvalidData
from omnigraph.graph import Graph

pytestmark = pytest.mark.slow

TYPES = """
node Thing {
  name: String @key
  i: I32?
  u: U64?
  f: F64?
  g: F32?
  b: Bool?
  d: Date?
  t: DateTime?
  e: enum(red, blue)?
  l: [I64]?
  v: Vector(2)?
  x: Blob?
}
node Plain { text: String }
edge Likes: Thing -> Thing { since: Date? }
edge Plainly: Plain -> Plain
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> str:
    return Graph.init(str(tmp_path_factory.mktemp("frames") / "g"), TYPES).uri


@pytest.fixture
def graph(place: str) -> Graph:
    return Graph.open(place)


def row(graph: Graph, name: str) -> dict[str, Any]:
    found = graph.view().table("node:Thing").find([name]).to_pylist()
    return {k: v for k, v in found[0].items() if v is not None and k not in ("id", "name")}


def refusals(graph: Graph, **frames: Any) -> list[tuple[str | None, int, str]]:
    with pytest.raises(InvalidData) as error:
        graph.load_frames(frames, mode="merge", index=False)
    return [(v["file"], v["line"], v["reason"]) for v in error.value.violations]


def test_every_type_loads_from_arrow_without_loss(graph: Graph) -> None:
    values = {
        "i": pa.array([-5], pa.int64()),
        "u": pa.array([2**64 - 1], pa.uint64()),
        "f": [0.1],
        "g": pa.array([0.5], pa.float64()),
        "b": [True],
        "d": [date(2024, 5, 1)],
        "t": pa.array([datetime(2024, 5, 1, 12, tzinfo=UTC)], pa.timestamp("us", tz="UTC")),
        "e": pa.array(["red"]).dictionary_encode(),
        "l": pa.array([[1, 2]], pa.list_(pa.int32())),
        "v": [[1.0, 2.0]],
        "x": pa.array([b"\x00\xff"], pa.binary()),
    }
    graph.load_frames({"Thing": pa.table({"name": ["arrow"], **values})}, mode="merge")
    assert row(graph, "arrow") == {
        "i": -5, "u": 2**64 - 1, "f": 0.1, "g": 0.5, "b": True, "d": date(2024, 5, 1),
        "t": datetime(2024, 5, 1, 12, tzinfo=UTC), "e": "red", "l": [1, 2], "v": [1.0, 2.0], "x": b"\x00\xff",
    }  # fmt: skip


def test_what_pandas_calls_missing_is_null(graph: Graph) -> None:
    frame = pd.DataFrame(
        {
            "name": ["p1", "p2"],
            "i": [3, np.nan],
            "f": [1.5, np.nan],
            "b": pd.array([True, pd.NA], dtype="boolean"),
            "t": pd.to_datetime(["2024-05-01T00:00:00Z", None]),
            "e": ["blue", None],
        }
    )
    graph.load_frames({"Thing": frame}, mode="merge")
    assert row(graph, "p1") == {"i": 3, "f": 1.5, "b": True, "e": "blue", "t": datetime(2024, 5, 1, tzinfo=UTC)}
    assert row(graph, "p2") == {}


def test_in_an_arrow_frame_nan_is_a_value(graph: Graph) -> None:
    graph.load_frames({"Thing": pa.table({"name": ["nan"], "f": [float("nan")]})}, mode="merge")
    assert str(row(graph, "nan")["f"]) == "nan"


def test_edges_name_their_ends_either_way(graph: Graph) -> None:
    things = pa.table({"name": ["a", "b"]})
    one = pa.table({"from": ["a"], "to": ["b"], "id": ["l1"], "since": ["2024-05-01"]})
    two = pd.DataFrame({"src": ["b"], "dst": ["a"], "id": ["l2"]})
    graph.load_frames({"Thing": things, "Likes": one}, mode="merge")
    graph.load_frames({"edge:Likes": two}, mode="merge")
    assert stored(graph, "edge:Likes", "id", "src", "dst", "since") == [
        ("l1", "a", "b", date(2024, 5, 1)),
        ("l2", "b", "a", None),
    ]


def test_values_that_do_not_fit_are_refused_by_row(graph: Graph) -> None:
    assert refusals(graph, Thing=pa.table({"name": ["a", "b", "c"], "i": [1.0, 2.5, None]})) == [
        ("Thing", 2, "wrong_type")
    ]
    assert refusals(graph, Thing=pa.table({"name": ["a", "b"], "i": [2**31, 1]})) == [("Thing", 1, "out_of_range")]
    assert refusals(graph, Thing=pa.table({"name": ["a"], "i": ["7"]})) == [("Thing", 1, "wrong_type")]
    assert refusals(graph, Thing=pa.table({"name": ["a"], "e": ["green"]})) == [("Thing", 1, "invalid_enum")]
    assert refusals(graph, Thing=pa.table({"name": ["a"], "v": [[1.0]]})) == [("Thing", 1, "bad_vector")]
    assert refusals(graph, Thing=pa.table({"name": ["a", None]})) == [("Thing", 2, "missing_required")]
    late = pa.array([datetime(2024, 5, 1, 0, 0, 0, 1, tzinfo=UTC)], pa.timestamp("us", tz="UTC"))
    assert refusals(graph, Thing=pa.table({"name": ["a"], "t": late}))[0][2] in ("wrong_type", "out_of_range")
    assert refusals(graph, Thing=pa.table({"name": ["a"], "id": ["b"]})) == [("Thing", 1, "key_mismatch")]
    assert refusals(graph, Thing=pa.table({"name": ["a"]}), Likes=pa.table({"from": ["a"], "to": ["zz"]})) == [
        ("Likes", 1, "dst_not_found")
    ]


@pytest.mark.parametrize(
    ("frames", "message"),
    [
        ({"Nobody": pa.table({"a": [1]})}, "unknown type 'Nobody'"),
        ({"Thing": pa.table({"nme": ["a"]})}, "Thing has no property 'nme'"),
        ({"Likes": pa.table({"from": ["a"]})}, "need a column 'to'"),
        ({"Likes": pa.table({"from": ["a"], "src": ["a"], "to": ["b"]})}, "given twice"),
        ({"Thing": [1, 2]}, "is no frame"),
    ],
)
def test_a_frame_of_the_wrong_shape_is_refused_before_anything_is_read(
    graph: Graph, frames: dict[str, Any], message: str
) -> None:
    with pytest.raises(BadRequest, match=message):
        graph.load_frames(frames, mode="append")


def test_nodes_without_a_key_get_ids_of_their_own(graph: Graph) -> None:
    graph.load_frames({"Plain": pa.table({"text": ["x", "y"]})}, mode="overwrite")
    ids = [id_ for (id_,) in stored(graph, "node:Plain")]
    assert len(set(ids)) == 2
    assert all(len(id_) == 26 for id_ in ids)


def test_bad_rows_of_frames_can_be_set_aside(tmp_path: Path) -> None:
    graph = town(tmp_path)
    frame = pa.table({"name": ["di", "ed"], "age": [999, 5]})
    rejects = str(tmp_path / "bad.jsonl")
    done = graph.load_frames({"Person": frame}, mode="append", on_error="quarantine", rejects=rejects)
    assert (done.rejected, done.total_entities) == (1, 1)
    with pytest.raises(BadRequest, match="has no name"):
        graph.load_frames({"Person": frame}, mode="append", on_error="quarantine")
