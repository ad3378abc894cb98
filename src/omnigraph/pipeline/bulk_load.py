"""Stages DataFrames as fragments of their tables, on the driver's side.

Holds at every return:
  1. Only what successful tasks answered is handed on; files of failed, retried or twin tasks are never named.
  2. No table has a new version, and no file was deleted: unused files are for cleanup.
  3. Ids are unique within what was written for each table, and nothing was written before all frames were checked.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as sf

from omnigraph.base.errors import BadRequest, InternalError
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.worker.fragments import ANSWER_COLUMNS, ID_HASH, FragmentTarget, refusal_of, write_partition

_ID = "id"
_HASH_SPACE = 1 << 64


@dataclass(frozen=True)
class StagedFragments:
    """What executors wrote for one table: JSON texts of its fragments, for one append by the driver."""

    table_key: str
    messages: tuple[str, ...]
    rows: int


@dataclass(frozen=True)
class IdSummary:
    """Which ids a frame holds: how many, and the sum of their hashes modulo 2**64."""

    count: int
    hash_sum: int


def stage_frames(
    spark: SparkSession, targets: Mapping[str, FragmentTarget], frames: Mapping[str, DataFrame]
) -> dict[str, StagedFragments]:
    """Write every frame beside its table, checked first; both mappings are by table key.

    A frame is computed twice, first for its ids alone. If the two do not agree (a file changed in between, an id
    came from a random function) the frame is refused; persist such a frame before giving it here.
    """
    for table_key, frame in frames.items():
        if table_key not in targets:
            raise InternalError(f"no target was given for {table_key}")
        check_columns(targets[table_key], frame)
    checked = {table_key: check_ids(table_key, frame) for table_key, frame in frames.items()}
    return {table_key: _stage(targets[table_key], frame, checked[table_key]) for table_key, frame in frames.items()}


def check_columns(target: FragmentTarget, frame: DataFrame) -> None:
    """Refuse a column the table lacks, a repeated one, and the absence of a required one."""
    with spark_failures(f"reading the columns for {target.table_key}"):
        given = frame.columns
    repeated = sorted({name for name in given if given.count(name) > 1})
    if repeated:
        raise BadRequest(f"{target.table_key}: column {repeated[0]!r} occurs more than once", "Rename or drop one.")
    unknown = [name for name in given if name not in target.schema.names]
    if unknown:
        raise BadRequest(
            f"{target.table_key} has no property {unknown[0]!r}",
            f"Its properties are: {', '.join(target.schema.names)}.",
        )
    for field in target.schema:
        if field.name not in given and (not field.nullable or field.name == _ID):
            raise BadRequest(
                f"{target.table_key}: non-nullable property '{field.name}' has null or missing value",
                f"Map a column to '{field.name}'.",
            )


def check_ids(table_key: str, frame: DataFrame) -> IdSummary:
    """Refuse a frame that holds an id twice, the smallest such id being the example; say which ids it holds."""
    repeated = sf.col("times") > 1
    with spark_failures(f"checking the ids of {table_key}"):
        found = (
            frame.where(sf.col(_ID).isNotNull())
            .groupBy(_ID)
            .agg(sf.count(sf.lit(1)).alias("times"))
            .agg(
                sf.count(sf.lit(1)).alias("ids"),
                sf.sum(sf.xxhash64(_ID).cast("decimal(38,0)")).alias("hash_sum"),
                sf.count_if(repeated).alias("repeated_ids"),
                sf.min(sf.when(repeated, sf.struct(_ID, "times"))).alias("example"),
            )
            .collect()[0]
        )
    if found["repeated_ids"] == 0:
        return IdSummary(found["ids"], int(found["hash_sum"] or 0) % _HASH_SPACE)
    example, others = found["example"], found["repeated_ids"] - 1
    more = f", and {others} other {'id is' if others == 1 else 'ids are'} repeated too" if others else ""
    raise BadRequest(
        f"{table_key}: id {example[_ID]!r} occurs {example['times']} times in the input{more}",
        "Nothing was written. Give every row its own id, or drop the repeated rows.",
    )


def _stage(target: FragmentTarget, frame: DataFrame, checked: IdSummary) -> StagedFragments:
    hashed = frame.withColumn(ID_HASH, sf.xxhash64(_ID))
    with spark_failures(f"staging {target.table_key}"):
        answers = hashed.mapInArrow(partial(write_partition, target=target), ANSWER_COLUMNS).collect()
    staged = gathered(target.table_key, answers)
    written = IdSummary(staged.rows, sum(answer["id_hash_sum"] for answer in answers) % _HASH_SPACE)
    if written != checked:
        raise BadRequest(
            f"{target.table_key}: the rows changed while they were loaded"
            f" ({checked.count} ids were checked, {written.count} rows written)",
            "Nothing was committed. Keep the input still, or persist a frame whose rows are random or unordered.",
        )
    return staged


def gathered(table_key: str, answers: list[Row]) -> StagedFragments:
    """The answers of a table's partitions as one; a partition's refusal is raised."""
    for answer in answers:
        refusal = refusal_of(answer["refusal"])
        if refusal is not None:
            raise refusal
    messages = tuple(message for answer in answers for message in answer["fragments"])
    return StagedFragments(table_key, messages, sum(answer["rows"] for answer in answers))
