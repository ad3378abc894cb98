"""`omnigraph upkeep`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.cli.command import Run, YesOption, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import one_line, put_json, put_line

if TYPE_CHECKING:
    from collections.abc import Sequence

    from omnigraph.engine.upkeep.keeper import Outcome

_EXAMPLES = (
    "omnigraph upkeep --rules upkeep.yaml -s ./library --dry-run",
    "omnigraph upkeep --rules upkeep.yaml -s ./library",
)


def add_to(app: typer.Typer) -> None:
    command(app, "upkeep", examples=_EXAMPLES)(_upkeep)


def _upkeep(
    run: Run,
    rules: Annotated[str, typer.Option("--rules", metavar="FILE", help="What is to be done, and when.")],
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what is due.")] = False,
    yes: YesOption = False,
) -> None:
    """Run each upkeep rule that is due, once; meant for a timer."""
    from omnigraph.pipeline.rules_file import read_rules

    found = read_rules(rules)
    if not dry_run and any(rule.do == "cleanup" for rule in found):
        run.confirm(yes, "remove old versions and leftovers")
    graph = run.read() if dry_run else run.write()
    outcomes = graph.upkeep(rules, dry_run=dry_run)
    if run.format == JSON:
        body = {"uri": graph.uri, "dry_run": dry_run, "rules": [o.to_json() for o in outcomes]}
        put_json(body)
    else:
        for line in _lines(graph.uri, outcomes, dry_run):
            put_line(line)
    if any(outcome.error is not None for outcome in outcomes):
        raise typer.Exit(1)


def _lines(uri: str, outcomes: Sequence[Outcome], dry_run: bool) -> Iterator[str]:
    yield one_line(f"upkeep {uri} — {len(outcomes)} {'due' if dry_run else 'done'}")
    for outcome in outcomes:
        where = f" {outcome.branch}" if outcome.branch is not None else ""
        end = f"failed: {outcome.error}" if outcome.error is not None else outcome.result or "due"
        yield one_line(f"{outcome.rule}{where} ({outcome.why}): {end}")
