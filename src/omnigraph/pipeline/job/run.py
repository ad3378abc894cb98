"""A pipeline from its file to one commit: views, rules, one load, a report.

Holds at every return:
  1. Nothing was staged unless the whole pipeline fits the graph and every rule of severity error is true.
  2. One run is one data commit; a run that raises wrote nothing that is visible.
  3. The loaded branch is merged only if every rule holds; a merge that is refused leaves the load as it is.
  4. Once the file was understood, the report is written whatever became of the run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

import orjson
from pyspark.sql import SparkSession

from omnigraph.base.errors import OmniError
from omnigraph.engine.merge.result import MergeResult
from omnigraph.engine.write.load import LoadOptions, LoadResult
from omnigraph.graph import Graph
from omnigraph.pipeline.failures import spark_failures
from omnigraph.pipeline.job.definition import Definition, read_definition
from omnigraph.pipeline.job.page import report_page
from omnigraph.pipeline.job.quality import RuleOutcome, refuse_failed, run_rule
from omnigraph.pipeline.job.report import JobReport, Stages, now_text
from omnigraph.pipeline.job.validate import Overrides, Prepared, prepare, rejects_path
from omnigraph.pipeline.load import load_inputs
from omnigraph.pipeline.progress import TellTasks, watched
from omnigraph.pipeline.session import spark_session

TellStage: TypeAlias = Callable[[str, int], None]
"""Told the name of a stage and, while rows are read, how many there were so far."""


def validate_job(
    file: str | Definition, graph: Graph, overrides: Overrides | None = None, *, spark: SparkSession | None = None
) -> Prepared:
    """Check a pipeline file against a graph without writing."""
    definition = (overrides or Overrides()).over(read_definition(file) if isinstance(file, str) else file)
    checked = prepare(definition, graph, spark or spark_session(graph.settings))
    checked.release()
    return checked


def run_job(
    file: str | Definition,
    graph: Graph,
    overrides: Overrides | None = None,
    *,
    spark: SparkSession | None = None,
    actor: str | None = None,
    tell_stage: TellStage | None = None,
    tell_tasks: TellTasks | None = None,
) -> JobReport:
    """Run a pipeline file on a graph as one load."""
    chosen = overrides or Overrides()
    definition = chosen.over(read_definition(file) if isinstance(file, str) else file)
    run = _Run(definition, graph, actor, tell_stage)
    path = chosen.report or (definition.beside(definition.report) if definition.report else None)
    try:
        run.enter("start Spark")
        session = spark or spark_session(graph.settings)
        with watched(session, tell_tasks):
            run.work(session)
    except OmniError as error:
        _write_report(replace(run.report(), error=error), path)
        raise
    report = run.report()
    unwritten = _write_report(report, path)
    if unwritten is not None and report.load is not None:
        # The rows are committed: a page that could not be written does not make the run a failure.
        report = replace(report, load=replace(report.load, warnings=(*report.load.warnings, unwritten)))
    return report


class _Run:
    def __init__(self, definition: Definition, graph: Graph, actor: str | None, tell: TellStage | None) -> None:
        self._definition = definition
        self._graph = graph
        self._actor = actor
        self._tell = tell
        self._started_at = now_text()
        self._outcomes: tuple[RuleOutcome, ...] = ()
        self._done: LoadResult | None = None
        self._merged: MergeResult | None = None
        self._unmerged: OmniError | None = None
        self.stages = Stages()

    def enter(self, stage: str, rows: int = 0) -> None:
        self.stages.enter(stage)
        if self._tell is not None:
            self._tell(stage, rows)

    def work(self, spark: SparkSession) -> None:
        self.enter("read sources")
        prepared = prepare(self._definition, self._graph, spark)
        try:
            prepared.views.keep_shared()
            if prepared.rules:
                self.enter("check quality")
            self._outcomes = tuple(run_rule(rule) for rule in prepared.rules)
            refuse_failed(self._outcomes)
            self._done = self._load(prepared, spark)
        finally:
            prepared.release()
        if all(outcome.passed for outcome in self._outcomes):
            self._merge(prepared.branch)

    def _merge(self, branch: str) -> None:
        into = self._definition.target.merge_into
        if into is None:
            return
        self.enter("merge")
        try:
            done = self._graph.branch_merge(branch, into, actor=self._actor, message=self._definition.load.message)
        except OmniError as error:
            self._unmerged = error
            return
        assert isinstance(done, MergeResult)
        self._merged = done

    def _load(self, prepared: Prepared, spark: SparkSession) -> LoadResult:
        definition, section = prepared.definition, prepared.definition.load
        self.enter("number rows")
        with spark_failures("preparing the mappings"):
            inputs = [mapping.frame_input(prepared.sources.located) for mapping in prepared.mappings]
        rejects = rejects_path(definition)
        if rejects is not None:
            os.makedirs(os.path.dirname(rejects) or ".", exist_ok=True)
        self.enter("read")
        return load_inputs(
            self._graph,
            inputs,
            LoadOptions(prepared.mode, section.on_error, rejects, section.max_errors),
            ndjson=prepared.ndjson,
            branch=prepared.branch,
            from_branch=definition.target.base,
            index=section.index,
            actor=self._actor,
            message=section.message,
            progress=self.enter,
            session=spark,
        )

    def report(self) -> JobReport:
        self.stages.end()
        target = self._definition.target
        branch = target.branch or self._graph.settings.cli_branch
        return JobReport(
            self._definition.file,
            self._graph.uri,
            branch,
            target.mode or "",
            self._started_at,
            self.stages.spent(),
            self._outcomes,
            self._done,
            merge_into=target.merge_into,
            merge=self._merged,
            merge_error=self._unmerged,
        )


def _write_report(report: JobReport, path: str | None) -> str | None:
    """Write the report as a page, or as JSON where the name says so; why it could not be written, or None."""
    if path is None:
        return None
    if path.lower().endswith(".json"):
        data = orjson.dumps(report.to_json(), option=orjson.OPT_INDENT_2, default=str)
    else:
        data = report_page(report).encode()
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
        with open(path, "wb") as file:
            file.write(data)
    except OSError as error:
        return f"the report could not be written to '{path}': {error.strerror}"
    return None
