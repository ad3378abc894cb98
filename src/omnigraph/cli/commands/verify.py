"""`omnigraph verify`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command import Run, UriArgument, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import one_line, put_json, put_line
from omnigraph.cli.progress import progress

if TYPE_CHECKING:
    from omnigraph.engine.verify.findings import Finding, VerifyResult

_EXAMPLES = (
    "omnigraph verify ./library",
    "omnigraph verify ./library --branch main --branch draft",
    "omnigraph verify s3://bucket/library --json",
)
BranchesOption = Annotated[
    list[str] | None, typer.Option("--branch", "-b", metavar="B", help="Only this branch; may be given again.")
]


def add_to(app: typer.Typer) -> None:
    command(app, "verify", examples=_EXAMPLES)(_verify)


def _verify(run: Run, uri: UriArgument = None, branch: BranchesOption = None) -> None:
    """Read everything and say what is broken; nothing is changed.

    Missing and torn files, pins that do not open, wrong counts, repeated ids, dangling edges, broken rules, indexes
    that answer otherwise than the rows, leftovers. The graph need not open.
    The exit code is 0 when the graph is whole and 1 when something was found.
    """
    place = run.uri(uri)
    from omnigraph.api import verify

    with progress(run.told.quiet) as told:
        result = verify(place, branch or (), settings=run.settings, progress=told)
    if run.format == JSON:
        put_json(result.to_json())
    else:
        for line in _lines(result):
            put_line(line)
    if not result.is_whole:
        raise typer.Exit(1)


def _lines(result: VerifyResult) -> Iterator[str]:
    from omnigraph.engine.verify.findings import findings_said

    tables = "1 table" if result.tables_checked == 1 else f"{result.tables_checked} tables"
    yield one_line(f"verify {result.uri} — {tables}, {findings_said(len(result.findings))}")
    for finding in result.findings:
        yield one_line(_line(finding))


def _line(found: Finding) -> str:
    version = found.head if found.head is not None else found.pinned
    place = [found.finding.value, found.branch or "-", found.table_key or "", f"v{version}" if version else ""]
    return f"{' '.join(part for part in place if part)}: {found.message}; {found.repair}"
