"""`omnigraph version`."""

from __future__ import annotations

import typer

import omnigraph
from omnigraph.cli.command import Run, command
from omnigraph.cli.formats import JSON
from omnigraph.cli.output import put_json, put_line

# Repeated here because the manifest room, where it is defined, loads Arrow; a test keeps the two equal.
INTERNAL_SCHEMA_VERSION = 4


def add_to(app: typer.Typer) -> None:
    command(app, "version", examples=("omnigraph version", "omnigraph --version"), needs_graph=False)(_version)


def _version(run: Run) -> None:
    """Print the program version and the on-disk version."""
    if run.format == JSON:
        put_json({"version": omnigraph.__version__, "internal_schema_version": INTERNAL_SCHEMA_VERSION})
    else:
        put_version()


def put_version() -> None:
    put_line(f"omnigraph {omnigraph.__version__}")
    put_line(f"internal-schema {INTERNAL_SCHEMA_VERSION}")
