"""DataFrames into a graph: executors stage, the driver commits once, a bad frame changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import omnigraph as og
from omnigraph.pipeline.frames import append_frames

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCHEMA = "node Person { name: String @key age: I32? }\nedge Follows: Person -> Person { since: Date? }"


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.Graph.init(str(tmp_path / "g"), SCHEMA)


def test_frames_of_two_types_become_one_commit(spark: SparkSession, graph: og.Graph) -> None:
    people = spark.sql("select concat('p', id) id, concat('p', id) name, cast(id as int) age from range(1000)")
    follows = spark.sql(
        "select concat('f', id) id, concat('p', id) src, 'p0' dst, date'2020-02-29' since from range(300)"
    )
    receipt = append_frames(graph, {"node:Person": people, "edge:Follows": follows}, message="both", actor="act-ana")
    assert receipt.commit.counts["node:Person"].inserts == 1000
    assert {k: e.row_count for k, e in graph.snapshot().tables.items()} == {"edge:Follows": 300, "node:Person": 1000}
    assert [c.kind for c in graph.list_commits()] == ["load", "init"]
    assert graph.entity_at("edge:Follows", "f7", receipt.graph_version) == {
        "id": "f7",
        "src": "p7",
        "dst": "p0",
        "since": "2020-02-29",
    }
    ids = graph.view().table("node:Person").read(["id"]).column("id").to_pylist()
    assert len(set(ids)) == 1000


def test_an_id_that_is_stored_already_refuses_the_whole_commit(spark: SparkSession, graph: og.Graph) -> None:
    first = spark.sql("select concat('p', id) id, concat('p', id) name from range(10)")
    append_frames(graph, {"node:Person": first})
    before = graph.snapshot()
    again = spark.sql("select concat('p', id + 9) id, 'x' name from range(5)")
    with pytest.raises(og.KeyConflict, match="node:Person already has id 'p9'"):
        append_frames(graph, {"node:Person": again})
    assert graph.snapshot() == before


def test_a_repeated_id_names_the_table_and_the_id(spark: SparkSession, graph: og.Graph) -> None:
    twice = spark.sql("select 'same' id, 'x' name from range(2)")
    with pytest.raises(og.BadRequest, match="node:Person: id 'same' occurs 2 times"):
        append_frames(graph, {"node:Person": twice})
    assert graph.snapshot().tables["node:Person"].row_count == 0


def test_a_table_that_moved_while_executors_wrote_refuses_the_load(spark: SparkSession, graph: og.Graph) -> None:
    import pyarrow as pa

    class Moving(type(graph)):  # type: ignore[misc]
        """A graph on which somebody else commits between staging and commit."""

        def write(self, changes, **options):  # type: ignore[no-untyped-def]
            row = pa.table({"id": ["other"], "name": ["other"]})
            og.Graph.open(self.uri).write({"node:Person": og.Append(row)})
            return super().write(changes, **options)

    moving = Moving(graph.context, og.OpenMode.READ_WRITE)
    frame = spark.sql("select concat('p', id) id, 'x' name from range(5)")
    with pytest.raises(og.ExpectedVersionMismatch, match="node:Person is at version 2"):
        append_frames(moving, {"node:Person": frame})
    assert graph.view().table("node:Person").read(["id"]).column("id").to_pylist() == ["other"]
