"""`omnigraph load`."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command import ActorOption, BranchOption, MessageOption, Run, UriArgument, YesOption, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.job_progress import engine_progress
from omnigraph.cli.output import put_json, put_line, say
from omnigraph.cli.spark_options import ConfOption, Engine, MasterOption, take_spark_options

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph.engine.write.load import LoadResult, TypeCount

_EXAMPLES = (
    "omnigraph load ./library --data people.jsonl --data books.jsonl.gz --mode append",
    "omnigraph load ./library --data exports/ --mode merge --branch import --from main -m 'weekly import'",
    "omnigraph load ./library --data exports/ --mode append --engine spark --master 'local[2]'",
    "omnigraph load ./library --data people.jsonl --mode merge --on-error quarantine --rejects bad.jsonl",
)


class Mode(StrEnum):
    append = "append"
    merge = "merge"
    overwrite = "overwrite"


class OnError(StrEnum):
    fail = "fail"
    quarantine = "quarantine"


def add_to(app: typer.Typer) -> None:
    command(app, "load", examples=_EXAMPLES)(_load)


def _load(
    run: Run,
    uri: UriArgument = None,
    *,
    data: Annotated[
        list[str],
        typer.Option("--data", "-d", metavar="FILE", help="NDJSON, plain, .gz or .zst; a folder; - is stdin. Repeats."),
    ],
    mode: Annotated[Mode, typer.Option("--mode", help="Strict inserts, upserts by id, or replace the types given.")],
    branch: BranchOption = None,
    base: Annotated[
        str | None, typer.Option("--from", metavar="B", help="Make the branch from this one if it is not there.")
    ] = None,
    on_error: Annotated[OnError, typer.Option("--on-error", help="What to do about bad rows.")] = OnError.fail,
    rejects: Annotated[
        str | None, typer.Option("--rejects", metavar="FILE", help="Where bad rows go; default beside the first input.")
    ] = None,
    max_errors: Annotated[
        int | None, typer.Option("--max-errors", metavar="N", min=1, help="How many bad rows to list; default 20.")
    ] = None,
    no_index: Annotated[bool, typer.Option("--no-index", help="Do not build indexes afterwards.")] = False,
    retries: Annotated[
        int | None, typer.Option("--retries", metavar="N", min=0, help="How often to prepare again after a lost race.")
    ] = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="One process, or Spark; auto takes Spark for large inputs or a master.")
    ] = Engine.auto,
    master: MasterOption = None,
    spark_conf: ConfOption = None,
    message: MessageOption = None,
    actor: ActorOption = None,
    yes: YesOption = False,
) -> None:
    """Load NDJSON files as one commit; any bad row stops it."""
    take_spark_options(run, master, spark_conf)
    place = run.uri(uri)
    if mode is Mode.overwrite:
        run.confirm(yes, "overwrite rows", uri)
    graph = run.write(uri)
    chosen = graph.load_engine(data, engine.value)
    with engine_progress(chosen, run.told.quiet) as shown:
        done = graph.load(
            data,
            mode=mode.value,
            branch=run.branch(branch),
            from_branch=base,
            on_error=on_error.value,
            rejects=rejects,
            max_errors=max_errors,
            retries=retries,
            engine=chosen,
            index=not no_index,
            actor=run.actor(actor),
            message=message,
            progress=shown.stage,
            tell_tasks=shown.tasks,
        )
    if run.format == JSON:
        put_json({**done.to_json(), "uri": place})
    else:
        put_loaded(place, done)
    for warning in done.warnings:
        say(warning, label="warning", style="bold yellow")


def put_loaded(place: str, done: LoadResult) -> None:
    if done.branch_created:
        put_line(f"branch {done.branch} created from {done.base_branch}")
    nodes, edges = _counted(done.nodes, "node"), _counted(done.edges, "edge")
    put_line(f"loaded {place} on branch {done.branch} with {done.mode}: {nodes}, {edges}")
    if done.duplicates_merged:
        put_line(f"{done.duplicates_merged} duplicates merged")
    if done.rejected:
        put_line(f"{done.rejected} rows rejected, see {done.rejects_file}")


def _counted(counts: Sequence[TypeCount], kind: str) -> str:
    return f"{sum(c.entities_loaded for c in counts)} {kind}s across {len(counts)} {kind} types"
