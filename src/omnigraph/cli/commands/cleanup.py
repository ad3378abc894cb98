"""`omnigraph cleanup`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.base.errors import BadRequest
from omnigraph.cli.command import Run, UriArgument, YesOption, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import one_line, put_json, put_line
from omnigraph.cli.times import duration_of

if TYPE_CHECKING:
    from omnigraph.engine.upkeep.result import CleanupResult

_EXAMPLES = (
    "omnigraph cleanup ./library --keep 200",
    "omnigraph cleanup ./library --keep 200 --older-than 30d --confirm",
)
KeepOption = Annotated[int | None, typer.Option("--keep", metavar="N", help="Keep the newest N commits of a branch.")]
OlderOption = Annotated[
    str | None, typer.Option("--older-than", metavar="D", help="Keep commits younger than this: 30d, 36h.")
]
ConfirmOption = Annotated[bool, typer.Option("--confirm", help="Remove it; without this only say what would go.")]


def add_to(app: typer.Typer) -> None:
    command(app, "cleanup", examples=_EXAMPLES)(_cleanup)


def _cleanup(
    run: Run,
    uri: UriArgument = None,
    keep: KeepOption = None,
    older_than: OlderOption = None,
    confirm: ConfirmOption = False,
    yes: YesOption = False,
) -> None:
    """Remove leftovers and versions that no kept commit needs.

    Leftovers are what interrupted or deleted work left behind.
    A commit is kept when either limit keeps it; heads of branches and the places they start from always are.
    Files that a write staged and never committed go when they are older than staging.grace (7d).
    """
    if keep is None and older_than is None:
        raise BadRequest("cleanup needs a limit", "Give --keep N, --older-than D, or both.")
    age = duration_of(older_than) if older_than is not None else None
    if confirm:
        run.confirm(yes, "remove old versions and leftovers", uri)
    graph = run.write(uri) if confirm else run.read(uri)
    result = graph.cleanup(keep, age, confirm=confirm)
    if run.format == JSON:
        put_json(result.to_json())
    else:
        for line in _lines(result):
            put_line(line)
        if not confirm:
            run.note("nothing was touched; add --confirm to do it")
    if any(table.error is not None for table in result.tables):
        raise typer.Exit(1)


def _lines(result: CleanupResult) -> Iterator[str]:
    verb = "removed" if result.confirm else "would remove"
    touched = sum(1 for t in result.tables if t.bytes_removed or t.old_versions_removed)
    yield one_line(
        f"cleanup {result.uri} — {verb} {result.versions_removed} versions ({result.bytes_removed} bytes) "
        f"across {touched} tables"
    )
    for table in result.tables:
        if table.error is not None:
            yield one_line(f"{table.table_key} error: {table.error}")
        elif table.bytes_removed or table.old_versions_removed:
            yield one_line(f"{table.table_key} versions {table.old_versions_removed} bytes {table.bytes_removed}")
    for gone in result.orphans_removed:
        count = f" ({gone.files} files, {gone.bytes} bytes)" if gone.files is not None else ""
        yield one_line(f"{verb} {gone.what} {gone.path}{count}")
    for kept in result.orphans_kept:
        yield one_line(f"kept {kept.path}: {kept.reason}")
