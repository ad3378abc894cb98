"""`omnigraph query`."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.base.errors import BadRequest, NotFound
from omnigraph.cli.answers import AnalyzeOption, ExplainOption, TimeoutOption, put_answer, put_explained, timeout_ms
from omnigraph.cli.command import BranchOption, Run, command
from omnigraph.cli.commands.mutate import (
    ParamsFileOption,
    ParamsOption,
    QueryOption,
    TextOption,
    parameters,
    query_source,
)
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import ALL_FORMATS
from omnigraph.cli.sources import shown_in, stored_queries
from omnigraph.cli.spark_options import ConfOption, Engine, MasterOption, ReadEngineOption, take_spark_options
from omnigraph.cli.targets import AsOfOption, AtOption, SnapshotOption, TargetOptions

_EXAMPLES = (
    "omnigraph query -s ./library -e 'query all() { match { $p: Person } return { $p.name } }'",
    'omnigraph query by_name --query people.gq --params \'{"n": "ana"}\' --store ./library --format jsonl',
    "omnigraph query by_name --query people.gq --params-file ana.json -s ./library --at main~1 --explain",
)


def add_to(app: typer.Typer) -> None:
    command(app, "query", examples=_EXAMPLES, formats=ALL_FORMATS)(_query)


def _query(
    run: Run,
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Which query of the file.")] = None,
    query: QueryOption = None,
    text: TextOption = None,
    params: ParamsOption = None,
    params_file: ParamsFileOption = None,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    as_of: AsOfOption = None,
    explain: ExplainOption = False,
    analyze: AnalyzeOption = False,
    exact: Annotated[bool, typer.Option("--exact", help="Compare every vector; use no vector index.")] = False,
    timeout: TimeoutOption = None,
    engine: ReadEngineOption = Engine.auto,
    master: MasterOption = None,
    spark_conf: ConfOption = None,
) -> None:
    """Answer a read query from a branch or an older commit."""
    take_spark_options(run, master, spark_conf)
    targets = TargetOptions(branch, snapshot, at, as_of)
    limit = timeout_ms(timeout, explain, analyze)
    path, source = _source(run, name, query, text)
    given = parameters(params, params_file)
    graph = run.read()
    on, pinned = targets.named(graph, run.settings.cli_branch)
    with shown_in(source, path):
        if explain:
            put_explained(run, graph.explain(source, name=name, branch=on, snapshot=pinned))
            return
        result = graph.query(
            source,
            given,
            name=name,
            branch=on,
            snapshot=pinned,
            timeout_ms=limit,
            exact=exact,
            analyze=analyze,
            engine=engine.value,
        )
    put_answer(run, result)


def _source(run: Run, name: str | None, path: str | None, text: str | None) -> tuple[str | None, str]:
    """The file of the query, if it is in one, and the text."""
    if name is None or path is not None or text is not None:
        return path, query_source(path, text)
    folder = run.queries_folder
    if folder is None:
        raise UsageMistake(
            f"where query '{name}' is stored is not known",
            "Give --query FILE or -e GQ, or name a folder as queries: of the graph in omnigraph.yaml.",
        )
    return _stored(folder, name)


def _stored(folder: str, name: str) -> tuple[str, str]:
    """The file of the folder that holds the query of this name."""
    from omnigraph.lang.gq import parse_queries

    found: list[tuple[str, str]] = []
    for path, source in stored_queries(folder).items():
        with shown_in(source, path):
            held = parse_queries(source, path).queries
        if any(query.name == name for query in held):
            found.append((path, source))
    if not found:
        raise NotFound(f"stored query '{name}' not found in {folder}", "Look at its .gq files.")
    if len(found) > 1:
        raise BadRequest(f"stored query '{name}' is in both {found[0][0]} and {found[1][0]}", "Rename one of them.")
    return found[0]
