"""The net row changes between two states of one table: the one place that decides what changed.

`row_changes(scratch, before, after, fields)` gives exactly the ids whose row differs, in id order (by code point), each
with its row in either state. It is what diffs, the changes of commits, feeds and merges are made of.

Holds at every return:
  1. An id is in it iff its row is in one state only, or differs in a column of `fields`. What a row was meanwhile does
     not matter; a row that was rewritten, moved or deleted and inserted again with equal values is no change.
  2. Values are compared as `packed.py` says: exactly and typed, whatever the order of the columns. A column that a
     state does not have is null there.
  3. What is read follows what was written between the states: fragments both hold are not opened. After a compaction
     the rows written since are picked by `_row_last_updated_at_version`; only if rows were deleted too, or on two
     branches that were compacted apart, are all row ids of the rewritten fragments compared (never their values).
  4. Memory is bounded by the scratch; more than that is on disk until the scratch is closed.

It relies on: a row written at a version of a branch is never written again under the same version, and a restore goes
back only to what was last published.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.changes.row_ids import RowIds, only_in_one
from omnigraph.engine.write.parted import asked_in_order
from omnigraph.engine.write.spool import RowSpool
from omnigraph.records.packed import packed_rows, packed_struct, unpacked_rows
from omnigraph.sets.scratch import BATCH_ROWS, Scratch
from omnigraph.storage.row_deltas import CREATED, ROW_ID, UPDATED, Delta, Side, all_rows, delta_between, rows_with
from omnigraph.storage.tables import Table

_PIECE_BYTES = 128 << 20
_IMAGES_ROWS = 1_024
# Up to here the row ids of changed rows are compared in memory.
_FEW_ROWS = 1 << 20
# The net changes of two sets of rows, `id` and `image` each; DuckDB and Spark SQL read it alike.
COMPARED = """
SELECT coalesce(b.id, a.id) AS id, b.image AS before, a.image AS after
FROM before_rows b FULL OUTER JOIN after_rows a ON a.id = b.id
WHERE b.image IS DISTINCT FROM a.image
"""


@dataclass(frozen=True)
class Images:
    """Some changes: the rows of either state as they are stored, and whether the state has the row at all."""

    ids: list[str]
    before: pa.RecordBatch
    after: pa.RecordBatch
    had: list[bool]
    has: list[bool]


class RowChanges:
    """The ids whose row differs, in id order. May be read any number of times while its scratch is open."""

    def __init__(self, rows: RowSpool, fields: pa.Schema, last_ids: Sequence[bytes] = ()) -> None:
        self.fields = fields
        self._rows = rows
        self._last_ids = last_ids
        """Of each batch, to find a place without reading what lies before it."""

    @property
    def num_rows(self) -> int:
        return self._rows.num_rows

    @property
    def rows(self) -> RowSpool:
        """For SQL: `id`, `before`, `after`; the last two are structs of packed columns, or NULL where there is no row.

        Packed values of the same column may be compared with each other: `IS DISTINCT FROM` means what rule 2 says.
        """
        return self._rows

    def images(self, since: bytes = b"") -> Iterator[Images]:
        """The changes in small pieces, with stored values; perhaps not those whose id in UTF-8 is before `since`."""
        for batch in self._rows.batches(first=bisect_left(self._last_ids, since)):
            for start in range(0, batch.num_rows, _IMAGES_ROWS):
                piece = batch.slice(start, _IMAGES_ROWS)
                if piece.column("id")[-1].as_py().encode() < since:
                    continue
                before, after = piece.column("before"), piece.column("after")
                yield Images(
                    piece.column("id").to_pylist(),
                    unpacked_rows(before, self.fields),
                    unpacked_rows(after, self.fields),
                    before.is_valid().to_pylist(),
                    after.is_valid().to_pylist(),
                )

    def presence(self) -> Iterator[tuple[pa.Array, pa.Array]]:
        """Whether the earlier and the later state have the row, in pieces; no value is looked at."""
        for batch in self._rows.batches():
            yield batch.column("before").is_valid(), batch.column("after").is_valid()

    def close(self) -> None:
        self._rows.close()


def row_changes(scratch: Scratch, before: Table | None, after: Table | None, fields: pa.Schema) -> RowChanges:
    """What differs between two states of a table; None is a state without rows. `fields` must have `id` in it.

    States of different locations are different tables: both are read whole and compared by id.
    """
    if before is not None and after is not None and (before.ref, before.version) == (after.ref, after.version):
        return RowChanges(_spool(scratch, fields), fields)
    old, new = _Candidates(scratch, before, fields), _Candidates(scratch, after, fields)
    if before is None or after is None or before.ref.location != after.ref.location:
        old.take_all()
        new.take_all()
    else:
        _narrow(scratch, delta_between(before, after, fields.names), old, new)
    found = _compared(scratch, old, new)
    old.rows.close()
    new.rows.close()
    return found


class _Candidates:
    """Rows of one state that may differ from the other's, packed."""

    def __init__(self, scratch: Scratch, table: Table | None, fields: pa.Schema) -> None:
        self.fields = fields
        self.table = table
        self.columns = [f.name for f in fields if table is not None and f.name in table.schema.names]
        image = pa.field("image", packed_struct(fields))
        self.rows = RowSpool(pa.schema([pa.field("id", pa.string()), image]), scratch)
        self.widest_bytes = 1

    def take_all(self) -> None:
        if self.table is not None:
            self.take(all_rows(self.table, self.columns))

    def take(self, batches: Iterable[pa.RecordBatch]) -> None:
        for batch in batches:
            if batch.num_rows:
                self.widest_bytes = max(self.widest_bytes, _widest_row(batch))
                images = packed_rows(batch, self.fields)
                self.rows.append(pa.RecordBatch.from_arrays([batch.column("id"), images], schema=self.rows.schema))


