"""`omnigraph export`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Annotated

import typer

from omnigraph.base.errors import BadRequest
from omnigraph.cli.command import BranchOption, Run, UriArgument, command
from omnigraph.cli.output import put_bytes
from omnigraph.cli.targets import AsOfOption, AtOption, SnapshotOption, TargetOptions

if TYPE_CHECKING:
    from collections.abc import Iterator

_EXAMPLES = (
    "omnigraph export ./library --out library.jsonl",
    "omnigraph export ./library --branch draft --type Person --type Book --out people.jsonl",
    "omnigraph export ./library --at main~1 --out before.jsonl",
)


def add_to(app: typer.Typer) -> None:
    command(app, "export", examples=_EXAMPLES)(_export)


def _export(
    run: Run,
    uri: UriArgument = None,
    branch: BranchOption = None,
    snapshot: SnapshotOption = None,
    at: AtOption = None,
    as_of: AsOfOption = None,
    type: Annotated[
        list[str] | None, typer.Option("--type", metavar="T", help="Only this type; may be repeated.")
    ] = None,
    out: Annotated[str | None, typer.Option("--out", metavar="FILE", help="Write to a file, not to stdout.")] = None,
) -> None:
    """Write a branch or an older commit as NDJSON."""
    targets = TargetOptions(branch, snapshot, at, as_of)
    graph = run.read(uri)
    picked = targets.pick(graph, run.settings.cli_branch)
    pieces = graph.export(type or (), snapshot=picked.snapshot)
    if out is None:
        for piece in pieces:
            put_bytes(piece)
    else:
        save(pieces, out)
        run.note(f"exported to {out}")


def save(pieces: Iterator[bytes], path: str) -> None:
    """The whole file or none: it gets its name when it is complete."""
    partial = f"{path}.partial"
    try:
        with open(partial, "wb") as file:
            for piece in pieces:
                file.write(piece)
        os.replace(partial, path)
    except OSError as error:
        raise BadRequest(f"'{path}' cannot be written: {error.strerror}") from error
    finally:
        if os.path.exists(partial):
            os.remove(partial)
