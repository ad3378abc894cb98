"""`omnigraph mutate`."""

from __future__ import annotations

from typing import Annotated, Any

import orjson
import typer

from omnigraph.base.errors import BadRequest
from omnigraph.cli.command import ActorOption, BranchOption, MessageOption, Run, command
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import put_json, put_line
from omnigraph.cli.sources import read_source, shown_in

_EXAMPLES = (
    "omnigraph mutate -s ./library -e 'query hire() { insert Person { name: \"ana\" } }'",
    "omnigraph mutate hire --query people.gq --params-file ana.json --store ./library --branch import -m 'hire ana'",
    "omnigraph mutate fire --query people.gq --if-commit 01KBXJ7Q3WZ5T9N8M4R2C6D0EF --store ./library",
)
QueryOption = Annotated[str | None, typer.Option("--query", metavar="FILE", help="A .gq file.")]
TextOption = Annotated[str | None, typer.Option("-e", "--execute", metavar="GQ", help="The query itself.")]
ParamsOption = Annotated[str | None, typer.Option("--params", metavar="JSON", help="Parameters as a JSON object.")]
ParamsFileOption = Annotated[
    str | None, typer.Option("--params-file", metavar="FILE", help="Parameters in a JSON file.")
]


def add_to(app: typer.Typer) -> None:
    command(app, "mutate", examples=_EXAMPLES)(_mutate)


def _mutate(
    run: Run,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which query of the file.")] = None,
    query: QueryOption = None,
    text: TextOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = None,
    if_commit: Annotated[
        str | None, typer.Option("--if-commit", metavar="ID", help="Only if this is the head of the branch.")
    ] = None,
    retries: Annotated[
        int | None, typer.Option("--retries", metavar="N", min=0, help="How often inserts may be prepared again.")
    ] = None,
    message: MessageOption = None,
    actor: ActorOption = None,
) -> None:
    """Insert, update or delete by a query, in one commit."""
    source = query_source(query, text)
    given = parameters(params, params_file)
    graph = run.write()
    with shown_in(source, query):
        result = graph.mutate(
            source,
            name=name,
            params=given,
            branch=run.branch(branch),
            if_commit=if_commit,
            retries=retries,
            message=message,
            actor=run.actor(actor),
        )
    if run.format == JSON:
        put_json(result.to_json())
        return
    put_line(
        f"changed {result.branch} via {result.query_name}: {result.affected_nodes} nodes, {result.affected_edges} edges"
    )
    if result.commit is None:
        run.note("nothing matched, so nothing was committed")


def query_source(path: str | None, text: str | None) -> str:
    """The text of the queries, given in a file or on the line."""
    if (path is None) == (text is None):
        raise UsageMistake("give either --query FILE or -e GQ", "The query is in a file, or on the command line.")
    return text if text is not None else read_source(str(path), "query", "--query")


def parameters(text: str | None, path: str | None) -> dict[str, Any] | None:
    if text is not None and path is not None:
        raise UsageMistake("--params and --params-file cannot be given together", "Use one of them.")
    if text is None and path is None:
        return None
    told = text if text is not None else read_source(str(path), "parameters", "--params-file")
    try:
        found = orjson.loads(told)
    except ValueError as error:
        raise BadRequest(f"the parameters are not JSON: {error}", 'Write {"name": value}.') from error
    if not isinstance(found, dict):
        raise BadRequest("the parameters must be a JSON object", 'Write {"name": value}.')
    return found
