"""`omnigraph log`."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.base.clock import iso_us, now_us
from omnigraph.cli.bodies import commit_body
from omnigraph.cli.command import BranchOption, Run, command
from omnigraph.cli.drawing import Node, Row, draw
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import on_terminal, one_line, put_json, put_text
from omnigraph.cli.times import age_text

if TYPE_CHECKING:
    from omnigraph.engine.log import LogEntry

_EXAMPLES = (
    "omnigraph log --store ./library --limit 10",
    "omnigraph log --graph --store ./library",
    "omnigraph log --branch draft --store ./library --json",
)
# Colours that are told apart on dark and on light ground.
_LANE_STYLES = ("red", "green", "blue", "magenta", "cyan", "yellow")
_ID, _BRANCH, _TAG, _ABOUT = "yellow", "bold green", "bold cyan", "dim"
Piece = tuple[str, str]
"""A text and how a terminal shows it."""


def add_to(app: typer.Typer) -> None:
    command(app, "log", examples=_EXAMPLES)(_log)


def _log(
    run: Run,
    branch: BranchOption = None,
    graph: Annotated[bool, typer.Option("--graph", help="Draw how branches forked and met; all of them.")] = False,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="At most N commits.")] = None,
) -> None:
    """Show the history of a branch, or draw that of all."""
    handle = run.read()
    found = handle.log(branch if graph else run.branch(branch), graph=graph)
    shown = found[:limit]
    if run.format == JSON:
        put_json({"commits": [_body(entry) for entry in shown]})
        return
    lines = _drawn(found, shown) if graph else _told(shown)
    _put(list(lines))
    if len(found) > len(shown):
        run.note(f"{len(found) - len(shown)} older commits are not shown")


def _body(entry: LogEntry) -> dict[str, Any]:
    return {**commit_body(entry.commit), "branches": list(entry.branches), "tags": list(entry.tags)}


def _told(entries: Sequence[LogEntry]) -> Iterator[list[Piece]]:
    """A paragraph for each commit."""
    for entry in entries:
        commit = entry.commit
        yield [(commit.graph_commit_id, _ID), *_labels(entry)]
        yield [(f"{_about(entry)}, {iso_us(commit.created_at)}", _ABOUT)]
        for line in (commit.message or "").rstrip("\n").split("\n") if commit.message else ():
            yield [(f"    {one_line(line.rstrip(chr(13)))}".rstrip(), "")]
        yield []


def _drawn(found: Sequence[LogEntry], shown: Sequence[LogEntry]) -> Iterator[list[Piece]]:
    """A line for each commit behind its part of the drawing."""
    from omnigraph.engine.log import parents_of

    entries = {entry.commit.graph_commit_id: entry for entry in shown}
    nodes = [Node(entry.commit.graph_commit_id, parents_of(entry.commit)) for entry in shown]
    main = next((e.commit.graph_commit_id for e in shown if "main" in e.branches), None)
    beyond = {entry.commit.graph_commit_id for entry in found[len(shown) :]}
    for row in draw(nodes, main, beyond, _speaks_unicode()):
        yield [*_lines(row), *_beside(row, entries)]


def _lines(row: Row) -> Iterator[Piece]:
    for piece in row.pieces:
        yield piece.text, _LANE_STYLES[piece.lane % len(_LANE_STYLES)]


def _beside(row: Row, entries: dict[str, LogEntry]) -> Iterator[Piece]:
    """What is said of the commit that a row shows."""
    if row.node is None:
        return
    if row.is_missing:
        yield f" {row.node} of a branch that was deleted", _ABOUT
        return
    entry = entries[row.node]
    yield " ", ""
    yield row.node, _ID
    yield from _labels(entry)
    yield f" {_about(entry)}", _ABOUT
    if entry.commit.message:
        first = entry.commit.message.split("\n", 1)[0].rstrip("\r")
        yield f": {one_line(first)}", ""


def _labels(entry: LogEntry) -> Iterator[Piece]:
    names = [*((name, _BRANCH) for name in entry.branches), *((f"tag: {name}", _TAG) for name in entry.tags)]
    for place, (name, style) in enumerate(names):
        yield (", " if place else " ("), ""
        yield one_line(name), style
    if names:
        yield ")", ""


def _about(entry: LogEntry) -> str:
    commit = entry.commit
    by = f" by {one_line(commit.actor_id)}" if commit.actor_id else ""
    age = age_text((now_us() - commit.created_at) / 1_000_000)
    return f"{commit.kind or 'commit'}{by}, {age} ago"


def _speaks_unicode() -> bool:
    try:
        "●○│─╭╮╰╯├┤┬┴┼".encode(sys.stdout.encoding or "ascii")
    except (UnicodeError, LookupError):
        return False
    return True


def _put(lines: Sequence[Sequence[Piece]]) -> None:
    """The lines in colour on a terminal, cut where it ends; as plain text elsewhere."""
    if not on_terminal():
        put_text("".join("".join(text for text, _ in line).rstrip() + "\n" for line in lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False)
    for line in lines:
        console.print(Text.assemble(*line), no_wrap=True, overflow="ellipsis")
