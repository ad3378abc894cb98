"""The graph as a Spark source: one snapshot per frame, chosen columns and rows, errors in our own words."""

from __future__ import annotations

from functools import reduce
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import AnalysisException, PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

import omnigraph as og
from omnigraph.pipeline.frames_api import SparkGraph, view_names

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCHEMA = """
node Person { name: String @key age: I32? city: String? born: Date? seen: DateTime? score: F32? active: Bool? }
node Knows { code: String @key }
edge Knows: Person -> Person { since: Date? }
edge LivesIn: Person -> Person
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    made = og.Graph.init(str(tmp_path / "g"), SCHEMA)
    made.load_frames({"Person": people(0, 100), "edge:Knows": knows(0, 30)}, mode="append", index=False)
    return made


def people(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {
            "name": [f"p{n}" for n in numbers],
            "age": pa.array([None if n % 10 == 9 else n for n in numbers], pa.int32()),
            "city": [None if n % 7 == 6 else f"city {n % 5}%_" for n in numbers],
            "born": pa.array([n * 100 - 1000 for n in numbers], pa.date32()),
            "seen": pa.array([n * 3_600_000 for n in numbers], pa.timestamp("ms", "UTC")),
            "score": pa.array([None if n % 4 == 3 else (n - 20) / 10 for n in numbers], pa.float32()),
            "active": [None if n % 6 == 5 else n % 2 == 0 for n in numbers],
        }
    )


def knows(first: int, last: int) -> pa.Table:
    numbers = range(first, last)
    return pa.table(
        {"id": [f"k{n}" for n in numbers], "from": [f"p{n}" for n in numbers], "to": [f"p{n + 1}" for n in numbers]}
    )


def frame(spark: SparkSession, graph: og.Graph, type_name: str = "Person", **options: object) -> DataFrame:
    return spark.read.format("omnigraph").option("type", type_name).options(**options).load(graph.uri)


def names(given: DataFrame, column: str = "name") -> set[str]:
    rows = [row[column] for row in given.collect()]
    assert len(rows) == len(set(rows))
    return set(rows)


def test_a_type_is_read_without_registration(spark: SparkSession, graph: og.Graph) -> None:
    read = frame(spark, graph)
    assert read.columns == ["id", *sorted(["name", "age", "city", "born", "seen", "score", "active"])]
    assert dict(read.dtypes)["seen"] == "timestamp"
    assert names(read) == {f"p{n}" for n in range(100)}
    edges = frame(spark, graph, "edge:Knows").collect()
    assert {(row["id"], row["src"], row["dst"]) for row in edges} == {
        (f"k{n}", f"p{n}", f"p{n + 1}") for n in range(30)
    }


def test_one_frame_used_with_and_without_a_condition_gives_the_right_rows_each_time(spark, graph) -> None:
    read = frame(spark, graph)
    assert read.count() == 100
    young = read.where("age < 10")
    assert (young.count(), read.count(), read.where("age >= 90").count(), read.count()) == (9, 100, 9, 100)
    assert read.union(young).count() == 109
    assert read.alias("a").join(young.alias("b"), "id").count() == 9
    read.createOrReplaceTempView("reused")
    assert spark.sql(
        "select count(*) n from reused where age < 10 union all select count(*) from reused"
    ).collect() == [
        (9,),
        (100,),
    ]


def test_a_frame_stays_at_the_snapshot_it_was_loaded_from(spark, graph) -> None:
    before = frame(spark, graph)
    later = before.where("age > 0")
    graph.load_frames({"Person": people(100, 150)}, mode="append")
    graph.load_frames({"Person": people(5, 6).set_column(1, "age", pa.array([77], pa.int32()))}, mode="merge")
    assert (before.count(), frame(spark, graph).count()) == (100, 150)
    assert before.where("name = 'p5'").collect()[0]["age"] == 5
    assert later.count() == 89


def test_a_branch_a_commit_an_ancestor_and_a_version_are_each_what_they_name(spark, graph) -> None:
    first = graph.snapshot()
    graph.branch_create("draft")
    graph.load_frames({"Person": people(100, 101)}, mode="append", branch="draft", index=False)
    graph.load_frames({"Person": people(200, 203)}, mode="append", index=False)
    counts = {
        "main": frame(spark, graph).count(),
        "draft": frame(spark, graph, branch="draft").count(),
        "commit": frame(spark, graph, snapshot=first.graph_commit_id).count(),
        "ancestor": frame(spark, graph, snapshot="main~1").count(),
        "empty": frame(spark, graph, snapshot="main~2").count(),
        "version": frame(spark, graph, version=first.version).count(),
        "both": frame(spark, graph, branch="draft", version=graph.snapshot("draft").version).count(),
    }
    assert counts == {
        "main": 103, "draft": 101, "commit": 100, "ancestor": 100, "empty": 0, "version": 100, "both": 101,
    }  # fmt: skip


def test_only_the_chosen_columns_are_read_in_the_order_given(spark, graph) -> None:
    read = frame(spark, graph, columns="age, id")
    assert read.columns == ["age", "id"]
    assert {tuple(row) for row in read.where("age < 2").collect()} == {(0, "p0"), (1, "p1")}


FILTERS = [
    "age = 7", "age <> 7 and age < 20", "age != 3 or city is null", "not (age > 10) and not active", "active",
    "age in (1, 2, 500)", "age not in (1, 2)", "age between 10 and 12", "age not between 3 and 97",
    "city like 'city 1%'", "city like '%_'", "city not like '% 3%'", "city = 'city 2%_'", "city is not null",
    "born >= date '1970-01-01' and born < DATE '1974-01-01'", "born = '1972-09-27'",
    "seen < timestamp '1970-01-02 00:00:00'", "seen = '1970-01-01T05:00:00Z'",
    "score = 0", "score = 0.1", "score > 0.1", "score <= -1.5", "`age` = 4", "NOT NOT age = 4", "id = 'p4'",
]  # fmt: skip


def test_a_filter_means_what_where_means(spark, graph) -> None:
    one_by_one = [
        frame(spark, graph, columns="name", filter=text).select(sf.lit(n).alias("n"), "name")
        for n, text in enumerate(FILTERS)
    ]
    chosen = reduce(DataFrame.union, one_by_one).collect()
    whole = frame(spark, graph).select("name", *(sf.expr(text).alias(f"n{n}") for n, text in enumerate(FILTERS)))
    rows = whole.collect()
    for n, text in enumerate(FILTERS):
        expected = {row["name"] for row in rows if row[f"n{n}"]}
        assert {row["name"] for row in chosen if row["n"] == n} == expected, text
        assert 0 < len(expected) < 100 or text == "score = 0.1", text


def test_a_filter_may_name_columns_that_are_not_read(spark, graph) -> None:
    assert names(frame(spark, graph, columns="name", filter="age = 3")) == {"p3"}


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        ({"type": "Persn"}, "not_found", "unknown type 'Persn'. Did you mean 'Person'?"),
        ({"type": "Knows"}, "bad_request", "'Knows' is a node and an edge type. Use edge:Knows or node:Knows."),
        ({"type": "node:LivesIn"}, "not_found", "unknown type 'node:LivesIn'. Did you mean 'LivesIn'?"),
        ({"typ": "Person"}, "bad_request", "unknown option 'typ'. Did you mean 'type'?"),
        ({}, "bad_request", "the option 'type' is missing"),
        ({"type": "Person", "branch": "nope"}, "not_found", "branch 'nope' not found"),
        ({"type": "Person", "snapshot": "main~9"}, "not_found", "'main~9' lies before the first commit"),
        ({"type": "Person", "version": "99"}, "not_found", "graph version 99 not found"),
        ({"type": "Person", "version": "-1"}, "bad_request", "expects a graph version, not '-1'"),
        ({"type": "Person", "snapshot": "main", "branch": "main"}, "bad_request", "'snapshot' stands alone"),
        (
            {"type": "Person", "columns": "id,agee"},
            "not_found",
            "node:Person has no column 'agee'. Did you mean 'age'?",
        ),
        ({"type": "Person", "columns": "id,id"}, "bad_request", "column 'id' of node:Person is chosen twice"),
        ({"type": "Person", "filter": "agee = 3"}, "not_found", "filter: node:Person has no column 'agee'"),
        ({"type": "Person", "filter": "_rowid = 3"}, "not_found", "filter: node:Person has no column '_rowid'"),
        ({"type": "Person", "filter": "age = 'x'"}, "bad_request", "filter: 'age' cannot be compared with 'x'"),
        ({"type": "Person", "filter": "age ="}, "bad_request", "filter cannot be read at its end"),
        ({"type": "Person", "config": "/nowhere.yaml"}, "bad_request", "settings file '/nowhere.yaml' not found"),
    ],
)
def test_a_wrong_option_is_refused_at_load_by_name(spark, graph, options: dict[str, str], code: str, text: str) -> None:
    with pytest.raises(AnalysisException) as refused:
        spark.read.format("omnigraph").options(**options).load(graph.uri)
    last = str(refused.value).strip().removesuffix("SQLSTATE: 38000").strip().splitlines()[-1]
    assert f"[{code}]" in last
    assert text in last


def test_a_place_without_a_graph_is_told(spark, tmp_path: Path) -> None:
    with pytest.raises(AnalysisException, match="there is no graph at"):
        spark.read.format("omnigraph").option("type", "Person").load(str(tmp_path / "none"))


def test_a_schema_of_the_users_own_is_refused(spark, graph) -> None:
    read = spark.read.format("omnigraph").option("type", "Person").schema("name string").load(graph.uri)
    with pytest.raises(PySparkException, match="choose columns with the option 'columns'"):
        read.count()


def test_a_version_that_was_reclaimed_is_told_at_load(spark, graph) -> None:
    import lance

    first = graph.snapshot()
    graph.load_frames({"Person": people(100, 101)}, mode="append", index=False)
    table = graph.view().table("node:Person")
    reading = frame(spark, graph, snapshot=first.graph_commit_id)
    lance.dataset(table.ref.uri).cleanup_old_versions(retain_versions=1)
    with pytest.raises(AnalysisException, match=r"historical version \d+ of node:Person was reclaimed"):
        frame(spark, graph, snapshot=first.graph_commit_id)
    with pytest.raises(PySparkException, match=r"cannot be opened.*load it again"):
        reading.count()


def test_sql_makes_a_view_of_a_type(spark, graph) -> None:
    spark.sql(
        f"create or replace temporary view young using omnigraph "
        f"options (path '{graph.uri}', type 'Person', columns 'name,age', filter 'age < 3')"
    )
    assert [tuple(r) for r in spark.sql("select * from young order by age").collect()] == [
        ("p0", 0),
        ("p1", 1),
        ("p2", 2),
    ]
    graph.load_frames({"Person": people(2, 3).set_column(1, "age", pa.array([50], pa.int32()))}, mode="merge")
    assert spark.table("young").count() == 3


def test_the_namespace_gives_pinned_frames_and_raises_our_own_errors(spark, graph) -> None:
    read = graph.spark.nodes("Person", columns=["name"], filter="age < 5")
    graph.load_frames({"Person": people(2, 3).set_column(1, "age", pa.array([50], pa.int32()))}, mode="merge")
    assert names(read) == {"p0", "p1", "p2", "p3", "p4"}
    assert names(graph.spark.nodes("Person", filter="age < 5")) == {"p0", "p1", "p3", "p4"}
    assert names(graph.spark.nodes("Person", snapshot="main~2")) == names(graph.spark.nodes("Person"))
    assert graph.spark.edges("knows").count() == 30
    assert graph.spark.session is spark
    with pytest.raises(og.NotFound, match="unknown type 'node:Persn'"):
        graph.spark.nodes("Persn")
    with pytest.raises(og.NotFound, match="branch 'x' not found"):
        graph.spark.edges("Knows", branch="x")
    with pytest.raises(og.BadRequest, match="'snapshot' stands alone"):
        graph.spark.nodes("Person", branch="main", snapshot="main")
    with pytest.raises(og.BadRequest, match="the query: Spark refused it"):
        graph.spark.sql("select nothing from Person")


def test_a_frame_of_the_namespace_is_the_one_that_the_source_gives(spark, graph) -> None:
    graph.load_frames({"Person": people(100, 130)}, mode="append", index=False)
    for type_name, more in (("Person", {}), ("Person", {"columns": ["name", "age"]}), ("LivesIn", {})):
        given = graph.spark.nodes if type_name == "Person" else graph.spark.edges
        options = {"columns": ",".join(more["columns"])} if more else {}
        here, there = given(type_name, **more), frame(spark, graph, type_name, **options)
        assert here.schema == there.schema
        assert sorted(here.collect(), key=str) == sorted(there.collect(), key=str)


def test_no_frame_is_taken_for_so_small_that_it_is_sent_whole_before_its_size_is_seen(spark, graph) -> None:
    person, knows_ = graph.spark.nodes("Person"), graph.spark.edges("Knows")
    for joined in (
        person.crossJoin(knows_),
        person.select("name").crossJoin(knows_.select("src")).select("name"),
        person.join(knows_.select("src"), sf.col("name") == sf.col("src")),
    ):
        planned = joined._jdf.queryExecution().sparkPlan().toString()
        assert "Broadcast" not in planned, planned


def test_every_type_of_one_snapshot_becomes_a_view(spark, graph) -> None:
    assert graph.spark.register_views("g_") == ["g_edge_Knows", "g_LivesIn", "g_node_Knows", "g_Person"]
    graph.load_frames({"Person": people(100, 101), "node:Knows": pa.table({"code": ["x"]})}, mode="append")
    joined = "select count(*) n from g_edge_Knows k join g_Person p on p.id = k.src"
    assert spark.sql(joined).collect()[0]["n"] == 30
    assert (spark.table("g_Person").count(), spark.table("g_node_Knows").count()) == (100, 0)


def test_a_query_sees_types_by_name_and_views_of_the_session(spark, graph) -> None:
    spark.createDataFrame([("p3", "{3}")], "name string, note string").createOrReplaceTempView("notes")
    query = """with noted as (select * from notes where note <> '{}')
               select p.name, n.note, :word word from Person p join noted n using (name) order by name -- the end"""
    assert [tuple(r) for r in graph.spark.sql(query, args={"word": "w"}).collect()] == [("p3", "{3}", "w")]
    ordered = graph.spark.sql("select name from person where age > 95 order by age desc").collect()
    assert [row["name"] for row in ordered] == ["p98", "p97", "p96"]
    assert "Person" not in {view.name for view in spark.catalog.listTables()}
    assert graph.spark.sql("select 1 one").collect()[0]["one"] == 1


def test_names_that_spark_cannot_tell_apart_get_their_kind() -> None:
    assert view_names({"edge:knows": 0, "node:Knows": 0, "node:A": 0}, "x_") == {
        "x_edge_knows": "edge:knows",
        "x_node_Knows": "node:Knows",
        "x_A": "node:A",
    }


def test_a_session_may_be_given(spark, graph) -> None:
    other = spark.newSession()
    assert SparkGraph(graph, other).nodes("Person").sparkSession is other
