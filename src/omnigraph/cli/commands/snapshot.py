"""`omnigraph snapshot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from omnigraph.cli.command import BranchOption, Run, UriArgument, command
from omnigraph.cli.formats import ALL_FORMATS, JSON, TEXT, Rows, put_rows
from omnigraph.cli.output import put_json, put_line
from omnigraph.cli.targets import AsOfOption, AtOption, Picked, SnapshotOption, TargetOptions

if TYPE_CHECKING:
    from omnigraph.api import Graph

_COLUMNS = ("table_key", "location", "table_version", "table_branch", "row_count")
_ARROW_TYPES = ("string", "string", "uint64", "string", "uint64")
_EXAMPLES = (
    "omnigraph snapshot ./library",
    "omnigraph snapshot ./library --at main~1",
    "omnigraph snapshot --store ./library --as-of 2100-01-01 --format csv",
)


def add_to(app: typer.Typer) -> None:
    command(app, "snapshot", examples=_EXAMPLES, formats=ALL_FORMATS)(_snapshot)


def _snapshot(
    run: Run,
    uri: UriArgument = None,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    as_of: AsOfOption = None,
) -> None:
    """Show the tables of a branch or an older commit."""
    target = TargetOptions(branch, snapshot, at, as_of)
    graph = run.read(uri)
    picked = target.pick(graph, run.settings.cli_branch)
    if run.format == JSON:
        put_json(_body(graph, picked))
    elif run.format == TEXT:
        _put_text(picked)
    else:
        put_rows(Rows("snapshot", picked.target, _COLUMNS, _rows(picked), _ARROW_TYPES), run.format)


def _rows(picked: Picked) -> list[tuple[Any, ...]]:
    return [
        (key, entry.location, entry.table_version, entry.table_branch, entry.row_count)
        for key, entry in picked.snapshot.tables.items()
    ]


def _body(graph: Graph, picked: Picked) -> dict[str, Any]:
    lives = picked.branch in graph.branch_list()
    stamp = graph.context.manifest.state(picked.snapshot.branch if lives else None).stamp
    return {
        "branch": picked.branch,
        "manifest_version": picked.snapshot.version,
        "internal_schema_version": stamp,
        "tables": [dict(zip(_COLUMNS, row, strict=True)) for row in _rows(picked)],
    }


def _put_text(picked: Picked) -> None:
    if "snapshot" in picked.target:
        put_line(f"snapshot: {picked.target['snapshot']}")
    put_line(f"branch: {picked.branch}")
    put_line(f"manifest_version: {picked.snapshot.version}")
    for key, entry in picked.snapshot.tables.items():
        put_line(f"{key} v{entry.table_version} branch={entry.table_branch or 'main'} rows={entry.row_count}")
