"""Changes as lines a person can review: + what came, − what went, in colour on a terminal and plain in a pipe."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Annotated, Any

import typer

from omnigraph.base.clock import iso_us
from omnigraph.cli.formats import cell, put_all
from omnigraph.cli.output import json_text, on_terminal, one_line

if TYPE_CHECKING:
    from omnigraph.engine.changes.model import Block, Change, ChangeStats, Counts, Image, Past
    from omnigraph.manifest.lineage import GraphCommit

KindOption = Annotated[
    list[str] | None, typer.Option("--kind", metavar="K", help="Only node or edge; may be repeated.")
]
TypeOption = Annotated[list[str] | None, typer.Option("--type", metavar="T", help="Only this type; may be repeated.")]
OpOption = Annotated[
    list[str] | None, typer.Option("--op", metavar="OP", help="Only insert, update or delete; may be repeated.")
]

Line = tuple[str, str]
"""Text and its style."""
SIGNS: Mapping[str, tuple[str, str]] = {
    "insert": ("+", "bold green"),
    "update": ("~", "bold yellow"),
    "delete": ("-", "bold red"),
}
_CAME, _WENT, _ID, _ABOUT = "green", "red", "yellow", "dim"
_BEFORE_DIFFERENCE = 24
_ENDS = ("from", "to")
_OURS_THEIRS = ("ours", "theirs")


def put_lines(lines: Iterable[Line]) -> None:
    """Print as the lines come."""
    if not on_terminal():
        put_all(text for text, _ in lines)
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for text, style in lines:
        console.print(Text(text, style=style))


def change_lines(change: Change) -> Iterator[Line]:
    """One changed node or edge: what it is, then the values that came and went."""
    sign, style = SIGNS[change.op]
    yield f"{sign} {change.table_key} '{one_line(change.id)}'{_runs(change.endpoints)}", style
    yield from image_lines(change.before, change.after, indent=4)


def _runs(ends: tuple[str, str] | None) -> str:
    return "" if ends is None else f" {one_line(ends[0])} → {one_line(ends[1])}"


def image_lines(before: Image | None, after: Image | None, indent: int) -> Iterator[Line]:
    """The values that differ; of an insert or a delete those that are not null."""
    space = " " * indent
    # The ends of an edge that came or went stand in its first line.
    with_ends = before is not None and after is not None
    old, new = _values(before, with_ends), _values(after, with_ends)
    for name in dict.fromkeys([*new, *old]):
        was, now = old.get(name), new.get(name)
        if json_text(was) == json_text(now):
            continue
        went, came = _excerpts(was, now) if with_ends else (cell(was), cell(now))
        if before is not None and (after is not None or was is not None):
            yield f"{space}- {one_line(name)}: {went}", _WENT
        if after is not None and (before is not None or now is not None):
            yield f"{space}+ {one_line(name)}: {came}", _CAME


def _values(image: Image | None, with_ends: bool) -> dict[str, Any]:
    if image is None:
        return {}
    ends = dict(zip(_ENDS, image.endpoints, strict=True)) if with_ends and image.endpoints is not None else {}
    return {**ends, **image.properties}


def _excerpts(was: Any, now: Any) -> tuple[str, str]:
    """Both values, from shortly before the place where they differ if their beginnings look alike."""
    shown = cell(was), cell(now)
    if shown[0] != shown[1]:
        return shown
    texts = [value if isinstance(value, str) else json_text(value) for value in (was, now)]
    same = next((i for i, (a, b) in enumerate(zip(*texts, strict=False)) if a != b), min(map(len, texts)))
    start = max(0, same - _BEFORE_DIFFERENCE)
    return cell("…" + texts[0][start:]), cell("…" + texts[1][start:])


def side_lines(dispute: Mapping[str, Any] | None, indent: int) -> Iterator[Line]:
    """What the sides of a merge made of one row: who deleted it, and the values on which they differ."""
    if dispute is None:
        return
    space = " " * indent
    yield from ((f"{space}{side}: deleted", "") for side in _OURS_THEIRS if dispute[side] is None)
    there = {side: _flat(dispute[side]) for side in ("base", *_OURS_THEIRS) if dispute[side] is not None}
    # What one side deleted is held against the base: it shows what the other did to it.
    compared = [side for side in there if side != "base" or None in (dispute["ours"], dispute["theirs"])]
    for name in dict.fromkeys(name for image in there.values() for name in image):
        if len({json_text(there[side].get(name)) for side in compared}) > 1 and _is_disputed(dispute, name):
            told = ", ".join(f"{side} {cell(image.get(name))}" for side, image in there.items())
            yield f"{space}{one_line(name)}: {told}", ""


def decision_line(decision: Mapping[str, Any]) -> str:
    """How one conflict of a merge was settled."""
    choice = decision["choice"] if isinstance(decision["choice"], str) else "a row of the file"
    return one_line(f"resolved {decision['table_key']} '{decision['row_id']}' ({decision['kind']}): {choice}")


def _flat(image: Mapping[str, Any]) -> dict[str, Any]:
    return {**image.get("endpoints", {}), **image["properties"]}


def _is_disputed(dispute: Mapping[str, Any], name: str) -> bool:
    """Of a row that is merged by property, only some are; its ends are named as columns there."""
    named = dispute.get("properties")
    return not named or name in named or {"from": "src", "to": "dst"}.get(name) in named


def commit_lines(commit: GraphCommit) -> Iterator[Line]:
    """Who committed it, when and why."""
    yield f"commit {commit.graph_commit_id}", _ID
    by = f" by {commit.actor_id}" if commit.actor_id else ""
    yield one_line(f"{commit.kind or 'commit'}{by}, {iso_us(commit.created_at)}"), _ABOUT
    for line in commit.message.rstrip("\n").split("\n") if commit.message else ():
        yield f"    {one_line(line.rstrip(chr(13)))}".rstrip(), ""


def block_lines(block: Block) -> Iterator[Line]:
    yield from commit_lines(block.cause)
    if block.boundary is not None:
        yield "! the schema changed here: entities before and after cannot be compared", "bold yellow"
    elif not block.changes and block.next_page_token is None:
        yield "(no changes)", _ABOUT
    for change in block.changes:
        yield from change_lines(change)
    yield "", ""


def past_lines(past: Past) -> Iterator[Line]:
    if past.cause is None:
        yield f"older history was reclaimed by cleanup, from commit {past.first_unreadable_commit_id} on", _ABOUT
        return
    yield from commit_lines(past.cause)
    assert past.op is not None
    sign, style = SIGNS[past.op]
    shown = past.after or past.before
    ends = shown.endpoints if shown is not None else None
    yield f"{sign} {past.op}{_runs(ends)}", style
    yield from image_lines(past.before, past.after, indent=4)
    yield "", ""


def stats_lines(stats: ChangeStats) -> Iterator[Line]:
    for table_key, counts in sorted(stats.tables.items()):
        yield f"{table_key}: {_counted(counts)}", ""
    if not stats.tables:
        yield "(no changes)", _ABOUT


def total_line(stats: ChangeStats) -> Line:
    """The last line of a diff."""
    if not stats.tables:
        return "(no changes)", _ABOUT
    return f"{_counted(stats.total)} in {', '.join(stats.types_affected)}", "bold"


def _counted(counts: Counts) -> str:
    return f"inserts={counts.inserts} updates={counts.updates} deletes={counts.deletes}"
