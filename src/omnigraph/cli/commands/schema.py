"""`omnigraph schema …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from omnigraph.cli.command import Run, command, help_if_no_command
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import on_terminal, put_json, put_text

if TYPE_CHECKING:
    from omnigraph.catalog.catalog import TableType
    from omnigraph.catalog.contract import AcceptedSchema

_EXAMPLES = (
    "omnigraph schema show --store ./library",
    "omnigraph schema show --store ./library --json",
)


def add_to(app: typer.Typer) -> None:
    schema = typer.Typer(help="See the schema of a graph.")
    schema.callback(invoke_without_command=True)(help_if_no_command)
    command(schema, "show", examples=_EXAMPLES)(_show)
    app.add_typer(schema, name="schema")


def _show(run: Run) -> None:
    """Print the schema in force, as it was written."""
    accepted = run.read().schema()
    if run.format == JSON:
        put_json(_body(accepted))
        return
    put_text(accepted.source)
    if on_terminal() and not accepted.source.endswith("\n"):
        put_text("\n")


def _body(accepted: AcceptedSchema) -> dict[str, Any]:
    return {
        "schema_source": accepted.source,
        "schema_shape_hash": accepted.shape_hash,
        "schema_ir_hash": accepted.ir_hash,
        "types": [_type(table) for table in accepted.catalog.tables()],
    }


def _type(table: TableType) -> dict[str, Any]:
    from omnigraph.catalog.catalog import EdgeType

    ends = {"from": table.src_type, "to": table.dst_type} if isinstance(table, EdgeType) else {}
    return {
        "table_key": table.table_key,
        "kind": table.kind,
        "name": table.name,
        **ends,
        "properties": [{"name": p.name, "type": str(p.type)} for p in table.properties],
        "constraints": [str(c) for c in table.constraints],
    }
