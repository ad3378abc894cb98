"""A table of people on main or on a branch, and every kind of staged write upon it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from omnigraph.storage.apply import commit_staged, landed
from omnigraph.storage.fragments import write_fragment_messages
from omnigraph.storage.ledger import create_now
from omnigraph.storage.places import open_root
from omnigraph.storage.refs import fork_branch_from_state
from omnigraph.storage.stage import (
    IndexKind,
    IndexSpec,
    StagedWrite,
    Stamp,
    stage_append,
    stage_compaction,
    stage_delete,
    stage_delete_where,
    stage_fragments,
    stage_index,
    stage_overwrite,
    stage_rows,
    stage_upsert,
)
from omnigraph.storage.tables import Table, TableRef, head_version, open_table

SCHEMA = pa.schema(
    [
        pa.field("id", pa.string(), nullable=False),
        pa.field("n", pa.int64()),
        pa.field("note", pa.string()),
        pa.field("v", pa.list_(pa.float32(), 4)),
    ]
)
LOCATION = "nodes/people"
STAMP = Stamp("01HZZZZZZZZZZZZZZZZZZZZZZZ", "node:People", "0")
BTREE, TEXT = IndexSpec("n", IndexKind.BTREE), IndexSpec("note", IndexKind.TEXT)
ID_INDEX = IndexSpec("id", IndexKind.BTREE)


def rows(values: dict[str, int]) -> pa.Table:
    columns = {
        "id": list(values),
        "n": list(values.values()),
        "note": [f"word{n} common" for n in values.values()],
        "v": [[float(n), 1.0, 0.0, 0.5] for n in values.values()],
    }
    return pa.table(columns, schema=SCHEMA)


START = {f"p{i}": i for i in range(8)}


def people(root: Path, branch: str | None) -> Table:
    """Eight rows in three fragments; on a branch the same rows, inherited from main."""
    ref = TableRef(open_root(str(root)), LOCATION)
    create_now(ref, SCHEMA, rows(dict(list(START.items())[:4])))
    for first in (4, 6):
        part = dict(list(START.items())[first : first + 2])
        land(stage_append(open_table(ref, None), rows(part), STAMP))
    table = open_table(ref, None)
    return fork_branch_from_state(ref, None, branch, table.version) if branch else table


def land(staged: StagedWrite) -> Table:
    """Commit, and insist that it landed in its slots."""
    answer = commit_staged(staged)
    assert answer.error is None
    assert landed(staged, staged.read_version, answer)
    return open_table(staged.ref, staged.read_version + staged.versions)


def content(table: Table) -> dict[str, int]:
    found = table.read(["id", "n"]).to_pydict()
    assert len(set(found["id"])) == len(found["id"]), "an id is there twice"
    return dict(zip(found["id"], found["n"], strict=True))


def histories(table: Table) -> dict[str, tuple[int, int]]:
    """Stable row id and creating version of each row."""
    found = table.read(["id", "_rowid", "_row_created_at_version"]).to_pydict()
    return dict(zip(found["id"], zip(found["_rowid"], found["_row_created_at_version"], strict=True), strict=True))


def newest(table: Table) -> int:
    return head_version(table.ref, table.version)


def adopt(table: Table) -> StagedWrite:
    messages = write_fragment_messages(table.ref.uri, table.version, rows({"f1": 21, "f2": 22}), None)
    return stage_fragments(table, messages, 2, STAMP)


def without(*ids: str) -> dict[str, int]:
    return {k: v for k, v in START.items() if k not in ids}


@dataclass(frozen=True)
class Case:
    """A kind of staged write and the content it leads to."""

    name: str
    stage: Callable[[Table], Any]
    after: dict[str, int]
    kept: bool = True
    effect: tuple[int, int, int] = (0, 0, 0)
    versions: int = 1


CASES = [
    Case("append", lambda t: stage_append(t, rows({"x": 9}), STAMP), {**START, "x": 9}, effect=(1, 0, 0)),
    Case("fragments", adopt, {**START, "f1": 21, "f2": 22}, effect=(2, 0, 0)),
    Case("upsert", lambda t: stage_upsert(t, rows({"p5": 50, "x": 9, "p1": 10}), STAMP),
         {**START, "p5": 50, "p1": 10, "x": 9}, effect=(1, 2, 0)),
    Case("upsert-all", lambda t: stage_upsert(t, rows({k: v + 100 for k, v in START.items()}), STAMP),
         {k: v + 100 for k, v in START.items()}, effect=(0, 8, 0)),
    Case("delete", lambda t: stage_delete(t, ["p0", "p6", "p7", "nobody"], STAMP), without("p0", "p6", "p7"),
         effect=(0, 0, 3)),
    Case("delete-all", lambda t: stage_delete(t, list(START), STAMP), {}, effect=(0, 0, 8)),
    Case("delete-where", lambda t: stage_delete_where(t, "n >= 5", STAMP), without("p5", "p6", "p7"), effect=(0, 0, 3)),
    Case("rows", lambda t: stage_rows(t, rows({"p2": 20, "x": 9}), ["p3"], STAMP),
         {**without("p3"), "p2": 20, "x": 9}, effect=(1, 1, 1)),
    Case("overwrite", lambda t: stage_overwrite(t, rows({"p1": 1, "z": 26}), STAMP), {"p1": 1, "z": 26}, kept=False,
         effect=(2, 0, 8)),
    Case("overwrite-empty", lambda t: stage_overwrite(t, SCHEMA.empty_table(), STAMP), {}, kept=False,
         effect=(0, 0, 8)),
    Case("index", lambda t: stage_index(t, [BTREE, TEXT], STAMP), START),
    Case("compaction", lambda t: stage_compaction(t, STAMP), START, versions=2),
]  # fmt: skip
