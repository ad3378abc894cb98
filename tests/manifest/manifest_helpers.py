"""Small steps the manifest tests share: looking at raw rows, at the disk, and publishing without tables."""

import hashlib
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import lance
import orjson
import pyarrow as pa

from omnigraph import Graph
from omnigraph.base.ids import new_ulid
from omnigraph.manifest.publisher import Precondition, Published
from omnigraph.manifest.rows import Changes, CommitIntent, Pin
from omnigraph.manifest.snapshot import NOT_THERE

SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n}\nnode City {\n  name: String @key\n}\n"
PERSON, CITY = "nodes/40d76f1f51639ec0", "nodes/2468b69d10791c82"


def disk_image(root: str | Path) -> dict[str, str]:
    """Every file below `root` with the hash of its bytes."""
    found = (Path(folder) / name for folder, _, names in os.walk(root) for name in names)
    return {str(p.relative_to(root)): hashlib.sha256(p.read_bytes()).hexdigest() for p in found}


def raw_manifest(uri: str, branch: str | None = None) -> list[dict[str, Any]]:
    """The stored rows with the version that brought each, as plain Lance tells."""
    dataset = lance.dataset(f"{uri}/__manifest/tree/{branch}" if branch else f"{uri}/__manifest")
    names = [*dataset.schema.names, "_row_created_at_version"]
    return dataset.to_table(columns=names).to_pylist()


def raw_by_id(uri: str, branch: str | None = None) -> dict[str, dict[str, Any]]:
    """Stored rows by object id; a doubled id is an error."""
    rows = raw_manifest(uri, branch)
    found = {row["object_id"]: {**row, "metadata": orjson.loads(row["metadata"])} for row in rows}
    assert len(found) == len(rows), "a manifest key occurs twice"
    return found


def stamp_on_disk(uri: str, branch: str | None = None) -> str | None:
    dataset = lance.dataset(f"{uri}/__manifest/tree/{branch}" if branch else f"{uri}/__manifest")
    value = (dataset.schema.metadata or {}).get(b"omnigraph:internal_schema_version")
    return value.decode() if value else None


def intent(kind: str = "load", **fields: Any) -> CommitIntent:
    return CommitIntent(new_ulid(), new_ulid(), kind, **fields)


def pin(version: int, rows: int = 0, *, key: str = "node:Person", location: str = PERSON) -> Pin:
    return Pin(key, location, None, version, rows)


def publish(
    graph: Graph,
    changes: Changes | None = None,
    expected: dict[str, int] | None = None,
    commit: CommitIntent | None = None,
    condition: Precondition | None = None,
    branch: str | None = None,
) -> Published:
    """One publish straight through the publisher; tables stay where they are."""
    ctx = graph.context
    shown = ctx.manifest.state(branch).entries if expected else {}
    relied_on = {k: replace(shown.get(k, NOT_THERE), table_version=v) for k, v in (expected or {}).items()}
    return ctx.publisher.publish(branch, changes or Changes(), relied_on, commit or intent(), condition)


def people(*names: str) -> pa.Table:
    return pa.table({"id": list(names), "name": list(names)})


def commit_ids(graph: Graph, branch: str | None = None) -> list[str]:
    return [c.graph_commit_id for c in graph.list_commits(branch)]
