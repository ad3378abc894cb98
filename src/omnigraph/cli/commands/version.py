"""`omnigraph version`."""

from __future__ import annotations

import typer

from omnigraph.cli.about import about, put_version
from omnigraph.cli.command import Run, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import put_json


def add_to(app: typer.Typer) -> None:
    command(app, "version", examples=("omnigraph version", "omnigraph --version"), needs_graph=False)(_version)


def _version(run: Run) -> None:
    """Print the program version and the on-disk version."""
    if run.format == JSON:
        put_json(about())
    else:
        put_version()
