"""`omnigraph lock …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.cli.bodies import lock_body
from omnigraph.cli.command import BranchOption, Run, UriArgument, command, help_if_no_command
from omnigraph.cli.formats import JSON, ROW_FORMATS, TEXT, Rows, put_rows
from omnigraph.cli.lines import lock_text
from omnigraph.cli.output import put_json, put_line

if TYPE_CHECKING:
    from omnigraph.commit.locks import Holder

_COLUMNS = ("branch", "held", "holder", "token", "since", "renewed_at", "looks")
_LIST_EXAMPLES = ("omnigraph lock list ./library", "omnigraph lock list --store ./library --json")
_BREAK_EXAMPLES = (
    "omnigraph lock break ./library --branch main",
    "omnigraph lock break ./library --branch main --confirm",
)
ConfirmOption = Annotated[bool, typer.Option("--confirm", help="Break it; without this only say what would happen.")]


def add_to(app: typer.Typer) -> None:
    lock = typer.Typer(help="See who may write, and free what nobody gives back.")
    lock.callback(invoke_without_command=True)(help_if_no_command)
    command(lock, "list", examples=_LIST_EXAMPLES, formats=ROW_FORMATS)(_list)
    command(lock, "break", examples=_BREAK_EXAMPLES)(_break)
    app.add_typer(lock, name="lock")


def _list(run: Run, uri: UriArgument = None) -> None:
    """List who holds the lock of each branch, and whether it looks alive."""
    locks = run.read(uri).locks()
    if run.format == JSON:
        put_json({"locks": [lock_body(h) for h in locks]})
    elif run.format == TEXT:
        for holder in locks:
            put_line(f"{holder.branch} {lock_text(holder)}")
    else:
        # Locks belong to the graph as a whole; main stands for it.
        put_rows(Rows("lock list", {"branch": "main"}, _COLUMNS, [_row(h) for h in locks]), run.format)


def _break(run: Run, uri: UriArgument = None, branch: BranchOption = None, confirm: ConfirmOption = False) -> None:
    """Free the lock of a branch whose holder does not give it back.

    Nothing is torn if the holder lives: its write ends as committed, refused or in doubt, and says so.
    On a local disk a lock that is held has a living holder, and is never broken.
    """
    place, on = run.uri(uri), run.branch(branch)
    from omnigraph.api import Graph

    if confirm:
        run.announce(place)
        broken = Graph.open(place, settings=run.settings).break_lock(on)
    else:
        broken = run.read(uri).breakable_lock(on)
    if run.format == JSON:
        put_json({"branch": on, "confirm": confirm, "broken": confirm and broken is not None, "lock": _found(broken)})
    elif broken is None:
        put_line(f"the lock of branch {on} is free; nothing to break")
    elif confirm:
        put_line(f"broke the lock of branch {on}: it was {lock_text(broken)}")
        run.note("what its holder left behind is settled by the next write, or by opening the graph read-write")
    else:
        put_line(f"would break the lock of branch {on}: {lock_text(broken)}")
        run.note("nothing was changed; add --confirm to break it")


def _found(holder: Holder | None) -> dict[str, Any] | None:
    return lock_body(holder) if holder is not None else None


def _row(holder: Holder) -> tuple[Any, ...]:
    return (
        holder.branch,
        holder.held,
        holder.holder or None,
        holder.token,
        holder.since or None,
        holder.renewed_at or None,
        holder.looks,
    )
