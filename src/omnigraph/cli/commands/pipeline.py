"""`omnigraph pipeline …`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command import (
    ActorOption,
    BranchOption,
    MessageOption,
    Run,
    YesOption,
    command,
    help_if_no_command,
)
from omnigraph.cli.commands.load import Mode, put_loaded
from omnigraph.cli.failures import UsageMistake, failure_of
from omnigraph.cli.formats import JSON
from omnigraph.cli.job_progress import job_progress
from omnigraph.cli.output import on_terminal, one_line, put_json, put_line, say
from omnigraph.cli.spark_options import ConfOption, Engine, MasterOption, take_spark_options

if TYPE_CHECKING:
    from omnigraph.base.errors import OmniError
    from omnigraph.pipeline.job.definition import Definition
    from omnigraph.pipeline.job.report import JobReport
    from omnigraph.pipeline.job.validate import Overrides, Prepared

_VALIDATE_EXAMPLES = ("omnigraph pipeline validate pipeline.yaml",)
_RUN_EXAMPLES = (
    "omnigraph pipeline run pipeline.yaml",
    "omnigraph pipeline run pipeline.yaml --branch trial --from main --mode merge --report run.html -m 'trial run'",
)


FileArgument = Annotated[str, typer.Argument(metavar="FILE", help="The pipeline.yaml.")]
FromOption = Annotated[str | None, typer.Option("--from", metavar="B", help="Make the branch from this one if needed.")]
ModeOption = Annotated[Mode | None, typer.Option("--mode", help="Strict inserts, upserts, or replace the types.")]
EngineOption = Annotated[Engine, typer.Option("--engine", help="A pipeline runs on spark.")]
ReportOption = Annotated[
    str | None, typer.Option("--report", metavar="FILE", help="Write a report: an HTML page, or JSON if named .json.")
]


def add_to(app: typer.Typer) -> None:
    pipeline = typer.Typer(help="Check and run bulk jobs on Spark.")
    pipeline.callback(invoke_without_command=True)(help_if_no_command)
    command(pipeline, "validate", examples=_VALIDATE_EXAMPLES)(_validate)
    command(pipeline, "run", examples=_RUN_EXAMPLES)(_run)
    app.add_typer(pipeline, name="pipeline")


def _validate(
    run: Run,
    file: FileArgument,
    branch: BranchOption = None,
    base: FromOption = None,
    mode: ModeOption = None,
    master: MasterOption = None,
    spark_conf: ConfOption = None,
    engine: EngineOption = Engine.spark,
) -> None:
    """Check a pipeline file; nothing is written."""
    _on_spark(run, engine, master, spark_conf)
    definition, place = _read(run, file)
    with run.read(place) as graph:
        from omnigraph.pipeline.job.run import validate_job

        with job_progress(run.told.quiet) as shown:
            if shown.stage is not None:
                shown.stage("start Spark", 0)
            checked = validate_job(definition, graph, _overrides(branch, base, mode))
    if run.format == JSON:
        put_json(checked.to_json(run.uri(place)))
    else:
        _put_valid(checked, run.uri(place))


def _run(
    run: Run,
    file: FileArgument,
    branch: BranchOption = None,
    base: FromOption = None,
    mode: ModeOption = None,
    master: MasterOption = None,
    spark_conf: ConfOption = None,
    engine: EngineOption = Engine.spark,
    report: ReportOption = None,
    message: MessageOption = None,
    actor: ActorOption = None,
    yes: YesOption = False,
) -> None:
    """Run a pipeline file on Spark as one load and one commit."""
    _on_spark(run, engine, master, spark_conf)
    definition, place = _read(run, file)
    overrides = replace(_overrides(branch, base, mode), message=message, report=report)
    if (overrides.mode or definition.target.mode) == "overwrite":
        run.confirm(yes, "overwrite rows", place)
    with run.write(place) as graph:
        from omnigraph.pipeline.job.run import run_job

        with job_progress(run.told.quiet) as shown:
            done = run_job(
                definition,
                graph,
                overrides,
                actor=run.actor(actor),
                tell_stage=shown.stage,
                tell_tasks=shown.tasks,
            )
    if run.format == JSON:
        put_json({**done.to_json(), "uri": run.uri(place)})
    else:
        _put_report(run.uri(place), done)
    for warning in done.warnings:
        say(warning, label="warning", style="bold yellow")
    if done.merge_error is not None:
        _refuse_merge(done.merge_error)


def _refuse_merge(error: OmniError) -> None:
    """The rows are loaded and were told of; what was asked of them besides did not happen."""
    failure = failure_of(error)
    say(f"loaded, but not merged: {failure.text}", label="error", style="bold red")
    for line in failure.listed:
        say(f"  {one_line(line)}")
    raise typer.Exit(failure.exit_code)


def _on_spark(run: Run, engine: Engine, master: str | None, given: Sequence[str] | None) -> None:
    if engine is Engine.embedded:
        raise UsageMistake("a pipeline runs on spark", "Its transforms are Spark SQL; leave --engine out.")
    take_spark_options(run, master, given)


def _read(run: Run, file: str) -> tuple[Definition, str | None]:
    """The pipeline, and the graph it names unless the line names one."""
    from omnigraph.pipeline.job.definition import read_definition

    definition = read_definition(file)
    return definition, None if run.names_a_store else definition.graph(run.settings.graphs)


def _overrides(branch: str | None, base: str | None, mode: Mode | None) -> Overrides:
    from omnigraph.pipeline.job.validate import Overrides

    return Overrides(branch, base, mode.value if mode is not None else None)


def _put_valid(checked: Prepared, uri: str) -> None:
    definition = checked.definition
    counted = [
        _counted(len(definition.sources), "source"),
        _counted(len(definition.transforms), "view"),
        _counted(len(checked.mappings), "mapping"),
        _counted(len(checked.rules), "quality rule"),
    ]
    put_line(f"{definition.file} is valid: {', '.join(counted)}")
    base = f" (made from {definition.target.base} if needed)" if definition.target.base else ""
    put_line(f"it loads {uri} on branch {checked.branch}{base} with {checked.mode}")
    if definition.target.merge_into is not None:
        put_line(f"and merges it into {definition.target.merge_into} if every quality rule holds")


def _put_report(uri: str, done: JobReport) -> None:
    assert done.load is not None
    put_loaded(uri, done.load)
    held = [rule for rule in done.rules if rule.passed]
    if done.rules:
        verb = "holds" if len(done.rules) == 1 else "hold"
        put_line(f"{len(held)} of {_counted(len(done.rules), 'quality rule')} {verb}")
    if done.merge is not None:
        put_line(f"merged {done.merge.source} into {done.merge.target}: {done.merge.outcome}")
    if on_terminal():
        _draw(done)
    else:
        for count in done.counts:
            put_line(f"{count.kind} {count.type}: {count.rows}")


def _draw(done: JobReport) -> None:
    """Counts and times side by side, with bars."""
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    counts = Table("type", "", title="rows", title_justify="left")
    counts.add_column("rows", justify="right")
    most = max((count.rows for count in done.counts), default=0)
    for count in done.counts:
        counts.add_row(count.type, _bar(count.rows, most), f"{count.rows:,}")
    stages = Table("stage", "", title="time", title_justify="left")
    stages.add_column("seconds", justify="right")
    longest = max((spent for _, spent in done.stages), default=0.0)
    for name, spent in done.stages:
        stages.add_row(name, _bar(spent, longest), f"{spent:,.2f}")
    console.print(counts)
    console.print(stages)


def _bar(value: float, most: float) -> str:
    return "█" * max(1, round(24 * value / most)) if value and most else ""


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
