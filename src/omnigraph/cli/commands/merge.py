"""`omnigraph branch merge`, `omnigraph branch reset` and `omnigraph commit revert`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.change_text import SIGNS, Line, decision_line, put_lines, side_lines
from omnigraph.cli.command import ActorOption, BranchOption, MessageOption, Run, YesOption, command
from omnigraph.cli.failures import EXIT_CODES, conflict_line
from omnigraph.cli.formats import JSON
from omnigraph.cli.job_progress import engine_progress
from omnigraph.cli.output import one_line, put_json, put_line, say
from omnigraph.cli.progress import progress
from omnigraph.cli.spark_options import ConfOption, Engine, MasterOption, take_spark_options

if TYPE_CHECKING:
    from omnigraph.engine.merge.result import MergePreview, MergeResult

_MERGE_EXAMPLES = (
    "omnigraph branch merge draft --dry-run --store ./library",
    "omnigraph branch merge draft --store ./library -m 'spring import' --delete-branch",
    "omnigraph branch merge draft --granularity property --strategy theirs --store ./library",
    "omnigraph branch merge draft --dry-run --resolve choices.json --store ./library",
    "omnigraph branch merge main --into draft --store ./library",
    "omnigraph branch merge import --engine spark --master 'local[2]' --store ./library",
)
_RESET_EXAMPLES = (
    "omnigraph branch reset --to 01KBXJ7Q3WZ5T9N8M4R2C6D0EF --store ./library",
    "omnigraph branch reset --branch draft --to draft~2 --store ./library -m 'try again'",
)
_REVERT_EXAMPLES = (
    "omnigraph commit revert 01KBXJ7Q3WZ5T9N8M4R2C6D0EF --store ./library",
    "omnigraph commit revert main~0 --store ./library -m 'undo the merge'",
)


class Strategy(StrEnum):
    ours = "ours"
    theirs = "theirs"


class Granularity(StrEnum):
    row = "row"
    property = "property"


def add_to_branch(branch: typer.Typer) -> None:
    command(branch, "merge", examples=_MERGE_EXAMPLES)(_merge)
    command(branch, "reset", examples=_RESET_EXAMPLES)(_reset)


def add_to_commit(commit: typer.Typer) -> None:
    command(commit, "revert", examples=_REVERT_EXAMPLES)(_revert)


def _merge(
    run: Run,
    source: Annotated[str, typer.Argument(metavar="SOURCE", help="The branch whose changes are brought over.")],
    into: Annotated[str | None, typer.Option("--into", metavar="B", help="The branch to change; default main.")] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would happen and write nothing.")] = False,
    strategy: Annotated[
        Strategy | None, typer.Option("--strategy", help="Who wins where rows conflict; ours is --into's side.")
    ] = None,
    resolve: Annotated[
        str | None,
        typer.Option("--resolve", metavar="FILE", help="Choices for each conflict; --dry-run makes the file."),
    ] = None,
    granularity: Annotated[
        Granularity, typer.Option("--granularity", help="Compare whole rows, or each property by itself.")
    ] = Granularity.row,
    delete_branch: Annotated[bool, typer.Option("--delete-branch", help="Delete SOURCE afterwards.")] = False,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=0, help="Changes a dry run names.")] = 1_000,
    engine: Annotated[
        Engine, typer.Option("--engine", help="One process, or Spark; auto takes Spark for very many rows or a master.")
    ] = Engine.auto,
    master: MasterOption = None,
    spark_conf: ConfOption = None,
    message: MessageOption = None,
    actor: ActorOption = None,
) -> None:
    """Bring what a branch changed into another one."""
    take_spark_options(run, master, spark_conf)
    target = run.branch(into)
    graph = run.read() if dry_run else run.write()
    options: dict[str, Any] = {"resolve": resolve, "granularity": granularity.value, "limit": limit}
    options |= {"strategy": strategy.value if strategy else None, "dry_run": dry_run, "delete_branch": delete_branch}
    options |= {"engine": engine.value, "actor": run.actor(actor), "message": message}
    has_master = run.settings.spark_master is not None or run.settings.spark_remote is not None
    expected = "spark" if engine is Engine.auto and has_master else engine.value
    with engine_progress(expected, run.told.quiet) as shown:
        done: Any = graph.branch_merge(source, target, **options, progress=shown.stage, tell_tasks=shown.tasks)
    if dry_run:
        _put_preview(run, done, resolve)
    else:
        _put_merged(run, done)


def _put_merged(run: Run, done: MergeResult) -> None:
    if run.format == JSON:
        put_json(done.to_json())
    else:
        put_line(f"merged {done.source} into {done.target}: {done.outcome}")
        if done.graph_commit_id is not None:
            put_line(f"commit {done.graph_commit_id}")
            _put_tables(done.tables)
        if done.branch_deleted:
            put_line(f"deleted branch {done.source}")
    if done.branch_delete_error is not None:
        say(f"branch {done.source} was not deleted: {done.branch_delete_error}", label="warning", style="bold yellow")


def _put_preview(run: Run, told: MergePreview, resolve: str | None) -> None:
    if told.template is not None:
        run.note(f"wrote {told.template}: give each conflict a choice, then merge with --resolve {told.template}")
    elif resolve is not None and not told.disputes:
        run.note(f"no row needs a choice: {resolve} is not needed")
    if run.format == JSON:
        put_json(told.to_json())
    else:
        put_lines(_preview_lines(told))
    if told.conflicts:
        from omnigraph.base.errors import Kind

        raise typer.Exit(EXIT_CODES[Kind.CONFLICT])


def _preview_lines(told: MergePreview) -> Iterator[Line]:
    verdict = f"{len(told.conflicts)} conflicts" if told.conflicts else told.outcome
    yield f"would merge {told.source} into {told.target}: {verdict}", "bold"
    yield from ((line, "") for line in _table_lines(told.tables))
    for change in told.changes:
        sign, style = SIGNS[change["op"]]
        yield one_line(f"{sign} {change['table_key']} '{change['id']}'"), style
    unlisted = sum(t["inserts"] + t["updates"] + t["deletes"] for t in told.tables) - len(told.changes)
    if unlisted:
        yield f"and {unlisted} more changes", ""
    sides = {(found["table_key"], found["row_id"]): found for found in told.disputes}
    for decision in told.resolved:
        key = (decision["table_key"], decision["row_id"])
        yield decision_line(decision), "bold"
        yield from side_lines(sides.get(key), indent=4)
    for conflict in told.conflicts:
        yield one_line(f"conflict {conflict_line(conflict.to_json())}"), "bold red"
        yield from side_lines(sides.get((conflict.table_key, conflict.row_id)), indent=4)


def _put_tables(tables: Sequence[Mapping[str, Any]]) -> None:
    for line in _table_lines(tables):
        put_line(line)
    if not tables:
        put_line("(no rows changed)")


def _table_lines(tables: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    width = max((len(t["table_key"]) for t in tables), default=0)
    for t in tables:
        yield f"{t['table_key']:<{width}}  inserts={t['inserts']} updates={t['updates']} deletes={t['deletes']}"


def _reset(
    run: Run,
    to: Annotated[str, typer.Option("--to", metavar="ID", help="The commit, or NAME~n, whose content is wanted.")],
    branch: BranchOption = None,
    message: MessageOption = None,
    actor: ActorOption = None,
    yes: YesOption = False,
) -> None:
    """Give a branch the content of an earlier commit."""
    on = run.branch(branch)
    run.confirm(yes, f"reset branch {on}")
    graph = run.write()
    with progress(run.told.quiet) as report:
        done = graph.branch_reset(on, to, actor=run.actor(actor), message=message, progress=report)
    if run.format == JSON:
        put_json(done.to_json())
        return
    if done.graph_commit_id is None:
        put_line(f"{on} has the content of {done.undone} already")
        return
    put_line(f"reset {on} to {done.undone}: {done.graph_commit_id}")
    _put_tables(done.tables)


def _revert(
    run: Run,
    id: Annotated[str, typer.Argument(metavar="ID", help="The commit to undo: its id, or NAME~n.")],
    branch: BranchOption = None,
    message: MessageOption = None,
    actor: ActorOption = None,
) -> None:
    """Undo one commit by a new one.

    Rows that changed again since then are conflicts, and nothing is written.
    """
    graph = run.write()
    with progress(run.told.quiet) as report:
        done = graph.commit_revert(
            id, branch=run.branch(branch), actor=run.actor(actor), message=message, progress=report
        )
    if run.format == JSON:
        put_json(done.to_json())
        return
    put_line(f"reverted {done.undone}: {done.graph_commit_id}")
    _put_tables(done.tables)
