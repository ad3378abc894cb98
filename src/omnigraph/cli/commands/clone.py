"""`omnigraph clone`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.address import graph_uri
from omnigraph.cli.command import Run, command
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import put_json, put_line

if TYPE_CHECKING:
    from omnigraph.engine.clone.result import Tell

_EXAMPLES = (
    "omnigraph clone ./library ./copy",
    "omnigraph clone ./library s3://bucket/library",
    "omnigraph clone s3://bucket/library ./library --branch draft --json",
)
_STAGES = {"look": "looking", "copy": "copying", "check": "checking", "verify": "verifying"}
SourceArgument = Annotated[str, typer.Argument(metavar="SRC", help="The graph to copy.")]
TargetArgument = Annotated[str, typer.Argument(metavar="DST", help="Where to; empty, or not there yet.")]
BranchesOption = Annotated[
    list[str] | None, typer.Option("--branch", "-b", metavar="B", help="Only main, this one and what it was made from.")
]
AllOption = Annotated[bool, typer.Option("--all", help="Every branch; so it is without --branch.")]


def add_to(app: typer.Typer) -> None:
    command(app, "clone", examples=_EXAMPLES, needs_graph=False, needs_settings=True)(_clone)


def _clone(
    run: Run, source: SourceArgument, target: TargetArgument, branch: BranchesOption = None, every: AllOption = False
) -> None:
    """Copy a graph to another place while others write to it.

    Between disks and object stores, in any direction; nothing in the copy refers to the original.
    Run it again after an interruption: it goes on where it stopped.
    A graph that was moved is brought back to life this way: its main and all its branches work in the copy.
    """
    if branch and every:
        raise UsageMistake("--branch and --all were given", "Give one of them.")
    places = [graph_uri(run.verb, given, None, run.settings) for given in (source, target)]
    run.announce(places[1])
    from omnigraph.api import clone

    with _bar(run.told.quiet) as tell:
        done = clone(places[0], places[1], branch=branch or None, settings=run.settings, progress=tell)
    if run.format == JSON:
        put_json(done.to_json())
    else:
        put_line(f"cloned {places[0]} to {places[1]}: {len(done.branches)} branches")
    if done.findings:
        from omnigraph.engine.verify.findings import findings_said

        run.note(f"the copy has {findings_said(len(done.findings))}, as the original may: omnigraph verify {places[1]}")


@contextmanager
def _bar(quiet: bool) -> Iterator[Tell | None]:
    """A bar of bytes on a terminal; None where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
    from rich.progress import DownloadColumn as Bytes

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<10}"),
        BarColumn(pulse_style="cyan"),
        Bytes(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("looking", total=None)

        def tell(stage: str, done: int, total: int) -> None:
            if stage == "copy":
                shown.update(task, description=_STAGES[stage], completed=done, total=total)
            else:
                shown.update(task, description=_STAGES.get(stage, stage))

        yield tell
