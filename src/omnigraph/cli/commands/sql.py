"""`omnigraph sql`."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.answers import AnalyzeOption, ExplainOption, TimeoutOption, put_answer, put_explained, timeout_ms
from omnigraph.cli.command import BranchOption, Run, command
from omnigraph.cli.formats import ALL_FORMATS
from omnigraph.cli.targets import AsOfOption, AtOption, SnapshotOption, TargetOptions

_EXAMPLES = (
    "omnigraph sql 'SELECT name, age FROM node_Person ORDER BY age' --store ./library",
    "omnigraph sql 'SELECT src, count(*) AS n FROM edge_Wrote GROUP BY src' -s ./library --format csv",
    "omnigraph sql 'SELECT count(*) AS n FROM node_Person' -s ./library --at main~1 --timeout 10s",
)


def add_to(app: typer.Typer) -> None:
    command(app, "sql", examples=_EXAMPLES, formats=ALL_FORMATS)(_sql)


def _sql(
    run: Run,
    text: Annotated[str, typer.Argument(metavar="SELECT", help="One statement over node_<T> and edge_<E>.")],
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    as_of: AsOfOption = None,
    explain: ExplainOption = False,
    analyze: AnalyzeOption = False,
    timeout: TimeoutOption = None,
) -> None:
    """Run one SELECT over the tables of a branch or an older commit."""
    targets = TargetOptions(branch, snapshot, at, as_of)
    limit = timeout_ms(timeout, explain, analyze)
    graph = run.read()
    from omnigraph.engine.read.sql import Sql, explain_sql, run_sql

    view, target = graph.view_of(*targets.named(graph, run.settings.cli_branch))
    sql = Sql(text, view, target, graph.settings, limit)
    if explain:
        put_explained(run, explain_sql(sql))
    else:
        put_answer(run, run_sql(sql, analyze=analyze))
