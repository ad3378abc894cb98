"""`omnigraph repair`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command import Run, UriArgument, YesOption, command
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import one_line, put_json, put_line
from omnigraph.cli.progress import progress

if TYPE_CHECKING:
    from omnigraph.engine.repair.result import RepairedTable, RepairResult

_EXAMPLES = (
    "omnigraph repair ./library",
    "omnigraph repair ./library --confirm",
    "omnigraph repair ./library --confirm --force --json",
)
ConfirmOption = Annotated[bool, typer.Option("--confirm", help="Do it; without this only say what would be done.")]
ForceOption = Annotated[
    bool, typer.Option("--force", help="Also take over rows that another tool wrote, if they keep the schema's rules.")
]


def add_to(app: typer.Typer) -> None:
    command(app, "repair", examples=_EXAMPLES)(_repair)


def _repair(
    run: Run,
    uri: UriArgument = None,
    confirm: ConfirmOption = False,
    force: ForceOption = False,
    yes: YesOption = False,
) -> None:
    """Mend what verify finds, where that needs no guessing.

    What another tool compacted or indexed is taken over, torn versions above a pin are removed, indexes are rebuilt.
    Nothing that a commit shows is ever removed. What cannot be mended is named with the reason, and the exit code is 1.
    """
    if force and not confirm:
        raise UsageMistake("--force needs --confirm", "Look first: omnigraph repair without either.")
    place = run.uri(uri)
    if confirm:
        run.confirm(yes, "repair the graph", uri)
        run.announce(place)
    from omnigraph.api import repair

    with progress(run.told.quiet) as told:
        result = repair(place, confirm=confirm, force=force, settings=run.settings, progress=told)
    if run.format == JSON:
        put_json(result.to_json())
    else:
        for line in _lines(result):
            put_line(line)
        if not confirm and any(table.action.changes for table in result.tables):
            run.note("nothing was touched; add --confirm to do it")
    if result.failed:
        raise typer.Exit(1)


def _lines(result: RepairResult) -> Iterator[str]:
    found = [table for table in result.tables if table.finding is not None]
    verb = "repaired" if result.confirm else "would repair"
    mended = sum(1 for table in found if table.action.changes)
    yield one_line(f"repair {result.uri} — {verb} {mended} of {len(found)} findings")
    rows = [_cells(table) for table in result.tables]
    widths = [max(len(row[column]) for row in rows) for column in range(5)] if rows else []
    for table, row in zip(result.tables, rows, strict=True):
        padded = (text.ljust(width) for text, width in zip(row, widths, strict=True))
        error = f"  {table.error}" if table.error is not None else ""
        yield one_line(f"{'  '.join(padded).rstrip()}{error}")


def _cells(table: RepairedTable) -> tuple[str, str, str, str, str]:
    """Key and branch, action, what it is, versions, operations."""
    moved = table.lance_head_version not in (None, table.table_version)
    versions = f"v{table.table_version} → v{table.lance_head_version}" if moved else f"v{table.table_version or '-'}"
    key = f"{table.table_key or '-'} on {table.branch}"
    finding = table.finding.value if table.finding is not None else ""
    what = f"{finding} ({table.classification})" if table.classification is not None else finding
    return key, table.action.value, what, versions, ", ".join(table.operations)
