"""Which omnigraph this is."""

from __future__ import annotations

import omnigraph
from omnigraph.cli.output import put_line

# Repeated here because the manifest room, where it is defined, loads Arrow; a test keeps the two equal.
INTERNAL_SCHEMA_VERSION = 4


def about() -> dict[str, str | int]:
    return {"version": omnigraph.__version__, "internal_schema_version": INTERNAL_SCHEMA_VERSION}


def put_version() -> None:
    put_line(f"omnigraph {omnigraph.__version__}")
    put_line(f"internal-schema {INTERNAL_SCHEMA_VERSION}")
