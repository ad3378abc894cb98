"""`omnigraph branch …`."""

from __future__ import annotations

from typing import Annotated

import typer

from omnigraph.cli.command import Run, YesOption, command, help_if_no_command
from omnigraph.cli.commands import changes
from omnigraph.cli.commands.merge import add_to_branch
from omnigraph.cli.formats import JSON, ROW_FORMATS, TEXT, Rows, put_rows
from omnigraph.cli.output import put_json, put_line

_CREATE_EXAMPLES = (
    "omnigraph branch create draft --store ./library",
    "omnigraph branch create team/review --from draft --store ./library",
)
_LIST_EXAMPLES = ("omnigraph branch list --store ./library", "omnigraph branch list --store ./library --json")
_DELETE_EXAMPLES = (
    "omnigraph branch delete team/review --store ./library",
    "omnigraph branch delete import --store ./library --yes",
)
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The branch.")]
FromOption = Annotated[str | None, typer.Option("--from", metavar="B", help="Start at this branch; default main.")]
_COLUMNS = ("branch", "graph_commit_id", "version")


def add_to(app: typer.Typer) -> None:
    branch = typer.Typer(help="Make, list, merge, reset and delete branches.")
    branch.callback(invoke_without_command=True)(help_if_no_command)
    command(branch, "create", examples=_CREATE_EXAMPLES)(_create)
    command(branch, "list", examples=_LIST_EXAMPLES, formats=ROW_FORMATS)(_list)
    command(branch, "delete", examples=_DELETE_EXAMPLES)(_delete)
    add_to_branch(branch)
    changes.add_to_branch(branch)
    app.add_typer(branch, name="branch")


def _create(run: Run, name: NameArgument, source: FromOption = None) -> None:
    """Make a branch at the head of another; no data is copied."""
    graph = run.write()
    start = run.branch(source)
    graph.branch_create_from(start, name)
    if run.format == JSON:
        head = graph.head_commit_id_for_branch(name.strip())
        put_json({"uri": run.uri(), "branch": name.strip(), "from": start, "graph_commit_id": head})
    else:
        put_line(f"created branch {name.strip()} from {start}")


def _list(run: Run) -> None:
    """List the branches, main first."""
    graph = run.read()
    snapshots = [graph.snapshot(name) for name in graph.branch_list()]
    found = [(s.branch or "main", s.graph_commit_id, s.version) for s in snapshots]
    if run.format == JSON:
        put_json({"branches": [dict(zip(_COLUMNS, row, strict=True)) for row in found]})
    elif run.format == TEXT:
        for name, _, _ in found:
            put_line(name)
    else:
        put_rows(Rows("branch list", {"branch": "main"}, _COLUMNS, found), run.format)


def _delete(run: Run, name: NameArgument, yes: YesOption = False) -> None:
    """Delete a branch and everything only it holds."""
    run.confirm(yes, f"delete branch {name.strip()}")
    run.write().branch_delete(name)
    if run.format == JSON:
        put_json({"uri": run.uri(), "branch": name.strip(), "deleted": True})
    else:
        put_line(f"deleted branch {name.strip()}")
