"""Who changed one entity, when, from what to what: newest first.

Holds for every history:
  1. Commits that did not move the entity's table are not looked at, nor are those between two writes of its row: the
     row itself says which version of its table wrote it.
  2. It ends with the first insert, or with where cleanup removed what is older.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from omnigraph.base.errors import NotFound, OmniError, Reclaimed
from omnigraph.engine.changes.chain import Chain
from omnigraph.engine.changes.model import Image, Op, Past
from omnigraph.engine.changes.tables import images_of, refuse_reclaimed
from omnigraph.engine.view import Current
from omnigraph.manifest.lineage import GraphCommit
from omnigraph.manifest.snapshot import SubTableEntry
from omnigraph.records.packed import packed_rows
from omnigraph.storage.row_deltas import UPDATED
from omnigraph.storage.tables import TableRef, open_table

# Of these writers the counts say for certain whether rows were deleted.
_COUNTED = ("load", "mutation")
_KEEPS_ROWS = ("ensure_indices", "optimize")
Move = tuple[int, tuple[str, SubTableEntry] | None]


@dataclass(frozen=True)
class _Seen:
    """The entity in one state of its table: its values to compare, its image, the version that wrote the row."""

    values: dict[str, Any] | None
    image: Image | None
    written_at: int | None


_ABSENT = _Seen(None, None, None)


def history_of(chain: Chain, table_key: str, id: str) -> Iterator[Past]:
    """The commits of the chain that changed the entity, newest first; NotFound for an id that was never there."""
    entry = chain.current.entries.get(table_key)
    if entry is None:
        raise NotFound(f"there is no table '{table_key}'", "See omnigraph schema show.")
    moves = chain.table_moves(entry.location)
    told = False
    for past in _walk(chain, moves, id):
        told = True
        yield past
    if not told:
        raise NotFound(f"{table_key} never had an id '{id}'", "Ids are compared exactly; see omnigraph query.")


def _walk(chain: Chain, moves: list[Move], id: str) -> Iterator[Past]:
    at = len(moves) - 1
    if at < 0:
        return
    now = _seen(chain.current, moves[at], id)
    while at >= 0:
        at = _last_written(moves, at, now, chain)
        commit = chain.commits[moves[at][0]]
        try:
            before = _seen(chain.current, moves[at - 1], id) if at else _ABSENT
            if now.values != before.values:
                yield _past(commit, before, now)
        except Reclaimed:
            yield Past(None, first_unreadable_commit_id=commit.graph_commit_id)
            return
        now = before
        at -= 1


def _last_written(moves: list[Move], at: int, now: _Seen, chain: Chain) -> int:
    """The newest move, of those up to `at`, that may have made the entity what it is."""
    while at > 0:
        entry, older = moves[at][1], moves[at - 1][1]
        if entry is None or older is None or entry[1].table_branch != older[1].table_branch:
            return at
        if now.written_at is not None:
            # The row was written at or before this state already.
            if older[1].table_version < now.written_at:
                return at
        elif now.values is not None or _may_delete(chain.commits[moves[at][0]], entry[0]):
            return at
        at -= 1
    return at


def _may_delete(commit: GraphCommit, table_key: str) -> bool:
    if commit.kind in _KEEPS_ROWS:
        return False
    if commit.kind not in _COUNTED or table_key not in commit.counts:
        return True
    return commit.counts[table_key].deletes > 0


def _seen(current: Current, move: Move, id: str) -> _Seen:
    if move[1] is None:
        return _ABSENT
    key, entry = move[1]
    ref, declared = TableRef(current.root, entry.location, entry.table_branch), current.declared_at(entry.location)
    table = open_table(ref, entry.table_version, key)
    table = table if declared is None else table.showing(declared)
    stable = table.has_stable_row_ids
    columns = [*table.schema.names, *([UPDATED] if stable else [])]
    try:
        rows = table.find([id], columns).combine_chunks()
    except OmniError:
        refuse_reclaimed(current.root, key, entry)
        raise
    if not rows.num_rows:
        return _ABSENT
    batch = rows.select(table.schema.names).to_batches()[0]
    fields = pa.schema([field.with_nullable(True) for field in table.schema])
    # A property that is null and one that is not there yet are the same to a reader.
    packed = zip(fields.names, packed_rows(batch, fields)[0].as_py().values(), strict=True)
    values = {name: value for name, value in packed if value is not None}
    written_at = rows.column(UPDATED)[0].as_py() if stable else None
    return _Seen(values, images_of(batch, [True])[0], written_at)


def _past(commit: GraphCommit, before: _Seen, after: _Seen) -> Past:
    op: Op = "update"
    if before.values is None or after.values is None:
        op = "insert" if before.values is None else "delete"
    return Past(commit, op, before.image, after.image)