def _widest_row(batch: pa.RecordBatch) -> int:
    """At least the bytes of the widest row."""
    total = 0
    for column in batch.columns:
        if pa.types.is_string(column.type) or pa.types.is_large_binary(column.type):
            total += int(pc.max(pc.binary_length(column)).as_py() or 0)
        elif pa.types.is_list(column.type):
            total += int(column.nbytes)
        else:
            total += int(column.nbytes) // batch.num_rows
    return total


def _narrow(scratch: Scratch, delta: Delta, old: _Candidates, new: _Candidates) -> None:
    """Fill both sides with what may differ."""
    shared = delta.shared_version
    gone = _Seen()
    old.take(gone.watch(delta.before.thinned_rows([*old.columns, ROW_ID])))
    new.take(delta.after.thinned_rows(new.columns))
    if shared is None:
        old.take(delta.before.rows(old.columns))
        new.take(delta.after.rows(new.columns))
        return
    later, earlier = f"{UPDATED} > {shared}", f"{UPDATED} <= {shared}"
    came = _Seen()
    written = [delta.before.count(later), delta.after.count(later)]
    kept = [delta.before.live_rows - written[0], delta.after.live_rows - written[1]]
    old.take(delta.before.rows(old.columns, later if kept[0] else None) if written[0] else ())
    fresh = delta.after.rows([*new.columns, ROW_ID, CREATED], later if kept[1] else None) if written[1] else ()
    new.take(came.watch(fresh, shared))
    if not all(kept):
        old.take(delta.before.rows(old.columns, earlier) if kept[0] else ())
        new.take(delta.after.rows(new.columns, earlier) if kept[1] else ())
        return
    moved = came.without(gone)
    if delta.is_descent and moved is not None and kept[0] - kept[1] == len(moved):
        # Every row that the later state no longer has as it was is one that it has anew: none was deleted.
        old.take(rows_with(delta.before.table, moved, old.columns))
        return
    here, there = partial(_row_ids, delta.before, earlier), partial(_row_ids, delta.after, earlier)
    for side, found, only in zip(
        (delta.before, delta.after), (old, new), only_in_one(scratch, here, there), strict=True
    ):
        for numbers in only:
            found.take(rows_with(side.table, numbers, found.columns))


class _Seen:
    """The row ids that went by, while they are few."""

    def __init__(self) -> None:
        self._parts: list[RowIds] = []
        self.count = 0

    def watch(self, batches: Iterable[pa.RecordBatch], replaced_since: int | None = None) -> Iterator[pa.RecordBatch]:
        """Note the row ids; with `replaced_since` only of rows that were created up to that version."""
        for batch in batches:
            if self.count <= _FEW_ROWS:
                numbers = batch.column(ROW_ID).to_numpy()
                if replaced_since is not None:
                    numbers = numbers[batch.column(CREATED).to_numpy() <= replaced_since]
                self._parts.append(numbers)
                self.count += len(numbers)
            yield batch

    def without(self, other: _Seen) -> RowIds | None:
        """Those that did not go by there; None if they are too many to tell."""
        if max(self.count, other.count) > _FEW_ROWS:
            return None
        return np.setdiff1d(_joined(self._parts), _joined(other._parts))


def _joined(parts: list[RowIds]) -> RowIds:
    return np.concatenate([np.empty(0, np.uint64), *parts])


def _row_ids(side: Side, where: str) -> Iterator[RowIds]:
    for batch in side.rows([ROW_ID], where):
        yield batch.column(ROW_ID).to_numpy()


def _spool(scratch: Scratch, fields: pa.Schema) -> RowSpool:
    image = packed_struct(fields)
    return RowSpool(pa.schema([("id", pa.string()), ("before", image), ("after", image)]), scratch)


def _compared(scratch: Scratch, old: _Candidates, new: _Candidates) -> RowChanges:
    found, last_ids = _spool(scratch, old.fields), list[bytes]()
    if not old.rows.num_rows and not new.rows.num_rows:
        return RowChanges(found, old.fields)
    rows = max(1, min(BATCH_ROWS, _PIECE_BYTES // (old.widest_bytes + new.widest_bytes)))
    spools = {"before_rows": old.rows, "after_rows": new.rows}
    with closing(asked_in_order(scratch, f"{COMPARED} ORDER BY 1", spools, rows)) as batches:
        for batch in batches:
            if batch.num_rows:
                columns = [column.cast(field.type) for column, field in zip(batch.columns, found.schema, strict=True)]
                found.append(pa.RecordBatch.from_arrays(columns, schema=found.schema))
                last_ids.append(batch.column(0)[-1].as_py().encode())
    return RowChanges(found, old.fields, last_ids)
