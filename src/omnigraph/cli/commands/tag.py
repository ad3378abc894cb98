"""`omnigraph tag …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.base.clock import iso_us
from omnigraph.cli.bodies import tag_body
from omnigraph.cli.command import Run, command, help_if_no_command
from omnigraph.cli.formats import JSON, ROW_FORMATS, TEXT, Rows, put_rows
from omnigraph.cli.output import one_line, put_json, put_line
from omnigraph.cli.targets import AtOption

if TYPE_CHECKING:
    from omnigraph.manifest.tags import Tag

_CREATE_EXAMPLES = (
    "omnigraph tag create v1 --store ./library -m 'what the report was made of'",
    "omnigraph tag create before-import --at main~1 --store ./library",
)
_LIST_EXAMPLES = ("omnigraph tag list --store ./library", "omnigraph tag list --store ./library --json")
_DELETE_EXAMPLES = ("omnigraph tag delete before-import --store ./library", "omnigraph tag delete v1 -s ./library -q")
_COLUMNS = ("tag", "graph_commit_id", "branch", "actor", "created_at", "message")
MadeByOption = Annotated[str | None, typer.Option("--as", metavar="ACTOR", help="Who the tag says made it.")]
AboutOption = Annotated[str | None, typer.Option("--message", "-m", metavar="TEXT", help="What it is for.")]
NameArgument = Annotated[str, typer.Argument(metavar="NAME", help="The tag.")]


def add_to(app: typer.Typer) -> None:
    tag = typer.Typer(help="Name commits for good.")
    tag.callback(invoke_without_command=True)(help_if_no_command)
    command(tag, "create", examples=_CREATE_EXAMPLES)(_create)
    command(tag, "list", examples=_LIST_EXAMPLES, formats=ROW_FORMATS)(_list)
    command(tag, "delete", examples=_DELETE_EXAMPLES)(_delete)
    app.add_typer(tag, name="tag")


def _create(
    run: Run, name: NameArgument, at: AtOption = None, actor: MadeByOption = None, message: AboutOption = None
) -> None:
    """Give a commit a name, the newest one unless --at names another."""
    graph = run.write()
    made = graph.tag_create(name, run.branch(at), actor=run.actor(actor), message=message)
    if run.format == JSON:
        put_json({"uri": run.uri(), **tag_body(made)})
    else:
        put_line(f"created tag {made.name} at {made.graph_commit_id}")


def _list(run: Run) -> None:
    """List the tags by name."""
    tags = run.read().tag_list()
    if run.format == JSON:
        put_json({"tags": [tag_body(tag) for tag in tags]})
    elif run.format == TEXT:
        for tag in tags:
            put_line(_line(tag))
        if not tags:
            run.note("no tags")
    else:
        rows = [(t.name, t.graph_commit_id, t.branch, t.actor_id, iso_us(t.created_at), t.message) for t in tags]
        put_rows(Rows("tag list", {"branch": "main"}, _COLUMNS, rows), run.format)


def _line(tag: Tag) -> str:
    message = (tag.message or "").split("\n", 1)[0].rstrip("\r")
    return one_line(f"{tag.name} {tag.graph_commit_id} branch={tag.branch}  {message}").rstrip()


def _delete(run: Run, name: NameArgument) -> None:
    """Remove a tag; its commit stays until a cleanup takes it."""
    run.write().tag_delete(name)
    if run.format == JSON:
        put_json({"uri": run.uri(), "tag": name.strip(), "deleted": True})
    else:
        put_line(f"deleted tag {name.strip()}")
