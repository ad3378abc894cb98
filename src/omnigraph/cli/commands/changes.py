"""`omnigraph branch diff`, `commit changes`, `history` and `changes …`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from omnigraph.cli.change_text import (
    KindOption,
    Line,
    OpOption,
    TypeOption,
    block_lines,
    change_lines,
    past_lines,
    put_lines,
    stats_lines,
    total_line,
)
from omnigraph.cli.command import BranchOption, Run, command, help_if_no_command
from omnigraph.cli.commands.export import save
from omnigraph.cli.failures import UsageMistake
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import json_text, put_json, put_line, say
from omnigraph.cli.times import duration_of

if TYPE_CHECKING:
    from omnigraph.api import Graph
    from omnigraph.engine.changes.model import FeedPage

_DIFF_EXAMPLES = (
    "omnigraph branch diff main draft --store ./library",
    "omnigraph branch diff main~3 main --type Person --op update --store ./library",
    "omnigraph branch diff main draft --stats --store ./library",
    "omnigraph branch diff main draft --store ./library --json",
)
_COMMIT_EXAMPLES = (
    "omnigraph commit changes 01KBXJ7Q3WZ5T9N8M4R2C6D0EF --store ./library",
    "omnigraph commit changes main --store ./library",
    "omnigraph commit changes 01KBXJ7Q3WZ5T9N8M4R2C6D0EF --kind edge --limit 100 --store ./library --json",
)
_HISTORY_EXAMPLES = (
    "omnigraph history Person ana --store ./library",
    "omnigraph history node:Person ana --branch draft --limit 5 --store ./library --json",
)
_POLL_EXAMPLES = (
    "omnigraph changes poll --start beginning --store ./library",
    'omnigraph changes poll --cursor "$CURSOR" --store ./library --json',
    "omnigraph changes poll --follow --type Person --store ./library",
)
_BASELINE_EXAMPLES = (
    "omnigraph changes baseline --out base.jsonl --store ./library",
    "omnigraph changes baseline --out people.jsonl --type Person --branch draft --store ./library",
)
LimitOption = Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="Changes per page; default 1000.")]
PageOption = Annotated[str | None, typer.Option("--page-token", metavar="T", help="Go on inside a block.")]


def add_to_branch(branch: typer.Typer) -> None:
    command(branch, "diff", examples=_DIFF_EXAMPLES)(_diff)


def add_to_commit(commit: typer.Typer) -> None:
    command(commit, "changes", examples=_COMMIT_EXAMPLES)(_commit_changes)


def add_to(app: typer.Typer) -> None:
    command(app, "history", examples=_HISTORY_EXAMPLES)(_history)
    changes = typer.Typer(help="Follow what changes along a branch.")
    changes.callback(invoke_without_command=True)(help_if_no_command)
    command(changes, "poll", examples=_POLL_EXAMPLES)(_poll)
    command(changes, "baseline", examples=_BASELINE_EXAMPLES)(_baseline)
    app.add_typer(changes, name="changes")


def _filter(kind: list[str] | None, type: list[str] | None, op: list[str] | None) -> dict[str, Any]:
    return {"kinds": kind or (), "type_names": type or (), "ops": op or ()}


def _diff(
    run: Run,
    from_target: Annotated[str, typer.Argument(metavar="FROM", help="A branch, tag, commit id or NAME~n.")],
    to_target: Annotated[str, typer.Argument(metavar="TO", help="What to compare it with.")],
    kind: KindOption = None,
    type: TypeOption = None,
    op: OpOption = None,
    stats: Annotated[bool, typer.Option("--stats", help="Only the counts of each table.")] = False,
) -> None:
    """Show what TO has otherwise than FROM."""
    found = run.read().net_diff(from_target, to_target, **_filter(kind, type, op))
    if run.format == JSON:
        told = found.change_set(stats_only=stats)
        body = told.to_json()
        if stats:
            body = {**{k: v for k, v in body.items() if k != "changes"}, "tables": told.stats.tables_json()}
        put_json(body)
    elif stats:
        put_lines(stats_lines(found.counted()))
    else:
        put_lines(line for change in found.changes() for line in change_lines(change))
        put_lines([total_line(found.stats)])


def _commit_changes(
    run: Run,
    id: Annotated[str, typer.Argument(metavar="ID", help="A commit id, or what names one: main~1, a tag.")],
    kind: KindOption = None,
    type: TypeOption = None,
    op: OpOption = None,
    limit: LimitOption = None,
    page_token: PageOption = None,
) -> None:
    """Show what one commit changed against its first parent."""
    block = run.read().commit_changes(id, **_filter(kind, type, op), limit=limit, page_token=page_token)
    if run.format == JSON:
        put_json(block.to_json())
        return
    put_lines(block_lines(block))
    if block.next_page_token is not None:
        run.note(f"there are more changes: add --page-token {block.next_page_token}")


def _history(
    run: Run,
    type: Annotated[str, typer.Argument(metavar="TYPE", help="Person, or node:Person where an edge has that name.")],
    id: Annotated[str, typer.Argument(metavar="ID", help="The node or edge.")],
    branch: BranchOption = None,
    limit: Annotated[int | None, typer.Option("--limit", metavar="N", min=1, help="The newest N changes.")] = None,
) -> None:
    """Show who changed one node or edge, when, and how."""
    on = run.branch(branch)
    found = run.read().history(type, id, branch=on, limit=limit)
    if run.format == JSON:
        put_json({"type": type, "id": id, "branch": on, "history": [past.to_json() for past in found]})
    else:
        put_lines(line for past in found for line in past_lines(past))


def _poll(
    run: Run,
    branch: BranchOption = None,
    start: Annotated[
        str | None, typer.Option("--start", metavar="S", help="now (default), beginning or after:COMMIT_ID.")
    ] = None,
    cursor: Annotated[str | None, typer.Option("--cursor", metavar="C", help="Go on where a poll ended.")] = None,
    page_token: PageOption = None,
    kind: KindOption = None,
    type: TypeOption = None,
    op: OpOption = None,
    commits: Annotated[
        int | None, typer.Option("--commits", metavar="N", min=1, help="Commits per poll; default 128.")
    ] = None,
    limit: LimitOption = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Keep polling until interrupted.")] = False,
    interval: Annotated[str, typer.Option("--interval", metavar="D", help="How long --follow waits.")] = "1s",
) -> None:
    """Show what changed along a branch since a cursor, oldest first."""
    if sum(given is not None for given in (start, cursor, page_token)) > 1:
        raise UsageMistake("--start, --cursor and --page-token cannot be given together", "Give one of them.")
    graph = run.read()
    asked = {**_filter(kind, type, op), "branch": run.branch(branch), "commits": commits, "limit": limit}
    is_filtered = bool(kind or type or op)
    page = graph.changes_poll(**asked, start=start, cursor=cursor, page_token=page_token)
    if follow:
        _follow(run, graph, asked, page, duration_of(interval).total_seconds(), is_filtered)
    elif run.format == JSON:
        put_json(page.to_json())
    else:
        put_lines(_page_lines(page, is_filtered))
        for name in ("next_page_token", "cursor"):
            if getattr(page, name) is not None:
                put_line(f"{name}: {getattr(page, name)}")
        if page.cursor is not None:
            put_line(f"caught_up: {'yes' if page.caught_up else 'no'}")


def _page_lines(page: FeedPage, is_filtered: bool) -> Iterator[Line]:
    """Its blocks; of those in which a filter found nothing a person need not hear."""
    for block in page.blocks:
        if block.changes or block.boundary is not None or not is_filtered:
            yield from block_lines(block)


def _follow(run: Run, graph: Graph, asked: dict[str, Any], page: FeedPage, wait_s: float, is_filtered: bool) -> None:
    """Print pages as they come, one JSON line each for programs; an interrupt tells where to go on."""
    try:
        while True:
            if run.format == JSON and (page.blocks or page.next_page_token):
                put_line(json_text(page.to_json()))
            elif run.format != JSON:
                put_lines(_page_lines(page, is_filtered))
            if page.caught_up:
                time.sleep(wait_s)
            page = graph.changes_poll(**asked, cursor=page.cursor, page_token=page.next_page_token)
    except KeyboardInterrupt:
        going_on = f"--cursor {page.cursor}" if page.cursor else f"--page-token {page.next_page_token}"
        # Not a remark: whoever follows quietly needs it as much.
        say(f"go on with {going_on}")
        raise


def _baseline(
    run: Run,
    out: Annotated[str, typer.Option("--out", metavar="FILE", help="Where to write it.")],
    branch: BranchOption = None,
    kind: KindOption = None,
    type: TypeOption = None,
) -> None:
    """Write the head of a branch and the cursor to go on from."""
    on = run.branch(branch)
    pieces = _Watched(run.read().changes_baseline(branch=on, kinds=kind or (), type_names=type or ()))
    save(iter(pieces), out)
    told = orjson.loads(pieces.last)["baseline"]
    if run.format == JSON:
        put_json({"out": out, "branch": on, **told})
    else:
        put_line(f"baseline of branch {on} at {told['snapshot_commit_id']} written to {out}")
        put_line(f"resume_cursor: {told['resume_cursor']}")


class _Watched:
    """Pieces that go by; the last one is remembered."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self.last = b""

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.last = piece
            yield piece
