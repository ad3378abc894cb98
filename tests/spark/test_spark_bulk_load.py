"""DataFrames become fragments that one commit can publish, value for value, or nothing at all."""

from __future__ import annotations

import pickle
import uuid
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from pyspark.sql import functions as sf

from omnigraph.base.errors import BadRequest, InternalError
from omnigraph.pipeline.bulk_load import StagedFragments, gathered, stage_frames
from omnigraph.pipeline.worker.fragments import ANSWER_COLUMNS, FragmentTarget, refusal_of, write_partition
from omnigraph.storage.failures import Unreadable
from omnigraph.storage.fragments import read_fragment_messages, write_fragment_messages

pytestmark = [pytest.mark.spark, pytest.mark.slow]

PERSON = pa.schema([pa.field("id", pa.string(), nullable=False), ("age", pa.int32()), ("score", pa.uint64())])
KNOWS = pa.schema([pa.field(name, pa.string(), nullable=False) for name in ("id", "src", "dst")])


def commit(target: FragmentTarget, staged: StagedFragments) -> lance.LanceDataset:
    fragments = read_fragment_messages(list(staged.messages))
    operation = lance.LanceOperation.Append(fragments)
    return lance.LanceDataset.commit(target.dataset_uri, operation, read_version=target.version, max_retries=0)


def data_files(target: FragmentTarget) -> list[Path]:
    return list(Path(target.dataset_uri, "data").glob("*.lance"))


@pytest.fixture
def random_ids():
    def made(batches):
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"id": [uuid.uuid4().hex for _ in range(batch.num_rows)]})

    return made


def people(spark, count: int, partitions: int = 4):
    return spark.range(0, count, 1, partitions).select(
        sf.concat(sf.lit("p"), sf.col("id")).alias("id"),
        (sf.col("id") % 90).cast("int").alias("age"),
        sf.col("id").cast("decimal(20,0)").alias("score"),
    )


def test_two_tables_are_staged_by_executors_and_published_by_one_append_each(spark, new_table):
    person, knows = new_table("node:Person", PERSON), new_table("edge:Knows", KNOWS)
    edges = spark.range(0, 5000, 1, 3).selectExpr(
        "concat('k', id) id", "concat('p', id % 20000) src", "concat('p', (id * 7) % 20000) dst"
    )
    frames = {"node:Person": people(spark, 20_000), "edge:Knows": edges}
    staged = stage_frames(spark, {"node:Person": person, "edge:Knows": knows}, frames)

    assert {key: s.rows for key, s in staged.items()} == {"node:Person": 20_000, "edge:Knows": 5000}
    assert [len(s.messages) for s in staged.values()] == [4, 3]
    for target in (person, knows):
        unmoved = lance.dataset(target.dataset_uri)
        assert (unmoved.version, unmoved.count_rows()) == (target.version, 0)

    stored = commit(person, staged["node:Person"]).to_table().sort_by("score")
    assert stored.equals(
        pa.table(
            {
                "id": [f"p{i}" for i in range(20_000)],
                "age": [i % 90 for i in range(20_000)],
                "score": list(range(20_000)),
            },
            schema=PERSON,
        )
    )
    edges_stored = commit(knows, staged["edge:Knows"]).to_table()
    assert set(map(tuple, (row.values() for row in edges_stored.to_pylist()))) == {
        (f"k{i}", f"p{i % 20000}", f"p{i * 7 % 20000}") for i in range(5000)
    }
    assert edges_stored.num_rows == 5000


def test_fragments_of_a_branch_lie_in_the_branch_and_main_stays_as_it_was(spark, new_table):
    main = new_table("node:Person", PERSON)
    branch = lance.dataset(main.dataset_uri).create_branch("b1")
    target = FragmentTarget("node:Person", f"{main.dataset_uri}/tree/b1", branch.version, PERSON)
    staged = stage_frames(spark, {"node:Person": target}, {"node:Person": people(spark, 100, 2)})
    assert len(data_files(target)) == 2
    assert data_files(main) == []
    assert commit(target, staged["node:Person"]).count_rows() == 100
    assert lance.dataset(main.dataset_uri).count_rows() == 0


