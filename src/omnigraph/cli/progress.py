"""Progress of long work, on stderr: a bar on a terminal, nothing in a pipe."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Report = Callable[[str, int], None]
_STAGES = {"read": "reading", "check": "checking", "stage": "writing", "commit": "committing", "index": "indexing"}


@contextmanager
def progress(quiet: bool) -> Iterator[Report | None]:
    """Something to call with the stage and the rows so far; None where nobody would see it."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (
        SpinnerColumn(),
        TextColumn("{task.description:<11}"),
        BarColumn(pulse_style="cyan"),
        TextColumn("{task.completed:,} rows"),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("reading", total=None)

        def report(stage: str, rows: int) -> None:
            described = _STAGES.get(stage, stage)
            if rows:
                shown.update(task, description=described, completed=rows)
            else:
                shown.update(task, description=described)

        yield report
