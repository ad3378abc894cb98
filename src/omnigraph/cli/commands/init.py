"""`omnigraph init`."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.command import Run, UriArgument, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import put_json, put_line
from omnigraph.cli.sources import read_source, shown_in

_EXAMPLES = (
    "omnigraph init ./library --schema schema.pg",
    "omnigraph init --store ./archive --schema schema.pg --json",
)


def add_to(app: typer.Typer) -> None:
    command(app, "init", examples=_EXAMPLES)(_init)


def _init(
    run: Run,
    uri: UriArgument = None,
    *,
    schema: Annotated[str, typer.Option("--schema", metavar="FILE", help="The schema, a .pg file.")],
    force: Annotated[bool, typer.Option("--force", help="Replace what an interrupted init left.")] = False,
) -> None:
    """Create an empty graph of a schema."""
    place = run.uri(uri)
    source = read_source(schema, "schema", "--schema")
    run.announce(place)
    from omnigraph.api import Graph
    from omnigraph.catalog.annotations import look_alikes
    from omnigraph.lang.pg import parse_schema

    with shown_in(source, schema):
        graph = Graph.init(place, source, force=force, settings=run.settings)
    for annotation, like in look_alikes(parse_schema(source)):
        at = f"{schema}:{annotation.at.line}:{annotation.at.column}"
        run.note(f"note: {at}: @{annotation.name} is kept and does nothing; did you mean @{like}?")
    if run.format == JSON:
        tables = [table.table_key for table in graph.catalog.tables()]
        put_json({"uri": place, "graph_commit_id": graph.head_commit_id_for_branch(), "tables": tables})
    else:
        put_line(f"initialized {place}")
