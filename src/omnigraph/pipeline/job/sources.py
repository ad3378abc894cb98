"""The sources of a pipeline as DataFrames, and where in its file each row stands.

Row numbers are what a spreadsheet shows: the rows of one file counted from 1, a csv header being row 1, blank and
comment lines not counted. They are found for every format Spark reads from files, whatever the splits.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Sequence
from typing import Any, cast

from pyspark.errors import AnalysisException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.inputs import FILE_COLUMN, ROW_COLUMN
from omnigraph.pipeline.job import s3_sources
from omnigraph.pipeline.job.definition import Definition, Source
from omnigraph.storage.s3 import S3Access

_FILE, _START, _PLACE = "__job_file", "__job_start", "__job_place"
_FIRST, _BEFORE = "__job_first", "__job_before"


class Sources:
    """Reads each source once; asking again gives the same frame. The session is the pipeline's own."""

    def __init__(self, spark: SparkSession, definition: Definition, access: S3Access) -> None:
        # Else a text column keeps the blanks of an object in it when read from files, but not when parsed from lines.
        spark.conf.set("spark.sql.json.enableExactStringParsing", "false")
        self._spark = spark
        self._definition = definition
        self._access = access
        self._frames: dict[str, DataFrame] = {}
        self._located: dict[str, DataFrame | None] = {}
        self._on_s3: dict[str, s3_sources.S3Source] = {}

    def frame(self, source: Source) -> DataFrame:
        if source.name not in self._frames:
            self._frames[source.name] = self._read(source)
        return self._frames[source.name]

    def located(self, source: Source) -> DataFrame | None:
        """The rows with FILE_COLUMN and ROW_COLUMN; None for what does not come from files."""
        if source.name not in self._located:
            self._located[source.name] = self._placed(source)
        return self._located[source.name]

    def _placed(self, source: Source) -> DataFrame | None:
        rows = self.frame(source)
        if source.name in self._on_s3:
            return self._on_s3[source.name].frame(located=True)
        if not source.paths or _drops_rows(source) or not _has_places(rows):
            return None
        with spark_failures(f"numbering the rows of source '{source.name}'"):
            if source.format == "parquet":
                return rows.select("*", self._shown("_metadata.file_path"), _row(sf.col("_metadata.row_index") + 1))
            return self._numbered(source, rows)

    def _read(self, source: Source) -> DataFrame:
        paths = [self._definition.beside(path) for path in source.paths]
        remote = [path for path in paths if s3_sources.is_on_s3(path)]
        if remote and source.format in s3_sources.FORMATS and len(remote) == len(paths):
            self._on_s3[source.name] = s3_sources.S3Source(self._spark, source, paths, self._access)
            return self._on_s3[source.name].frame(located=False)
        reader = self._spark.read.format(source.format).options(**cast(dict[str, Any], dict(source.options)))
        absolute = [path if "://" in path else os.path.abspath(path) for path in paths]
        return reader.load(absolute) if absolute else reader.load()

    def _numbered(self, source: Source, rows: DataFrame) -> DataFrame:
        """Two passes: how many rows each block of each file holds, then each row's place in its block."""
        has_header = source.format == "csv" and _option(source, "header") == "true"
        placed = rows.select(
            "*",
            sf.col("_metadata.file_path").alias(_FILE),
            sf.col("_metadata.file_block_start").alias(_START),
            sf.monotonically_increasing_id().alias(_PLACE),
        )
        blocks = placed.groupBy(_FILE, _START).agg(sf.min(_PLACE).alias(_FIRST), sf.count(sf.lit(1)).alias("rows"))
        counted: list[tuple[str, int, int, int]] = []
        before: dict[str, int] = {}
        for block in blocks.orderBy(_FILE, _START).collect():
            so_far = before.get(block[_FILE], 1 if has_header else 0)
            counted.append((block[_FILE], block[_START], block[_FIRST], so_far))
            before[block[_FILE]] = so_far + block["rows"]
        known = self._spark.createDataFrame(
            counted, f"{_FILE} string, {_START} bigint, {_FIRST} bigint, {_BEFORE} bigint"
        )
        joined = placed.join(sf.broadcast(known), [_FILE, _START])
        row = sf.col(_PLACE) - sf.col(_FIRST) + sf.col(_BEFORE) + 1
        names = [sf.col(f"`{name.replace('`', '``')}`") for name in rows.columns]
        return joined.select(*names, self._shown(_FILE), _row(row))

    def _shown(self, column: str) -> Column:
        """A file as the user would write it: from where the program runs if the pipeline file is named so."""
        # `url_decode` takes a plus for a space; in the address of a file it is a plus.
        decoded = sf.url_decode(sf.replace(sf.col(column), sf.lit("+"), sf.lit("%2B")))
        plain = sf.regexp_replace(decoded, "^file:/+", "/")
        here = os.getcwd().rstrip("/") + "/"
        if os.path.isabs(self._definition.folder):
            return plain.alias(FILE_COLUMN)
        rest = sf.substr(plain, sf.lit(len(here) + 1))
        return sf.when(plain.startswith(here), rest).otherwise(plain).alias(FILE_COLUMN)


def _has_places(rows: DataFrame) -> bool:
    """Whether the reader says which file a row comes from; readers of other makers may not."""
    try:
        return bool(rows.select("_metadata.file_path", "_metadata.file_block_start").columns)
    except AnalysisException:
        return False


def _row(number: Column) -> Column:
    return number.cast("bigint").alias(ROW_COLUMN)


def _option(source: Source, name: str) -> str:
    return next((value.lower() for given, value in source.options.items() if given.lower() == name.lower()), "")


def _drops_rows(source: Source) -> bool:
    """Whether two passes over the same file may see other rows, so that a number would be a guess."""
    return _option(source, "mode") == "dropmalformed"


def expanded(definition: Definition, source: Source, access: S3Access) -> Sequence[str]:
    """The files of an ndjson source, which the load reads itself."""
    found: list[str] = []
    for path in [definition.beside(path) for path in source.paths]:
        if s3_sources.is_on_s3(path):
            found += [each.uri for each in s3_sources.find_objects([path], access)]
        else:
            found += sorted(glob.glob(path)) if glob.has_magic(path) and not os.path.exists(path) else [path]
    return found
