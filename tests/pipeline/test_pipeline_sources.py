"""Sources give the rows Spark reads, and say truly where each of them stands, however the files are split."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from omnigraph.pipeline.inputs import FILE_COLUMN, ROW_COLUMN
from omnigraph.pipeline.job.definition import Definition, Source, Target
from omnigraph.pipeline.job.problems import Spot
from omnigraph.pipeline.job.sources import Sources
from omnigraph.storage.s3 import S3Access

pytestmark = [pytest.mark.spark, pytest.mark.slow]
HERE = Spot(1, "sources.s")


def source(format_: str, *paths: str, **options: str) -> Source:
    return Source("s", format_, paths, options, HERE)


@pytest.fixture
def small_splits(spark: Any) -> Any:
    """A session that cuts files into pieces of a few rows."""
    session = spark.newSession()
    session.conf.set("spark.sql.files.maxPartitionBytes", "48")
    session.conf.set("spark.sql.files.openCostInBytes", "0")
    return session


def located(session: Any, given: Source, file: str = "pipeline.yaml") -> list[tuple[Any, ...]]:
    frame = Sources(session, Definition(file, Target(HERE)), S3Access()).located(given)
    assert frame is not None
    assert frame.rdd.getNumPartitions() > 1
    return sorted(tuple(row) for row in frame.select(FILE_COLUMN, ROW_COLUMN, "*").collect())


def wanted(rows: dict[str, range], values: dict[str, list[str]]) -> list[tuple[str, int, str]]:
    return sorted(
        (file, row, value) for file, each in rows.items() for row, value in zip(each, values[file], strict=True)
    )


VALUES = {"in/a 1.x": [f"a{i:03}" for i in range(40)], "in/b+%.x": [f"b{i:03}" for i in range(7)]}


def write(text: dict[str, str]) -> None:
    Path("in").mkdir()
    for name, content in text.items():
        Path(name).write_text(content)


def test_rows_of_csv_files_are_numbered_as_a_spreadsheet_does(folder, small_splits):
    write(
        {name: "name\n" + "".join(f"{v}\n" + "\n" * (i % 2) for i, v in enumerate(vs)) for name, vs in VALUES.items()}
    )
    found = located(small_splits, source("csv", "in/*.x", header="true"))
    rows = {name: range(2, 2 + len(vs)) for name, vs in VALUES.items()}
    assert [row[:3] for row in found] == wanted(rows, VALUES)


def test_rows_of_text_and_json_files_are_numbered_from_1(folder, small_splits):
    write({name: "".join(f"{v}\n" for v in vs) for name, vs in VALUES.items()})
    rows = {name: range(1, 1 + len(vs)) for name, vs in VALUES.items()}
    assert [row[:3] for row in located(small_splits, source("text", "in"))] == wanted(rows, VALUES)
    for name, values in VALUES.items():
        Path(name).write_text("".join(f'{{"v": "{v}"}}\n' for v in values))
    assert [row[:3] for row in located(small_splits, source("json", "in/*"))] == wanted(rows, VALUES)


@pytest.mark.parametrize("format_", ["parquet", "orc"])
def test_rows_of_columnar_files_are_numbered_from_1(folder, small_splits, format_):
    frame = small_splits.createDataFrame([(f"v{i:03}",) for i in range(60)], "v string")
    frame.coalesce(1).write.format(format_).save(str(folder / "one"))
    frame.coalesce(1).write.format(format_).save(str(folder / "two"))
    found = located(small_splits, source(format_, "one", "two"))
    assert len({row[0] for row in found}) == 2
    assert all(row[0].split("/")[0] in ("one", "two") for row in found)
    assert [(row[1], row[2]) for row in found] == [(i + 1, f"v{i:03}") for i in range(60)] * 2


def test_a_file_is_named_as_the_pipeline_file_is(folder, small_splits):
    write({name: "".join(f"{v}\n" for v in vs) for name, vs in VALUES.items()})
    absolute = located(small_splits, source("text", "in"), str(folder / "pipeline.yaml"))
    assert {row[0] for row in absolute} == {str(folder / name) for name in VALUES}


def test_a_compressed_file_is_numbered_too(folder, spark):
    Path("in").mkdir()
    Path("in/a.csv.gz").write_bytes(gzip.compress(b"name\nana\nbo\n"))
    Path("in/b.csv").write_text("name\ncy\n")
    found = located(spark.newSession(), source("csv", "in", header="true"))
    assert [row[:3] for row in found] == [("in/a.csv.gz", 2, "ana"), ("in/a.csv.gz", 3, "bo"), ("in/b.csv", 2, "cy")]


def test_rows_that_spark_may_drop_have_no_number(folder, spark):
    write({"in/a.csv": "1\n2\n"})
    reader = Sources(spark.newSession(), Definition("p.yaml", Target(HERE)), S3Access())
    assert reader.located(source("csv", "in/a.csv", mode="DROPMALFORMED")) is None
