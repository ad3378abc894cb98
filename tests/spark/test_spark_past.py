"""Old commits and lagging branches on Spark: by the schema in force, as in one process."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import omnigraph as og
from omnigraph.pipeline.bulk import bench, rows

pytestmark = [pytest.mark.spark, pytest.mark.slow]
FIRST = "node Person { name: String @key  age: I32?  nick: String? }\nedge Knows: Person -> Person\n"
WIDER = FIRST.replace("nick: String?", "nick: String?  email: String?") + "node Club { name: String @key }\n"


@pytest.fixture
def graph(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> og.Graph:
    monkeypatch.setattr(bench, "STAGE_HERE_ROWS_MAX", 0)
    monkeypatch.setattr(rows, "COMPARE_HERE_ROWS_MAX", -1)
    made = og.Graph.init(str(tmp_path / "g"), FIRST)
    people = spark.sql("select concat('p', id) name, cast(id as int) age, 'n' nick from range(20)")
    made.spark.load({"Person": people}, mode="append", index=False)
    return made


def test_a_frame_of_an_old_commit_has_the_columns_of_the_schema_in_force(graph: og.Graph) -> None:
    old = graph.head_commit_id_for_branch("main")
    graph.schema_apply(
        'node Member @rename_from("Person") { name: String @key  years: I32? @rename_from("age")  email: String? }\n'
        "edge Knows: Member -> Member\nnode Club { name: String @key }\n"
    )
    frame = graph.spark.nodes("Member", snapshot=old, filter="years >= 18 AND email IS NULL")
    assert [(f.name, f.nullable) for f in frame.schema.fields if f.name == "email"] == [("email", True)]
    assert sorted((r.name, r.years, r.email) for r in frame.collect()) == [("p18", 18, None), ("p19", 19, None)]
    assert graph.spark.nodes("Member", snapshot=old, filter="email = 'x'").count() == 0
    assert graph.spark.nodes("Club", snapshot=old).count() == 0
    assert graph.spark.sql("SELECT count(years) n FROM Member", snapshot=old).collect()[0].n == 20
    asked = "query q() { match { $m: Member { years: 7 } } return { $m.name, $m.email } }"
    assert [tuple(r) for r in graph.spark.query(asked, snapshot=old).collect()] == [("p7", None)]
    assert [r["m.name"] for r in graph.query(asked, snapshot=old).rows] == ["p7"]


def test_a_bulk_load_and_a_merge_on_spark_reach_a_lagging_branch(spark: SparkSession, graph: og.Graph) -> None:
    graph.branch_create("side")
    graph.schema_apply(WIDER)
    more = spark.sql("select concat('p', id + 15) name, 'e' email from range(10)")
    clubs = spark.sql("select concat('c', id) name from range(3)")
    graph.spark.load({"Person": more, "Club": clubs}, mode="merge", branch="side", index=False)
    assert graph.spark.nodes("Person", branch="side", filter="email = 'e'").count() == 10
    assert graph.spark.nodes("Club", branch="side").count() == 3
    graph.mutate('query m() { update Person set { email: "m" } where name = "p3" }')
    graph.branch_merge("side", engine="spark")
    found = graph.sql("SELECT email, count(*) n FROM node_Person GROUP BY email ORDER BY email").rows
    assert found == [{"email": "e", "n": 10}, {"email": "m", "n": 1}, {"email": None, "n": 14}]
    graph.branch_create("late")
    graph.mutate('query m() { update Person set { age: 99 } where name = "p1" }', branch="late")
    graph.schema_apply(WIDER.replace("email: String?", "email: String?  extra: I64?"))
    graph.branch_merge("late", engine="spark")
    assert graph.sql("SELECT age, extra FROM node_Person WHERE name = 'p1'").rows == [{"age": 99, "extra": None}]


def test_fragments_that_executors_wrote_keep_which_property_a_column_is(spark: SparkSession, graph: og.Graph) -> None:
    declared = graph.catalog.arrow_schema("node:Person")
    for mode in ("overwrite", "merge"):
        people = spark.sql("select concat('p', id) name, cast(id as int) age from range(5)")
        graph.spark.load({"Person": people}, mode=mode, index=False)
        assert graph.view().table("node:Person").schema.equals(declared, check_metadata=True)
