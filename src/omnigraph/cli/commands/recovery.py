"""`omnigraph recovery …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from omnigraph.base.clock import iso_us
from omnigraph.cli.bodies import recovery_body, sidecar_body, unreadable_body
from omnigraph.cli.command import Run, command, help_if_no_command
from omnigraph.cli.formats import JSON, ROW_FORMATS, TEXT, Rows, put_rows
from omnigraph.cli.lines import record_line, sidecar_line, unreadable_line
from omnigraph.cli.output import put_json, put_line

if TYPE_CHECKING:
    from omnigraph.engine.operations import Recoveries

_COLUMNS = ("state", "operation_id", "writer_kind", "branch", "actor", "time", "graph_commit_id", "tables")
_EXAMPLES = (
    "omnigraph recovery list --store ./library",
    "omnigraph recovery list --store ./library --json",
)


def add_to(app: typer.Typer) -> None:
    recovery = typer.Typer(help="See interrupted writes and what became of them.")
    recovery.callback(invoke_without_command=True)(help_if_no_command)
    command(recovery, "list", examples=_EXAMPLES, formats=ROW_FORMATS)(_list)
    app.add_typer(recovery, name="recovery")


def _list(run: Run) -> None:
    """List interrupted writes, then what recovery did."""
    found = run.read().recoveries()
    if run.format == JSON:
        put_json(_body(found))
    elif run.format == TEXT:
        _put_text(run, found)
    else:
        # Recoveries belong to the graph as a whole; main stands for it.
        put_rows(Rows("recovery list", {"branch": "main"}, _COLUMNS, _rows(found)), run.format)


def _body(found: Recoveries) -> dict[str, Any]:
    return {
        "pending": [sidecar_body(s) for s in found.pending],
        "unreadable": [unreadable_body(e) for e in found.unreadable],
        "recoveries": [recovery_body(r) for r in found.records],
    }


def _put_text(run: Run, found: Recoveries) -> None:
    for error in found.unreadable:
        put_line(unreadable_line(error))
    for sidecar in found.pending:
        put_line(sidecar_line(sidecar))
    for record in found.records:
        put_line(record_line(record))
    if not (found.unreadable or found.pending or found.records):
        run.note("nothing is pending and nothing was ever recovered")


def _rows(found: Recoveries) -> list[tuple[Any, ...]]:
    rows: list[tuple[Any, ...]] = []
    for e in found.unreadable:
        rows.append(("unreadable", None, None, None, None, None, None, e.describe()))
    for s in found.pending:
        tables = [t.table_key for t in s.tables]
        rows.append(
            ("pending", s.operation_id, s.writer_kind.value, s.branch or "main", s.actor_id, s.started_at, None, tables)
        )
    for r in found.records:
        tables = [f"{o.table_key} v{o.from_version} → v{o.to_version}" for o in r.per_table_outcomes]
        when = iso_us(r.created_at)
        rows.append(
            (
                r.recovery_kind,
                r.operation_id,
                r.sidecar_writer_kind,
                None,
                r.recovery_for_actor,
                when,
                r.graph_commit_id,
                tables,
            )
        )
    return rows
