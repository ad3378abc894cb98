"""A small graph whose schema is changed, and what a user sees of it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa

import omnigraph as og
from omnigraph.commit.schema_files import needs_settling, recorded_commits
from omnigraph.manifest import layout
from omnigraph.storage.tables import head_version, open_table

PERSON = "node Person { name: String @key  age: I32? @index  note: String? }\n"
CITY = "node City { name: String @key }\n"
KNOWS = "edge Knows: Person -> Person { since: I32? }\n"
SCHEMA = PERSON + CITY + KNOWS
SEED = """query seed() {
  insert Person { name: "ana", age: 31, note: "first" } insert Person { name: "bo", age: 7 }
  insert City { name: "oslo" }
  insert Knows { from: "ana", to: "bo", since: 3 }
}"""
FILES = (layout.SCHEMA_SOURCE, layout.SCHEMA_IR, layout.SCHEMA_STATE)
FACTS = ["_rowid", "_row_created_at_version", "_row_last_updated_at_version"]


def made(path: Path, schema: str = SCHEMA, seed: str | None = SEED) -> og.Graph:
    graph = og.Graph.init(str(path), schema)
    if seed is not None:
        graph.mutate(seed)
    return graph


def rows(graph: og.Graph, table_key: str, **target: Any) -> list[dict[str, Any]]:
    """The properties of every row, by id."""
    kind, name = table_key.split(":")
    told = [orjson.loads(line) for line in b"".join(graph.export([name], **target)).splitlines()]
    return [line["data"] for line in told if ("edge" in line) == (kind == "edge")]


def stored(graph: og.Graph, table_key: str) -> pa.Table:
    """The table as it lies on disk at the version that is shown, with what each row says of its own past."""
    entry = graph.snapshot().tables[table_key]
    table = open_table(graph.context.ref(entry.location, entry.table_branch), entry.table_version)
    return table.read([*table.schema.names, *FACTS]).sort_by("id")


def facts(graph: og.Graph, table_key: str) -> list[dict[str, Any]]:
    return stored(graph, table_key).select(["id", *FACTS]).to_pylist()


def leftovers(graph: og.Graph) -> list[str]:
    """What an apply must not leave behind: other records than that of the schema in force, files that are not in place,
    sidecars, its branch, tables that are ahead of their pins."""
    ctx = graph.context
    main = ctx.manifest.state()
    in_force = main.schema_commit.graph_commit_id if main.schema_commit is not None else None
    found = [f"record of {name}" for name in recorded_commits(ctx.objects) if name != in_force]
    found += ["files that are not in place"] if not found and needs_settling(ctx.objects, main) else []
    found += ctx.objects.list(layout.RECOVERY_DIR)
    found += [name for name in ctx.manifest.branches() if name == layout.SCHEMA_LOCK_BRANCH]
    entries = graph.snapshot().tables.items()
    heads = {k: head_version(ctx.ref(e.location, e.table_branch), e.table_version) for k, e in entries}
    return found + [f"{k} drifted" for k, e in entries if heads[k] != e.table_version]