def test_empty_partitions_and_empty_frames_write_no_file(spark, new_table):
    target = new_table("node:Person", PERSON)
    staged = stage_frames(spark, {"node:Person": target}, {"node:Person": people(spark, 100).where("score = 3")})
    assert (staged["node:Person"].rows, len(staged["node:Person"].messages)) == (1, 1)
    nothing = stage_frames(spark, {"node:Person": target}, {"node:Person": people(spark, 10).where("false")})
    assert nothing == {"node:Person": StagedFragments("node:Person", (), 0)}
    assert len(data_files(target)) == 1


def test_rows_that_change_between_check_and_write_are_refused(spark, new_table, random_ids):
    target = new_table("node:Person", PERSON)
    frame = spark.range(0, 100, 1, 2).mapInArrow(random_ids, "id string")
    with pytest.raises(BadRequest, match="node:Person: the rows changed while they were loaded"):
        stage_frames(spark, {"node:Person": target}, {"node:Person": frame})
    assert lance.dataset(target.dataset_uri).version == target.version


def test_random_ids_are_loaded_when_the_caller_persists_them(spark, new_table, random_ids):
    target = new_table("node:Person", PERSON)
    frame = spark.range(0, 100, 1, 2).mapInArrow(random_ids, "id string").persist()
    staged = stage_frames(spark, {"node:Person": target}, {"node:Person": frame})["node:Person"]
    assert set(commit(target, staged).to_table()["id"].to_pylist()) == {row["id"] for row in frame.collect()}
    assert frame.is_cached
    frame.unpersist()


def test_what_a_failed_attempt_wrote_is_never_named(spark, new_table, tmp_path):
    target = new_table("node:Person", PERSON)
    failed_once = tmp_path / "failed_once"

    def fails_after_the_write(batches):
        answers = list(write_partition(batches, target))
        if not failed_once.exists():
            failed_once.touch()
            raise RuntimeError("lost after writing")
        yield from answers

    frame = people(spark, 25_000, 1)
    answers = frame.mapInArrow(fails_after_the_write, ANSWER_COLUMNS).collect()
    staged = gathered("node:Person", answers)
    assert failed_once.exists()
    assert len(data_files(target)) == 2
    assert (staged.rows, len(staged.messages)) == (25_000, 1)
    assert commit(target, staged).count_rows() == 25_000


def test_a_repeated_id_is_refused_by_table_and_id_before_anything_is_written(spark, new_table):
    person, knows = new_table("node:Person", PERSON), new_table("edge:Knows", KNOWS)
    edges = spark.createDataFrame(
        [(i, "p1", "p2") for i in ("k3", "k2", "k2", "k3", "k2", "k1")], "id: string, src: string, dst: string"
    )
    with pytest.raises(BadRequest) as refused:
        stage_frames(
            spark,
            {"node:Person": person, "edge:Knows": knows},
            {"node:Person": people(spark, 10), "edge:Knows": edges},
        )
    assert str(refused.value) == "edge:Knows: id 'k2' occurs 3 times in the input, and 1 other id is repeated too"
    assert data_files(person) == data_files(knows) == []


@pytest.mark.parametrize(
    ("columns", "text"),
    [
        (["id", "colour"], "node:Person has no property 'colour'"),
        (["age"], "node:Person: non-nullable property 'id' has null or missing value"),
        (["id", "age", "age"], "node:Person: column 'age' occurs more than once"),
    ],
)
def test_columns_that_do_not_fit_the_table_are_refused_by_name(spark, new_table, columns, text):
    frame = spark.range(1).select(*(sf.lit("x").alias(name) for name in columns))
    with pytest.raises(BadRequest) as refused:
        stage_frames(spark, {"node:Person": new_table("node:Person", PERSON)}, {"node:Person": frame})
    assert str(refused.value) == text


