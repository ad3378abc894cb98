"""Progress of a Spark job on stderr: the stage, its tasks and the rows; nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from omnigraph.cli.progress import progress

_STAGES = {"read": "read rows", "check": "check rows", "write": "write files", "index": "build indexes"}


@dataclass(frozen=True)
class JobProgress:
    """What to call as the job goes on; None where nobody would see it."""

    stage: Callable[[str, int], None] | None = None
    tasks: Callable[[int, int], None] | None = None


@contextmanager
def engine_progress(engine: str, quiet: bool) -> Iterator[JobProgress]:
    """A bar of tasks for Spark, of rows for one process."""
    if engine == "spark":
        with job_progress(quiet) as shown:
            yield shown
        return
    with progress(quiet) as report:
        yield JobProgress(report)


@contextmanager
def job_progress(quiet: bool) -> Iterator[JobProgress]:
    """A bar of Spark tasks on a terminal. Its end moves away while Spark plans further ones."""
    if quiet or not sys.stderr.isatty():
        yield JobProgress()
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<14}"),
        BarColumn(pulse_style="cyan"),
        MofNCompleteColumn(),
        TextColumn("tasks"),
        TextColumn("{task.fields[rows]}"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("start Spark", total=None, rows="")

        def stage(name: str, rows: int) -> None:
            shown.update(task, description=_STAGES.get(name, name), rows=f"{rows:,} rows" if rows else "")

        def tasks(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)

        yield JobProgress(stage, tasks)
