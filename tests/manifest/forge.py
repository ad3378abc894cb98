"""Graphs of older internal schema versions, written row by row as the specification's fixture table says.

Nothing here uses the code under test to write: only raw Lance calls and the accepted schema's three files.
"""

import itertools
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from omnigraph.catalog.contract import AcceptedSchema, accept

A, B, C = ("01HZZZZZZZZZZZZZZZZZZZZZZ" + letter for letter in "ABC")
DOMAIN = "01HZZZZZZZZZZZZZZZZZZZZZZD"
RUN_BRANCH = "__run__01HZZZZZZZZZZZZZZZZZZZZZZZ"
EPOCH_US = 1_700_000_000_000_000
SCHEMA = "node Person {\n  name: String @key\n  age: I32?\n}\nedge Follows: Person -> Person\n"
PERSON, OLD, FOLLOWS = "nodes/40d76f1f51639ec0", "nodes/3018cd19bf898cd6", "edges/35570fa59a9bc199"
STAMP = "omnigraph:internal_schema_version"
PRIMARY_KEY = {"lance-schema:unenforced-primary-key": "true"}

COLUMNS = ("object_id", "object_type", "location", "table_key", "table_version", "table_branch", "row_count")
P1 = [
    ("table:node:Person", "table", PERSON, "node:Person", None, None, None),
    ("table:node:Old", "table", OLD, "node:Old", None, None, None),
    ("table:edge:Follows", "table", FOLLOWS, "edge:Follows", None, None, None),
    ("version:node:Person@v=1", "table_version", None, "node:Person", 1, None, 0),
    ("version:node:Old@v=1", "table_version", None, "node:Old", 1, None, 0),
    ("version:edge:Follows@v=1", "table_version", None, "edge:Follows", 1, None, 0),
]
P2 = [
    ("version:node:Person@v=2", "table_version", None, "node:Person", 2, None, 2),
    ("version:edge:Follows@v=2", "table_version", None, "edge:Follows", 2, None, 1),
    ("tombstone:node:Old@v=1", "table_tombstone", None, "node:Old", 1, None, None),
]
P3 = [("version:node:Person@draft@v=3", "table_version", None, "node:Person", 3, "draft", 3)]

Commit = tuple[str, str | None, int, str | None]
MAIN_COMMITS: list[Commit] = [(A, None, 1, None), (B, None, 2, A)]
DRAFT_COMMITS: list[Commit] = [(C, "draft", 3, B)]
COMMITS_SCHEMA = pa.schema(
    [
        pa.field("graph_commit_id", pa.string(), nullable=False),
        pa.field("manifest_branch", pa.string()),
        pa.field("manifest_version", pa.uint64()),
        pa.field("parent_commit_id", pa.string()),
        pa.field("merged_parent_commit_id", pa.string()),
        pa.field("created_at", pa.int64()),
    ]
)


def forge(root: Path, version: int, *, stable_row_ids: bool = True, main_commits: list[Commit] | None = None) -> str:
    """A graph whose `__manifest` has the shape of `version`; returns its URI."""
    accepted = accept(SCHEMA, DOMAIN)
    root.mkdir(parents=True)
    (root / "_schema.pg").write_bytes(accepted.source_bytes)
    (root / "_schema.ir.json").write_bytes(accepted.ir_json)
    (root / "__schema_state.json").write_bytes(accepted.state_json)
    _forge_tables(root, accepted)
    _forge_manifest(root, version, stable_row_ids)
    _forge_commits(root, main_commits or MAIN_COMMITS)
    if version == 1:
        create(root / "_graph_runs.lance", pa.schema([pa.field("run_id", pa.string())]).empty_table())
    return str(root)


def create(path: Path, rows: pa.Table, *, stable_row_ids: bool = True) -> None:
    lance.write_dataset(rows, str(path), mode="create", enable_stable_row_ids=stable_row_ids)


