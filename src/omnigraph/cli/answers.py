"""What `query` and `sql` have in common: how long they may take, and how their answer is printed."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import JSON, KV, TABLE, TEXT, put_plan, put_result
from omnigraph.cli.output import one_line, put_json, say
from omnigraph.cli.times import duration_of

if TYPE_CHECKING:
    from omnigraph.cli.command import Run
    from omnigraph.engine.read.result import QueryResult

ExplainOption = Annotated[bool, typer.Option("--explain", help="Print the plan and run nothing.")]
AnalyzeOption = Annotated[bool, typer.Option("--analyze", help="Print the plan with rows and times after the result.")]
TimeoutOption = Annotated[str | None, typer.Option("--timeout", metavar="D", help="Stop after this long, such as 10s.")]


def timeout_ms(text: str | None, explain: bool, analyze: bool) -> int | None:
    """The timeout in milliseconds; refuses options that do not fit together."""
    if explain and analyze:
        raise UsageMistake("--explain and --analyze cannot be given together", "--explain runs nothing.")
    return None if text is None else duration_of(text) // timedelta(milliseconds=1)


def put_answer(run: Run, result: QueryResult) -> None:
    """The result in the format asked for. A plan follows where people read, and goes to stderr where programs do."""
    if result.plan is None or run.format not in (TEXT, TABLE, KV, JSON):
        put_result(result, run.format)
        if result.plan is not None:
            for line in result.plan.rstrip().splitlines():
                say(one_line(line))
    elif run.format == JSON:
        put_json({**result.to_json(), "plan": result.plan})
    else:
        put_result(result, run.format)
        put_plan(result.plan)


def put_explained(run: Run, plan: str) -> None:
    """The plan alone."""
    if run.format == JSON:
        put_json({"plan": plan})
    else:
        put_plan(plan)
