"""Merges on Spark: by the same stages, in the same words and with the same commit as in one process.

Holds at every return:
  1. Only what successful tasks answered is used; files of failed, retried or twin tasks are never named.
  2. The driver holds counts, file names, ids to delete, conflicts and how they were decided, never the rows of a bulk.
  3. While rows are staged a sign of life keeps cleanup away from them and from every version that is read.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import chain

from pyspark.sql import SparkSession

from omnigraph.base.errors import InternalError, Reclaimed
from omnigraph.base.ids import new_ulid
from omnigraph.commit.staging import StagingBeat, StagingPin, staging_heartbeat
from omnigraph.engine.merge.combine import Combination, same_version
from omnigraph.engine.merge.resolve import Resolver
from omnigraph.engine.merge.rooms import Room, Sides
from omnigraph.engine.merge.table import Outcome
from omnigraph.engine.merge.threeway import DISPUTED, TAKEN, units_of
from omnigraph.engine.merge.validate import MergeCheck
from omnigraph.engine.write.bench import Bench
from omnigraph.engine.write.changeset import ChangeSet
from omnigraph.engine.write.intake import Progress
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.pipeline.batch_bytes import few_bytes_at_once
from omnigraph.pipeline.bulk.bench import SparkBench
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.folder import runs_here, work_folder
from omnigraph.pipeline.merge.check import SparkMergeCheck
from omnigraph.pipeline.merge.frames import MergeFrames
from omnigraph.pipeline.merge.table import SpreadTable
from omnigraph.pipeline.progress import TellTasks, watched
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.worker.merge import DecideTask, write_decided
from omnigraph.sets.scratch import Scratch
from omnigraph.storage.tables import TableRef, has_version


@contextmanager
def spark_room(sides: Sides, tell_tasks: TellTasks | None = None) -> Iterator[Room]:
    """The session of this process, or a new one, and a place for files that all executors reach."""
    ctx = sides.ctx
    spark = spark_session(ctx.settings)
    with (
        watched(spark, tell_tasks),
        _sign_of_life(sides, spark) as beat,
        work_folder(ctx.root, ctx.settings, spark, beat) as folder,
        Scratch(ctx.settings) as scratch,
    ):
        yield SparkRoom(sides, SparkBench(scratch, Desk(spark, folder), ctx.settings, frozenset()), beat)


@contextmanager
def _sign_of_life(sides: Sides, spark: SparkSession) -> Iterator[StagingBeat | None]:
    """A dry run whose executors run here writes nothing beside the graph, and gives none."""
    if sides.dry_run and runs_here(spark):
        yield None
        return
    with staging_heartbeat(sides.ctx, new_ulid(), sides.view.branch, sides.actor) as beat:
        entries = chain.from_iterable(found.items() for found in (sides.base, sides.source, sides.view.entries))
        beat.pin([StagingPin(key, e.location, e.table_branch, e.table_version) for key, e in entries])
        yield beat


class SparkRoom:
    def __init__(self, sides: Sides, bench: SparkBench, beat: StagingBeat | None) -> None:
        self._sides = sides
        self._spark_bench = bench
        self.bench: Bench = bench
        self.beat = beat

    def combination(self, resolver: Resolver, progress: Progress, listed_max: int, explains: int) -> Combination:
        sides, bench = self._sides, self._spark_bench
        given = (sides.view, sides.base, sides.source, resolver, bench.scratch, progress, listed_max, explains)
        return SparkCombination(*given, spark_bench=bench)


@dataclass
class SparkCombination(Combination):
    """The merge with its rows compared by Spark SQL and written by executors."""

    spark_bench: SparkBench | None = None

    @property
    def _bench(self) -> SparkBench:
        assert self.spark_bench is not None
        return self.spark_bench

    def check(self, changes: ChangeSet, table_key: str) -> MergeCheck:
        return SparkMergeCheck(self.view, changes, self._bench, table_key)

    def merged(self, key: str, base: SubTableEntry | None, source: SubTableEntry, target: SubTableEntry) -> SpreadTable:
        try:
            return self._merged(key, base, source, target)
        except InternalError:
            # What a task could not read is told as its failure; that a version is gone explains it better.
            for entry in (base, source, target):
                if entry is not None and entry.table_version and not self._is_there(entry):
                    raise Reclaimed(key, entry.table_version) from None
            raise

    def _merged(
        self, key: str, base: SubTableEntry | None, source: SubTableEntry, target: SubTableEntry
    ) -> SpreadTable:
        type_, desk = self.type_of(key), self._bench.desk
        table = SpreadTable(self.view.catalog, type_, self.resolver, self.scratch, self.listed_max, self.explains, desk)
        frames = MergeFrames(desk, type_)
        before, after = self.open(key, type_, base), self.open(key, type_, source)
        theirs = frames.net_changes(before, after)
        unchanged = same_version(base, target)
        ours = frames.no_changes() if unchanged else frames.net_changes(before, self.open(key, type_, target))
        met = frames.met(theirs, ours, self.resolver.granularity)
        task = DecideTask(
            key, type_.arrow_schema, units_of(type_), desk.folder, self.listed_max, Outcome.TAKE.value, TAKEN, DISPUTED
        )
        with few_bytes_at_once(met.sparkSession):
            decided = desk.collected(met, partial(write_decided, task=task), f"merging {key}")
        table.gather(decided, task)
        return table

    def _is_there(self, entry: SubTableEntry) -> bool:
        return has_version(TableRef(self.view.root, entry.location, entry.table_branch), entry.table_version)