def append(path: Path, rows: pa.Table, branch: str | None = None) -> int:
    """Rows in one new version of the table or of one of its branches, whose number is returned."""
    head = lance.dataset(f"{path}/tree/{branch}" if branch else str(path))
    staged = lance.fragment.write_fragments(rows, head, mode="append", return_transaction=True)
    return lance.LanceDataset.commit(head, staged, max_retries=0, detached=False).version


def fork(path: Path, name: str, version: int) -> None:
    lance.dataset(str(path)).create_branch(name, ("main", version))


def manifest_schema(version: int) -> pa.Schema:
    """The manifest's columns; the primary key and the stamp only from version 2 on."""
    keyed = PRIMARY_KEY if version >= 2 else None
    return pa.schema(
        [
            pa.field("object_id", pa.string(), nullable=False, metadata=keyed),
            pa.field("object_type", pa.string()),
            pa.field("location", pa.string()),
            pa.field("metadata", pa.string()),
            pa.field("base_objects", pa.list_(pa.string())),
            pa.field("table_key", pa.string()),
            pa.field("table_version", pa.uint64()),
            pa.field("table_branch", pa.string()),
            pa.field("row_count", pa.uint64()),
        ],
        metadata={STAMP: str(version)} if version >= 2 else None,
    )


def manifest_rows(rows: list[tuple[Any, ...]], version: int) -> pa.Table:
    full = [{**dict(zip(COLUMNS, row, strict=True)), "metadata": "{}", "base_objects": None} for row in rows]
    return pa.Table.from_pylist(full, schema=manifest_schema(version))


def commit_rows(commits: list[Commit], first: int) -> pa.Table:
    """`first` numbers the first of them from genesis; each is one second younger than the one before."""
    values = [(*commit, None, EPOCH_US + second * 1_000_000) for commit, second in zip(commits, itertools.count(first))]
    return pa.Table.from_pylist([dict(zip(COMMITS_SCHEMA.names, v, strict=True)) for v in values], COMMITS_SCHEMA)


def _forge_tables(root: Path, accepted: AcceptedSchema) -> None:
    person = accepted.catalog.arrow_schema("node:Person")
    follows = accepted.catalog.arrow_schema("edge:Follows")
    create(root / PERSON, person.empty_table())
    create(root / OLD, pa.schema([pa.field("id", pa.string(), nullable=False)]).empty_table())
    create(root / FOLLOWS, follows.empty_table())
    append(root / PERSON, people(person, "ana", "bob"))
    append(root / FOLLOWS, pa.Table.from_pylist([{"id": "e1", "src": "ana", "dst": "bob"}], schema=follows))
    fork(root / PERSON, "draft", 2)
    append(root / PERSON, people(person, "cleo"), "draft")


def people(schema: pa.Schema, *names: str) -> pa.Table:
    return pa.Table.from_pylist([{"id": n, "name": n, "age": 30} for n in names], schema=schema)


def _forge_manifest(root: Path, version: int, stable_row_ids: bool) -> None:
    path = root / "__manifest"
    create(path, manifest_rows(P1, version), stable_row_ids=stable_row_ids)
    append(path, manifest_rows(P2, version))
    fork(path, "draft", 2)
    append(path, manifest_rows(P3, version), "draft")
    if version < 3:
        fork(path, RUN_BRANCH, 1)


def _forge_commits(root: Path, main_commits: list[Commit]) -> None:
    path = root / "_graph_commits.lance"
    create(path, commit_rows(main_commits, 1))
    fork(path, "draft", 1)
    append(path, commit_rows(DRAFT_COMMITS, 3), "draft")
    actors = pa.schema([pa.field(n, pa.string(), nullable=False) for n in ("graph_commit_id", "actor_id")])
    create(root / "_graph_commit_actors.lance", pa.table({"graph_commit_id": [B], "actor_id": ["act-ana"]}, actors))
