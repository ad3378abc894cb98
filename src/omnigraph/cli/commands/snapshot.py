"""`omnigraph snapshot`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.command import BranchOption, Run, UriArgument, command
from omnigraph.cli.formats import ALL_FORMATS, JSON, TEXT, Rows, put_rows
from omnigraph.cli.output import put_json, put_line
from omnigraph.cli.targets import AsOfOption, AtOption, Picked, SnapshotOption, TargetOptions

if TYPE_CHECKING:
    from omnigraph.api import Graph

_COLUMNS = ("table_key", "location", "table_version", "table_branch", "row_count")
_ARROW_TYPES = ("string", "string", "uint64", "string", "uint64")
_STATS = ("fragments", "deleted_rows", "unindexed_rows", "versions", "bytes", "bytes_stored")
_EXAMPLES = (
    "omnigraph snapshot ./library",
    "omnigraph snapshot ./library --stats",
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
    stats: Annotated[
        bool, typer.Option("--stats", help="Add fragments, rows without an index, versions and bytes.")
    ] = False,
) -> None:
    """Show the tables of a branch or an older commit."""
    target = TargetOptions(branch, snapshot, at, as_of)
    graph = run.read(uri)
    picked = target.pick(graph, run.settings.cli_branch)
    found = _stats(graph, picked) if stats else {}
    if run.format == JSON:
        put_json(_body(graph, picked, found))
    elif run.format == TEXT:
        _put_text(picked, found)
    else:
        more = _STATS if stats else ()
        types = (*_ARROW_TYPES, *("uint64" for _ in more))
        put_rows(Rows("snapshot", picked.target, (*_COLUMNS, *more), _rows(picked, found), types), run.format)


def _stats(graph: Graph, picked: Picked) -> dict[str, tuple[int | None, ...]]:
    """The values of `_STATS` by location, which a table keeps under every name; none of types that are no more."""
    found = {table.location: table for table in graph.table_stats(snapshot=picked.snapshot)}
    places = [entry.location for entry in picked.snapshot.tables.values()]
    return {place: tuple(getattr(found.get(place), name, None) for name in _STATS) for place in places}


def _rows(picked: Picked, stats: dict[str, tuple[int | None, ...]]) -> list[tuple[Any, ...]]:
    return [
        (key, entry.location, entry.table_version, entry.table_branch, entry.row_count, *stats.get(entry.location, ()))
        for key, entry in picked.snapshot.tables.items()
    ]


def _body(graph: Graph, picked: Picked, stats: dict[str, tuple[int | None, ...]]) -> dict[str, Any]:
    lives = picked.branch in graph.branch_list()
    stamp = graph.context.manifest.state(picked.snapshot.branch if lives else None).stamp
    return {
        "branch": picked.branch,
        "manifest_version": picked.snapshot.version,
        "internal_schema_version": stamp,
        "tables": [
            dict(zip((*_COLUMNS, *(_STATS if stats else ())), row, strict=True)) for row in _rows(picked, stats)
        ],
    }


def _put_text(picked: Picked, stats: dict[str, tuple[int | None, ...]]) -> None:
    if "snapshot" in picked.target:
        put_line(f"snapshot: {picked.target['snapshot']}")
    put_line(f"branch: {picked.branch}")
    put_line(f"manifest_version: {picked.snapshot.version}")
    for key, entry in picked.snapshot.tables.items():
        more = "".join(f" {name}={value}" for name, value in zip(_STATS, stats.get(entry.location, ()), strict=False))
        put_line(f"{key} v{entry.table_version} branch={entry.table_branch or 'main'} rows={entry.row_count}{more}")
