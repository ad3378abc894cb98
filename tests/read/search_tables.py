"""Small tables of texts and vectors, the states an index can be in, and one-line references to compare with."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from omnigraph.storage.apply import commit_staged
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
    stage_index,
    stage_upsert,
)
from omnigraph.storage.tables import Table, TableRef, open_table

STAMP = Stamp("01HZZZZZZZZZZZZZZZZZZZZZZZ", "node:Note", "0")
TEXT, VECTOR = IndexSpec("body", IndexKind.TEXT), IndexSpec("vec", IndexKind.VECTOR)


def land(staged: StagedWrite) -> Table:
    answer = commit_staged(staged)
    assert answer.error is None
    return open_table(staged.ref, staged.read_version + staged.versions)


def table_of(root: Path, rows: pa.Table, fragments: int = 3) -> Table:
    """The rows in that many fragments."""
    ref = TableRef(open_root(str(root)), "nodes/notes")
    step = max(1, -(-rows.num_rows // fragments))
    create_now(ref, rows.schema, rows.slice(0, step))
    table = open_table(ref, None)
    for first in range(step, rows.num_rows, step):
        table = land(stage_append(table, rows.slice(first, step), STAMP))
    return table


def texts(bodies: Sequence[str | None], first: int = 0) -> pa.Table:
    ids = [f"t{first + i}" for i in range(len(bodies))]
    schema = pa.schema(
        [pa.field("id", pa.string(), nullable=False), pa.field("kind", pa.int64()), pa.field("body", pa.string())]
    )
    return pa.table({"id": ids, "kind": [(first + i) % 3 for i in range(len(ids))], "body": list(bodies)}, schema)


def vectors(values: "np.ndarray[Any, Any]", nulls: Sequence[int] = (), first: int = 0) -> pa.Table:
    hidden = np.isin(np.arange(len(values)), nulls)
    column = pa.FixedSizeListArray.from_arrays(
        pa.array(values.astype(np.float32).ravel()), values.shape[1], mask=pa.array(hidden)
    )
    ids = pa.array([f"v{first + i}" for i in range(len(values))])
    schema = pa.schema([pa.field("id", pa.string(), nullable=False), pa.field("vec", column.type)])
    return pa.table([ids, column], schema=schema)


def unindexed(table: Table, spec: IndexSpec) -> Table:
    return table


def partly_indexed(table: Table, spec: IndexSpec) -> Table:
    """An index over all but the last fragment."""
    covered = [f.fragment_id for f in table.dataset.get_fragments()][:-1]
    return land(stage_index(table, [], STAMP, {spec: covered}))


def indexed(table: Table, spec: IndexSpec) -> Table:
    return land(stage_index(table, [spec], STAMP))


def indexed_in_pieces(table: Table, spec: IndexSpec) -> Table:
    """An index of several segments."""
    first, *rest = [f.fragment_id for f in table.dataset.get_fragments()]
    table = land(stage_index(table, [], STAMP, {spec: [first]}))
    return land(stage_index(table, [], STAMP, {spec: rest}))


def forked(table: Table) -> Table:
    """The same rows on a branch, which inherits files and indexes."""
    return fork_branch_from_state(table.ref, None, "draft", table.version)


COVERAGES: list[Callable[[Table, IndexSpec], Table]] = [unindexed, partly_indexed, indexed, indexed_in_pieces]


def untouched(table: Table, fresh: pa.Table) -> Table:
    return table


def thinned(table: Table, fresh: pa.Table) -> Table:
    ids = table.read(["id"]).column("id").to_pylist()
    return land(stage_delete(table, ids[::4], STAMP))


def rewritten(table: Table, fresh: pa.Table) -> Table:
    """Some rows replaced, some added, one deleted."""
    table = land(stage_upsert(table, fresh, STAMP))
    return land(stage_delete(table, [table.read(["id"]).column("id").to_pylist()[0]], STAMP))


def compacted(table: Table, fresh: pa.Table) -> Table:
    staged = stage_compaction(rewritten(table, fresh), STAMP)
    assert staged is not None
    return land(staged)


HISTORIES: list[Callable[[Table, pa.Table], Table]] = [untouched, thinned, rewritten, compacted]


def stems(text: str | None) -> list[str]:
    """The words of one text, asked of Lance directly."""
    return [t.text for t in lance.tokenize(text or "", ascii_folding=False, max_token_length=None)]


def plain_words(text: str | None) -> list[str]:
    settings: dict[str, Any] = {"ascii_folding": False, "max_token_length": None}
    return [t.text for t in lance.tokenize(text or "", stem=False, remove_stop_words=False, **settings)]


def edit_distance(a: str, b: str) -> int:
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        before, row = row, [i]
        for j, y in enumerate(b, 1):
            row.append(min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (x != y)))
    return row[-1]


def is_match(function: str, text: str | None, asked: str, edits: int = 2) -> bool:
    """The spec's sentence for each function, word by word."""
    if text is None:
        return False
    if function == "fuzzy":
        return any(edit_distance(a, b) <= edits for a in plain_words(asked) for b in plain_words(text))
    wanted, found = stems(asked), stems(text)
    if function == "search":
        return any(word in found for word in wanted)
    size = len(wanted)
    return size > 0 and any(found[i : i + size] == wanted for i in range(len(found)))
