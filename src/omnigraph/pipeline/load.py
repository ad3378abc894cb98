"""Bulk loads on Spark: NDJSON files and DataFrames into a graph, as one commit.

Holds at every return:
  1. The same rows, counts, errors and texts as the embedded engine gives for the same input.
  2. Only what successful tasks answered is committed; files of failed, retried or twin tasks are left for cleanup.
  3. The driver holds counts, file names and positions, never the rows of a bulk.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pyspark.sql import SparkSession

from omnigraph.base.errors import BadRequest
from omnigraph.base.ids import new_ulid
from omnigraph.commit.staging import staging_heartbeat
from omnigraph.engine.view import View
from omnigraph.engine.write.changes import Annotations
from omnigraph.engine.write.intake import Progress
from omnigraph.engine.write.load import LoadOptions, LoadResult, LoadRun, Mode, OnError, quiet, rejects_path_of
from omnigraph.graph import Graph, s3_access
from omnigraph.pipeline.bulk.bench import SparkBench
from omnigraph.pipeline.bulk.desk import Desk
from omnigraph.pipeline.bulk.folder import work_folder
from omnigraph.pipeline.bulk.intake import BulkIntake
from omnigraph.pipeline.inputs import FrameInput
from omnigraph.pipeline.progress import TellTasks, watched
from omnigraph.pipeline.session import spark_session
from omnigraph.pipeline.worker.decode import DecodeTask
from omnigraph.records.sources import Source, find_sources
from omnigraph.sets.scratch import Scratch


def load_files(
    graph: Graph,
    files: Sequence[str],
    *,
    mode: Mode,
    on_error: OnError = "fail",
    rejects: str | None = None,
    max_errors: int | None = None,
    retries: int | None = None,
    tell_tasks: TellTasks | None = None,
    **more: Any,
) -> LoadResult:
    """Load NDJSON files and directories; `more` is what `load_inputs` takes."""
    options = LoadOptions(mode, on_error, rejects, max_errors, retries)
    spark = more.pop("session", None) or spark_session(graph.settings)
    with watched(spark, tell_tasks):
        return load_inputs(graph, (), options, ndjson=files, session=spark, **more)


def load_inputs(
    graph: Graph,
    inputs: Sequence[FrameInput],
    options: LoadOptions,
    *,
    ndjson: Sequence[str] = (),
    branch: str | None = None,
    from_branch: str | None = None,
    index: bool = True,
    actor: str | None = None,
    message: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    if_commit: str | None = None,
    progress: Progress | None = None,
    session: SparkSession | None = None,
) -> LoadResult:
    """Load frames and NDJSON files together, as one commit, then build missing indexes."""
    if not inputs and not ndjson:
        raise BadRequest("nothing was given to load")
    spark = session or (inputs[0].frame.sparkSession if inputs else spark_session(graph.settings))
    notes = Annotations(actor, message, metadata, if_commit)
    sources = tuple(_absolute(source) for source in find_sources(ndjson, s3_access(graph.settings)))
    first = ndjson[0] if ndjson else None
    path = rejects_path_of(options, first)
    created = graph.branch_for_load(branch, from_branch)

    def read(intake: BulkIntake) -> None:
        if sources:
            intake.read_files(sources)
        for given in inputs:
            intake.read_frame(given)

    done = _load(graph, spark, read, options, notes, path, lambda: graph.view(branch), progress or quiet)
    return graph.after_load(replace(done, base_branch=from_branch, branch_created=created), branch, index, actor)


def _absolute(source: Source) -> Source:
    """Executors may stand in another directory; errors still name the input as it was given."""
    if source.path is None or source.remote is not None:
        return source
    return replace(source, path=os.path.abspath(source.path))


def _load(
    graph: Graph,
    spark: SparkSession,
    read: Callable[[BulkIntake], None],
    options: LoadOptions,
    notes: Annotations,
    rejects_path: str | None,
    open_view: Callable[[], View],
    progress: Progress,
) -> LoadResult:
    ctx, operation = graph.context, new_ulid()
    view = open_view()
    limit = options.max_errors or ctx.settings.load_max_errors
    with (
        staging_heartbeat(ctx, operation, view.branch, notes.actor) as beat,
        work_folder(ctx.root, ctx.settings, spark, beat) as folder,
        Scratch(ctx.settings) as scratch,
    ):
        beat.pin(view)
        desk = Desk(spark, folder)
        settings = ctx.settings
        task = DecodeTask(
            view.catalog, folder, settings.load_max_line_bytes, settings.load_batch_rows, limit, options.quarantines
        )
        reading = BulkIntake(desk, task, scratch, progress)
        progress("read", 0)
        read(reading)
        bench = SparkBench(scratch, desk, settings, reading.breaks_values)
        run = LoadRun(ctx, open_view, options, notes, progress, bench, reading.intake(), rejects_path, operation, beat)
        return run.commit()
