"""`omnigraph optimize`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command import ActorOption, BranchOption, MessageOption, Run, UriArgument, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.job_progress import job_progress
from omnigraph.cli.output import one_line, put_json, put_line
from omnigraph.cli.spark_options import ConfOption, Engine, MasterOption, take_spark_options

if TYPE_CHECKING:
    from omnigraph.engine.upkeep.optimized import OptimizeResult, TableOptimized

_EXAMPLES = (
    "omnigraph optimize ./library",
    "omnigraph optimize ./library --branch draft -m 'after the import'",
    "omnigraph optimize ./library --engine spark --master 'local[2]' --json",
)


def add_to(app: typer.Typer) -> None:
    command(app, "optimize", examples=_EXAMPLES)(_optimize)


def _optimize(
    run: Run,
    uri: UriArgument = None,
    branch: BranchOption = None,
    engine: Annotated[
        Engine, typer.Option("--engine", help="One process, or Spark; auto takes Spark for large tables or a master.")
    ] = Engine.auto,
    master: MasterOption = None,
    spark_conf: ConfOption = None,
    message: MessageOption = None,
    actor: ActorOption = None,
) -> None:
    """Fold fragments together and bring indexes up to date."""
    take_spark_options(run, master, spark_conf)
    graph = run.write(uri)
    with job_progress(run.told.quiet) as shown:
        result = graph.optimize(
            run.branch(branch), engine=engine.value, actor=run.actor(actor), message=message, tell_tasks=shown.tasks
        )
    if run.format == JSON:
        put_json(result.to_json())
        return
    for line in lines(result):
        put_line(line)


def lines(result: OptimizeResult) -> Iterator[str]:
    yield one_line(f"optimize {result.uri} — {len(result.tables)} tables")
    for table in result.tables:
        yield one_line(_line(table))


def _line(table: TableOptimized) -> str:
    if table.skipped is not None:
        return f"{table.table_key} skipped: {table.skipped} (v{table.table_version}, head v{table.lance_head_version})"
    before = table.fragments + table.fragments_removed - table.fragments_added
    pending = "".join(f", index on {p.property} pending: {p.reason}" for p in table.pending_indexes)
    done = "" if table.fragments_removed or not table.committed else ", indexes built"
    return f"{table.table_key} frags {before} → {table.fragments}{done}{pending}"
