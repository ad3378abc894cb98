"""`omnigraph status`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import typer

from omnigraph.cli.bodies import load_body, lock_body, recovery_body, sidecar_body, unreadable_body
from omnigraph.cli.command import Run, UriArgument, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.lines import load_line, lock_text, record_line, sidecar_line, unreadable_line
from omnigraph.cli.output import one_line, put_json, put_line

if TYPE_CHECKING:
    from omnigraph.engine.status import BranchStatus, GraphStatus, TableStatus

_EXAMPLES = ("omnigraph status ./library", "omnigraph status --store ./library --json")


def add_to(app: typer.Typer) -> None:
    command(app, "status", examples=_EXAMPLES)(_status)


def _status(run: Run, uri: UriArgument = None) -> None:
    """Show branches, locks, tables, loads and what is pending."""
    status = run.read(uri).status()
    if run.format == JSON:
        put_json(_body(status))
        return
    for line in _lines(status):
        put_line(line)


def _lines(status: GraphStatus) -> Iterator[str]:
    yield f"graph: {one_line(status.uri)}"
    for branch in status.branches:
        yield from _branch_lines(branch)
    for load in status.loads:
        yield load_line(load)
    for error in status.unreadable:
        yield unreadable_line(error)
    for sidecar in status.pending:
        yield sidecar_line(sidecar)
    if not status.pending and not status.unreadable:
        yield "pending: none"
    yield f"last_recovery: {record_line(status.last_recovery) if status.last_recovery else 'none'}"


def _branch_lines(branch: BranchStatus) -> Iterator[str]:
    yield f"branch: {branch.branch}"
    if branch.error is not None:
        yield f"  lock: {lock_text(branch.lock)}"
        yield one_line(f"  UNREADABLE {branch.error}; omnigraph verify")
        return
    yield f"  head: {branch.head_commit_id or '-'}"
    yield f"  manifest_version: {branch.graph_version}"
    yield f"  internal_schema: {branch.internal_schema}"
    yield f"  lock: {lock_text(branch.lock)}"
    yield f"  manifest_fragments: {branch.manifest_fragments}"
    yield f"  projection_lag: {branch.projection_lag}"
    for table in branch.tables:
        yield f"  {_table(table)}"


def _table(table: TableStatus) -> str:
    drift = f" DRIFT head=v{table.head}; omnigraph repair" if table.drifted else ""
    counts = f"rows={table.rows} fragments={table.fragments} unindexed={table.unindexed_rows}"
    return f"{table.table_key} v{table.pinned} {counts}{drift}"


def _body(status: GraphStatus) -> dict[str, Any]:
    return {
        "uri": status.uri,
        "branches": [_branch_body(b) for b in status.branches],
        "loads": [load_body(h) for h in status.loads],
        "pending": [sidecar_body(s) for s in status.pending],
        "unreadable": [unreadable_body(e) for e in status.unreadable],
        "last_recovery": recovery_body(status.last_recovery) if status.last_recovery else None,
    }


def _branch_body(branch: BranchStatus) -> dict[str, Any]:
    if branch.error is not None:
        return {
            "branch": branch.branch,
            "error": branch.error,
            "lock": lock_body(branch.lock) if branch.lock else None,
        }
    return {
        "branch": branch.branch,
        "head_commit_id": branch.head_commit_id,
        "manifest_version": branch.graph_version,
        "internal_schema_version": branch.internal_schema,
        "lock": lock_body(branch.lock) if branch.lock else None,
        "manifest_fragments": branch.manifest_fragments,
        "projection_lag": branch.projection_lag,
        "tables": [
            {
                "table_key": t.table_key,
                "table_version": t.pinned,
                "lance_head_version": t.head,
                "drift": t.drifted,
                "row_count": t.rows,
                "fragments": t.fragments,
                "unindexed_rows": t.unindexed_rows,
            }
            for t in branch.tables
        ],
    }
