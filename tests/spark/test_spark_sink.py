"""`df.write.format("omnigraph")`: one commit of one type, checked like every load, or nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

import omnigraph as og
from omnigraph.pipeline.sink import GraphWriter, StagedRows
from omnigraph.pipeline.write_plan import plan_write

pytestmark = [pytest.mark.spark, pytest.mark.slow]
SCHEMA = """
node Person { name: String @key age: I32? score: U64? seen: DateTime? vec: Vector(2)? tags: [String]? }
edge Knows: Person -> Person { since: Date? }
"""


@pytest.fixture
def graph(tmp_path: Path) -> og.Graph:
    return og.Graph.init(str(tmp_path / "g"), SCHEMA)


def write(frame: DataFrame, graph: og.Graph, save_mode: str = "append", **options: object) -> None:
    given = {"type": "Person", **options}
    frame.write.format("omnigraph").options(**given).mode(save_mode).save(graph.uri)


def people(spark: SparkSession, first: int, last: int, age: str = "id") -> DataFrame:
    return spark.range(first, last, 1, 3).selectExpr("concat('p', id) name", f"cast({age} as int) age")


def ages(graph: og.Graph, branch: str | None = None) -> dict[str, int]:
    rows = graph.view(branch).table("node:Person").read(["name", "age"])
    return dict(zip(rows["name"].to_pylist(), rows["age"].to_pylist(), strict=True))


def staged(graph: og.Graph) -> list[Path]:
    return [path for path in Path(graph.uri, "__staging").rglob("*") if path.is_file()]


def test_a_frame_of_several_partitions_becomes_one_commit(spark, graph) -> None:
    write(people(spark, 0, 1000), graph, message="from spark", actor="act-ana", index="false")
    assert ages(graph) == {f"p{n}": n for n in range(1000)}
    assert next((c.kind, c.message, c.actor_id) for c in graph.list_commits()) == ("load", "from spark", "act-ana")
    assert len(graph.list_commits()) == 2
    assert staged(graph) == []


def test_append_refuses_stored_ids_and_merge_replaces_them(spark, graph) -> None:
    write(people(spark, 0, 10), graph)
    before = graph.snapshot()
    with pytest.raises(PySparkException, match=r"(?s)already has id 'p9'"):
        write(people(spark, 9, 12), graph)
    assert graph.snapshot() == before
    write(people(spark, 9, 12, "id + 100"), graph, mode="merge")
    assert ages(graph) == {**{f"p{n}": n for n in range(9)}, "p9": 109, "p10": 110, "p11": 111}
    assert staged(graph) == []


def test_overwrite_replaces_the_rows_of_the_type(spark, graph) -> None:
    write(people(spark, 0, 10), graph)
    write(people(spark, 20, 22), graph, "overwrite")
    assert ages(graph) == {"p20": 20, "p21": 21}


def test_a_branch_is_written_and_made_when_its_base_is_given(spark, graph) -> None:
    write(people(spark, 0, 2), graph)
    write(people(spark, 2, 3), graph, branch="draft", from_branch="main")
    assert (ages(graph), ages(graph, "draft")) == ({"p0": 0, "p1": 1}, {"p0": 0, "p1": 1, "p2": 2})


def test_edges_and_every_wide_type_of_spark_are_written(spark, graph) -> None:
    rows = spark.sql(
        "select 'a' name, cast(18446744073709551615 as decimal(20,0)) score, timestamp'2024-02-29 12:00:00Z' seen,"
        " array(1.5f, 2f) vec, array('x', '') tags union all select 'b', null, null, null, null"
    )
    write(rows, graph)
    edges = spark.sql("select 'a' `from`, 'b' `to`, date'2024-01-01' since")
    write(edges, graph, type="Knows")
    found = graph.view().table("node:Person").read().to_pylist()
    assert {row["name"]: (row["score"], row["vec"], row["tags"]) for row in found} == {
        "a": (2**64 - 1, [1.5, 2.0], ["x", ""]),
        "b": (None, None, None),
    }
    assert found[0]["seen"].isoformat() == "2024-02-29T12:00:00+00:00"
    assert [(r["src"], r["dst"]) for r in graph.view().table("edge:Knows").read().to_pylist()] == [("a", "b")]


def test_what_the_source_reads_the_sink_writes_back_unchanged(spark, graph) -> None:
    write(people(spark, 0, 50), graph)
    before = graph.view().table("node:Person").read().sort_by("id")
    write(graph.spark.nodes("Person"), graph, "overwrite")
    assert graph.view().table("node:Person").read().sort_by("id").equals(before)


@pytest.mark.parametrize(
    ("select", "options", "text"),
    [
        ("'a' name, 1 agee", {}, "Person has no property 'agee'. Did you mean 'age'?"),
        ("1 age", {}, "there is no column for the required 'name'"),
        ("'a' name", {"type": "Persn"}, "unknown type 'Persn'. Did you mean 'Person'?"),
        ("'a' name", {"branch": "nope"}, "branch 'nope' not found"),
        ("'a' name", {"mode": "upsert"}, "the option 'mode' is 'upsert'"),
        ("'a' name", {"index": "maybe"}, "the option 'index' expects true or false"),
        ("'a' name", {"filter": "age = 1"}, "unknown option 'filter'"),
        ("'a' name, 3000000000 age", {}, "exceeds I32 range"),
        ("'x' `from`, 'y' `to`", {"type": "Knows"}, "dst 'y' not found in Person (and 1 more)"),
    ],
)
def test_a_wrong_write_is_refused_by_name_and_changes_nothing(spark, graph, select, options, text) -> None:
    before = graph.snapshot()
    with pytest.raises(PySparkException) as refused:
        write(spark.sql(f"select {select}"), graph, **options)
    assert text in str(refused.value)
    assert graph.snapshot() == before
    assert staged(graph) == []


def test_a_failed_task_commits_nothing(spark, graph) -> None:
    before = graph.snapshot()
    with pytest.raises(PySparkException):
        write(people(spark, 0, 100, "assert_true(id < 90) is null or id").selectExpr("name", "age"), graph)
    assert graph.snapshot() == before


def test_abort_after_a_commit_that_landed_takes_nothing_away(spark, graph) -> None:
    schema = people(spark, 0, 1).schema
    writer = GraphWriter(plan_write({"path": graph.uri, "type": "Person"}, schema, False))
    batch = pa.RecordBatch.from_pydict({"name": ["a", "b"], "age": pa.array([1, 2], pa.int32())})
    twin, message = writer.write(iter([batch])), writer.write(iter([batch]))
    assert isinstance(twin, StagedRows)
    messages = [message, writer.write(iter([])), None]
    writer.commit(messages)
    writer.abort(messages)
    assert ages(og.Graph.open(graph.uri)) == {"a": 1, "b": 2}
    assert staged(graph) == []


def test_rows_of_a_reader_are_taken_a_batch_at_a_time(graph) -> None:
    ahead = []

    def batches():
        for n in range(50):
            ahead.append(n)
            rows = {"name": [f"p{n}-{k}" for k in range(20_000)], "age": pa.array([n] * 20_000, pa.int32())}
            yield pa.RecordBatch.from_pydict(rows)

    seen = []
    reader = pa.RecordBatchReader.from_batches(pa.schema([("name", pa.string()), ("age", pa.int32())]), batches())
    graph.load_frames(
        {"Person": reader}, mode="append", index=False, progress=lambda _, rows: seen.append((rows, len(ahead)))
    )
    assert graph.snapshot().tables["node:Person"].row_count == 1_000_000
    read = [(rows, batches) for rows, batches in seen if rows]
    assert all(batches <= rows // 20_000 + 1 for rows, batches in read)
    assert len(read) > 50


def test_executors_load_no_room_that_can_publish() -> None:
    code = (
        "import sys, pyspark_omnigraph, omnigraph.pipeline.sink;"
        "rooms = ('graph', 'api', 'engine', 'commit', 'manifest');"
        "print([m for m in sys.modules if m.startswith('omnigraph.') and m.split('.')[1] in rooms])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