@pytest.mark.parametrize(
    ("select", "text"),
    [
        ("cast(null as string) id", "node:Person: non-nullable property 'id' has null or missing value"),
        ("'a' id, 3000000000 age", "node:Person.age: Integer value 3000000000 not in range"),
        ("'a' id, 1e0 age", "node:Person.age: a column of type double cannot be stored as int32"),
    ],
)
def test_a_value_that_would_change_is_refused_as_our_own_error(spark, new_table, select, text):
    target = new_table("node:Person", PERSON)
    with pytest.raises(BadRequest) as refused:
        stage_frames(spark, {"node:Person": target}, {"node:Person": spark.sql(f"select {select}")})
    assert str(refused.value).startswith(text)
    assert refused.value.hint
    assert lance.dataset(target.dataset_uri).version == target.version


def test_a_bad_value_deep_in_a_partition_is_still_our_own_error(spark, new_table):
    target = new_table("node:Person", PERSON)
    frame = spark.range(0, 25_000, 1, 1).selectExpr("string(id) id", "id - 24999 + 2147483648 age")
    with pytest.raises(BadRequest, match=r"node:Person.age: Integer value 2147483648 not in range"):
        stage_frames(spark, {"node:Person": target}, {"node:Person": frame})


def test_a_table_that_is_gone_is_told_by_the_storage_and_not_as_a_python_traceback(spark, tmp_path):
    gone = FragmentTarget("node:Person", str(tmp_path / "gone"), None, PERSON)
    with pytest.raises(Unreadable) as failed:
        stage_frames(spark, {"node:Person": gone}, {"node:Person": people(spark, 5, 1)})
    assert "gone" in str(failed.value)
    assert "Traceback" not in str(failed.value)


def test_a_frame_without_a_target_is_a_defect_of_the_caller(spark):
    with pytest.raises(InternalError, match="no target was given for node:Person"):
        stage_frames(spark, {}, {"node:Person": people(spark, 1)})


def test_a_target_crosses_processes_with_its_schema_and_shows_no_secret():
    schema = pa.schema([pa.field("id", pa.string(), nullable=False, metadata={"og": "1"})], metadata={"k": "v"})
    target = FragmentTarget("node:A", "s3://b/t", 7, schema, {"aws_secret_access_key": "hush"})
    again = pickle.loads(pickle.dumps(target))
    assert again == target
    assert again.schema.equals(schema, check_metadata=True)
    assert "hush" not in repr(target)


def test_a_partition_answers_one_row_without_spark(new_table):
    target = new_table("node:Person", PERSON)
    good = pa.RecordBatch.from_pylist([{"id": "a", "age": 1}, {"id": "b", "age": None}])
    (answer,) = write_partition(iter([good.slice(0, 0), good, good.slice(1)]), target)
    (row,) = answer.to_pylist()
    assert (row["table_key"], row["rows"], len(row["fragments"]), row["refusal"]) == ("node:Person", 3, 1, None)
    bad = pa.RecordBatch.from_pylist([{"id": None, "age": 1}])
    (answer,) = write_partition(iter([good, bad]), target)
    (row,) = answer.to_pylist()
    assert (row["rows"], row["fragments"]) == (0, [])
    assert isinstance(refusal_of(row["refusal"]), BadRequest)


def test_messages_written_from_a_table_come_back_as_fragments(new_table):
    target = new_table("node:Person", PERSON)
    rows = pa.table({"id": ["a"], "age": [1], "score": [2**64 - 1]}, schema=PERSON)
    messages = write_fragment_messages(target.dataset_uri, target.version, rows, None)
    (fragment,) = read_fragment_messages(messages)
    assert fragment.physical_rows == 1
