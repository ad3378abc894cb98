"""DataFrames into a graph: executors check and stage, the driver commits once, a bad frame changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import omnigraph as og
from omnigraph.pipeline.bulk import bench, rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCHEMA = """
node Person { name: String @key  age: I32? }
node Spot { row: I32  col: String  @key(row, col) }
edge Follows: Person -> Person { since: Date? }
edge At: Person -> Spot
"""


@pytest.fixture
def graph(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    monkeypatch.setattr(bench, "STAGE_HERE_ROWS_MAX", 0)
    monkeypatch.setattr(rows, "COMPARE_HERE_ROWS_MAX", -1)
    return og.Graph.init(str(tmp_path / "g"), SCHEMA)


def test_frames_of_two_types_become_one_commit(spark: SparkSession, graph: og.Graph) -> None:
    people = spark.sql("select concat('p', id) name, cast(id as int) age from range(1000)")
    follows = spark.sql(
        "select concat('f', id) id, concat('p', id) src, 'p0' dst, date'2020-02-29' since from range(300)"
    )
    done = graph.spark.load({"Person": people, "Follows": follows}, mode="append", message="both", index=False)
    assert (done.engine, done.total_entities) == ("spark", 1300)
    found = {k: e.row_count for k, e in graph.snapshot().tables.items()}
    assert (found["edge:Follows"], found["node:Person"]) == (300, 1000)
    assert [(c.kind, c.message) for c in graph.list_commits()][:1] == [("load", "both")]
    row = graph.view().table("edge:Follows").find(["f7"]).to_pylist()[0]
    assert (row["src"], row["dst"], str(row["since"])) == ("p7", "p0", "2020-02-29")


def test_endpoints_may_be_given_as_the_keys_of_their_nodes(spark: SparkSession, graph: og.Graph) -> None:
    people = spark.sql("select concat('p', id) name from range(3)")
    spots = spark.sql("select cast(id as int) row, concat('c', id) col from range(3)")
    at = spark.sql("select concat('p', id) src, struct(cast(id as int), concat('c', id)) dst from range(3)")
    graph.spark.load({"Person": people, "Spot": spots, "At": at}, mode="append", index=False)
    ends = graph.view().table("edge:At").read(["src", "dst"]).to_pylist()
    # An id lists the members of a key in the order of their property ids, a struct in the order of @key.
    assert sorted((e["src"], e["dst"]) for e in ends) == [(f"p{n}", f'["c{n}","{n}"]') for n in range(3)]


def test_an_id_that_is_stored_already_refuses_the_whole_commit(spark: SparkSession, graph: og.Graph) -> None:
    graph.spark.load({"Person": spark.sql("select concat('p', id) name from range(10)")}, mode="append", index=False)
    before = graph.snapshot()
    again = spark.sql("select concat('p', id + 9) name from range(5)")
    with pytest.raises(og.KeyConflict, match="node:Person already has id 'p9'"):
        graph.spark.load({"Person": again}, mode="append")
    assert graph.snapshot() == before


def test_bad_rows_name_the_frame_and_are_all_counted(spark: SparkSession, graph: og.Graph) -> None:
    twice = spark.sql("select 'same' name from range(3)")
    with pytest.raises(og.InvalidData, match=r"@unique violation on Person\.name: value 'same'") as error:
        graph.spark.load({"Person": twice}, mode="append")
    told = error.value.violations[0]
    assert (error.value.total, told["file"], told["line"]) == (3, "Person", None)
    assert '"name":"same"' in told["row"], "a row of a frame has no line; its values say which it is"
    wrong = spark.sql("select concat('p', id) name, concat('x', id) age from range(50)")
    with pytest.raises(og.InvalidData, match="expects an integer") as error:
        graph.spark.load({"Person": wrong}, mode="append", max_errors=2)
    assert (error.value.total, len(error.value.violations)) == (50, 2)
    assert all('"age":"x' in told["row"] for told in error.value.violations)
    assert graph.snapshot().tables["node:Person"].row_count == 0


def test_rows_of_a_frame_can_be_set_aside(spark: SparkSession, graph: og.Graph, tmp_path: Path) -> None:
    mixed = spark.sql("select concat('p', id) name, if(id = 2, 9999999999, id) age from range(5)")
    rejects = tmp_path / "rejects.jsonl"
    done = graph.spark.load({"Person": mixed}, mode="append", on_error="quarantine", rejects=str(rejects), index=False)
    assert (done.total_entities, done.rejected) == (4, 1)
    assert '"reason":"out_of_range"' in rejects.read_text()
    assert "9999999999" in rejects.read_text()


def test_a_column_the_type_lacks_and_a_type_the_graph_lacks_are_refused(spark: SparkSession, graph: og.Graph) -> None:
    with pytest.raises(og.BadRequest, match="Person has no property 'agee'"):
        graph.spark.load({"Person": spark.sql("select 'a' name, 1 agee")}, mode="append")
    with pytest.raises(og.BadRequest, match="unknown type 'Persom'"):
        graph.spark.load({"Persom": spark.sql("select 'a' name")}, mode="append")
    with pytest.raises(og.BadRequest, match="need a column 'dst'"):
        graph.spark.load({"Follows": spark.sql("select 'a' src")}, mode="append")


def test_a_row_is_staged_as_it_was_checked_although_its_frame_is_random(spark: SparkSession, graph: og.Graph) -> None:
    frame = spark.sql("select uuid() name from range(200)")
    graph.spark.load({"Person": frame}, mode="append", index=False)
    stored = graph.view().table("node:Person").read(["id", "name"]).to_pylist()
    assert len({row["id"] for row in stored}) == 200
    assert all(row["id"] == row["name"] for row in stored)
