"""`omnigraph schema …`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.base.errors import BreaksQueries
from omnigraph.cli.change_text import Line, put_lines
from omnigraph.cli.command import ActorOption, MessageOption, Run, command, help_if_no_command
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import on_terminal, put_json, put_text, say
from omnigraph.cli.progress import progress
from omnigraph.cli.schema_text import plan_lines
from omnigraph.cli.sources import read_source, shown_in, stored_queries

if TYPE_CHECKING:
    from omnigraph.api import Graph
    from omnigraph.catalog.catalog import Catalog, TableType
    from omnigraph.catalog.contract import AcceptedSchema
    from omnigraph.catalog.evolution.plan import SchemaPlan

EXIT_UNSUPPORTED = 1
SchemaOption = Annotated[str, typer.Option("--schema", metavar="FILE", help="The schema wanted, a .pg file.")]
LossOption = Annotated[
    bool, typer.Option("--allow-data-loss", help="Drops remove their old versions at once; nothing brings them back.")
]
_PLAN_EXAMPLES = (
    "omnigraph schema plan --schema new.pg --store ./library",
    "omnigraph schema plan --schema new.pg --store ./library --json",
)
_APPLY_EXAMPLES = (
    "omnigraph schema apply --schema new.pg --store ./library --dry-run",
    "omnigraph schema apply --schema new.pg --store ./library -m 'people have a birthday'",
    "omnigraph schema apply --schema new.pg --store ./library --allow-data-loss",
)
_EXAMPLES = (
    "omnigraph schema show --store ./library",
    "omnigraph schema show --store ./library --json",
)


def add_to(app: typer.Typer) -> None:
    schema = typer.Typer(help="See the schema of a graph and change it.")
    schema.callback(invoke_without_command=True)(help_if_no_command)
    command(schema, "show", examples=_EXAMPLES)(_show)
    command(schema, "plan", examples=_PLAN_EXAMPLES)(_plan)
    command(schema, "apply", examples=_APPLY_EXAMPLES)(_apply)
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


def _plan(run: Run, schema: SchemaOption, allow_data_loss: LossOption = False) -> None:
    """Say what applying this schema would change.

    Nothing is written. A change that cannot be made is one of the lines, with its place in the file: apply refuses it.
    """
    source = read_source(schema, "schema", "--schema")
    graph = run.read()
    with shown_in(source, schema):
        plan = graph.schema_plan(source, allow_data_loss, file=schema)
    if run.format == JSON:
        put_json(plan.to_json())
    else:
        put_lines(_lines(plan, source, schema))
    _tell_branches(graph, plan)
    if plan.supported and plan.steps:
        _tell_broken(run, graph.catalog, source)


def _apply(
    run: Run,
    schema: SchemaOption,
    allow_data_loss: LossOption = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Count the rows of each step and write nothing.")] = False,
    message: MessageOption = None,
    actor: ActorOption = None,
) -> None:
    """Make this schema the one in force, as one commit on main.

    Stored queries of the graph (queries: in omnigraph.yaml) must still fit, or nothing is written.
    """
    source = read_source(schema, "schema", "--schema")
    folder = run.queries_folder
    queries = {} if folder is None else stored_queries(folder)
    with shown_in(source, schema):
        if dry_run:
            _preview(run, source, schema, allow_data_loss, queries)
            return
        graph = run.write()
        with progress(run.told.quiet) as shown:
            done = graph.schema_apply(
                source,
                allow_data_loss=allow_data_loss,
                file=schema,
                queries=queries,
                actor=run.actor(actor),
                message=message,
                progress=None if shown is None else lambda table_key: shown(table_key, 0),
            )
    if run.format == JSON:
        put_json(done.to_json())
    else:
        put_lines(_lines(done.plan, source, schema, f"applied: {_yes(done.applied)}"))


def _preview(run: Run, source: str, file: str, allow_data_loss: bool, queries: dict[str, str]) -> None:
    graph = run.read()
    told = graph.schema_preview(source, allow_data_loss, file=file, queries=queries)
    if run.format == JSON:
        put_json(told.to_json())
    else:
        put_lines(_lines(told.plan, source, file, "applied: no (dry run)", told.rows))
    _tell_branches(graph, told.plan)
    if not told.plan.supported:
        raise typer.Exit(EXIT_UNSUPPORTED)


def _lines(
    plan: SchemaPlan, source: str, file: str, applied: str | None = None, rows: Sequence[int] | None = None
) -> Iterator[Line]:
    yield f"supported: {_yes(plan.supported)}", "bold" if plan.supported else "bold red"
    if applied is not None:
        yield applied, "bold"
    yield from plan_lines(plan, source, file, rows)


def _yes(fact: bool) -> str:
    return "yes" if fact else "no"


def _tell_branches(graph: Graph, plan: SchemaPlan) -> None:
    """Branches that would refuse the apply, as a warning."""
    others = [name for name in graph.branch_list() if name != "main"]
    if others and plan.supported and not plan.additive:
        text = f"an apply needs a graph with only main; merge or delete {', '.join(others)} first"
        say(text, label="warning", style="bold yellow")


def _tell_broken(run: Run, catalog: Catalog, source: str) -> None:
    """Stored queries that would refuse the apply, as a warning: a plan is only asked for."""
    from omnigraph.catalog.build import compile_source
    from omnigraph.plan.stored import refuse_broken

    folder = run.queries_folder
    if folder is None:
        return
    try:
        refuse_broken(catalog, compile_source(source), stored_queries(folder))
    except BreaksQueries as error:
        say(error.describe(), label="warning", style="bold yellow")


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
