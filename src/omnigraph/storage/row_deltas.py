"""Rows by which two states of one table may differ, read at the cost of what was written between them.

Neither state need be older than the other; forks of one table share files, so they may lie on different branches.

Holds for every `Delta`:
  1. Fragments that both states hold with the same files and the same deletions are not looked at.
  2. Of rows in fragments that only one state holds, those written up to `shared_version` have the same row id and the
     same values in both states, if both states have the row. It is None where that is not known: one of them has no
     stable row ids, their columns differ, or they have no common past.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa

from omnigraph.base.batches import joined
from omnigraph.storage.deletions import Offsets, deleted_offsets, deletion_key
from omnigraph.storage.failures import translated
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX
from omnigraph.storage.refs import BranchRef, list_branches
from omnigraph.storage.tables import Table

ROW_ID, CREATED, UPDATED = "_rowid", "_row_created_at_version", "_row_last_updated_at_version"
_ADDRESS = "_rowaddr"
_BATCH_ROWS = 8_192
_BATCH_BYTES = 16 << 20
_TAKE_ROWS = 4_096
# Beyond this many rows of one fragment a scan of it beats naming them.
_NAMED_MAX = 20 * LOOKUP_BY_FILTER_MAX
Numbers: TypeAlias = "np.ndarray[Any, Any]"
_NOTHING = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Thinned:
    """Rows of one fragment that the other state deleted."""

    fragment: Any
    offsets: Offsets

    @property
    def addresses(self) -> Numbers:
        return self.offsets.astype(np.uint64) + np.uint64(int(self.fragment.fragment_id) << 32)


@dataclass(frozen=True)
class Side:
    """What one state may have that the other has not: whole fragments, and single rows of shared ones."""

    table: Table
    fragments: tuple[Any, ...]
    thinned: tuple[Thinned, ...]

    @property
    def live_rows(self) -> int:
        """How many rows its own fragments hold."""
        return sum(int(f.metadata.num_rows) for f in self.fragments)

    def count(self, where: str) -> int:
        if not self.fragments:
            return 0
        with translated(f"count {self.table.ref.location}"):
            scanner = self.table.dataset.scanner([], where, fragments=list(self.fragments), with_row_id=True)
            return int(scanner.count_rows())

    def rows(self, columns: Sequence[str], where: str | None = None) -> Iterator[pa.RecordBatch]:
        """The rows of its own fragments; with `where` only the columns of rows that fit are read."""
        if self.fragments:
            # Of rows that only tell their ids nothing is left to be read later.
            late = where is not None and list(columns) != [ROW_ID]
            yield from _scan(self.table, columns, list(self.fragments), where, late=late)

    def thinned_rows(self, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """The rows of shared fragments that the other state deleted."""
        few = [part.addresses for part in self.thinned if len(part.offsets) <= _NAMED_MAX]
        # Lance answers by fragment; what follows costs by the batch.
        found = _rows_at(self.table, columns, np.concatenate([_NOTHING, *few]))
        yield from joined(found, _BATCH_ROWS, _BATCH_BYTES)
        for part in self.thinned:
            if len(part.offsets) > _NAMED_MAX:
                yield from _rows_of(self.table, columns, part)


@dataclass(frozen=True)
class Delta:
    before: Side
    after: Side
    shared_version: int | None

    @property
    def is_descent(self) -> bool:
        """Whether the later state comes straight from the earlier one."""
        return self.shared_version == self.before.table.version


@dataclass(frozen=True)
class Paired:
    """The fragments of two states: those only one of them holds, and pairs of which different rows are deleted."""

    lost: tuple[Any, ...]
    fresh: tuple[Any, ...]
    thinned: tuple[tuple[Any, Any], ...]


def paired_fragments(before: Table, after: Table, columns: Sequence[str]) -> Paired:
    """Where two states of one table may differ in these columns, by the table's metadata alone."""
    with translated(f"compare {after.ref.location}"):
        old, new = _by_content(before, columns), _by_content(after, columns)
        shared = [(old[key], new[key]) for key in old.keys() & new.keys()]
        return Paired(
            tuple(fragment for key, fragment in old.items() if key not in new),
            tuple(fragment for key, fragment in new.items() if key not in old),
            tuple(pair for pair in shared if deletion_key(pair[0].metadata) != deletion_key(pair[1].metadata)),
        )


def delta_between(before: Table, after: Table, columns: Sequence[str]) -> Delta:
    """Where two states of one table may differ in these columns. Nothing but metadata is read."""
    found = paired_fragments(before, after, columns)
    gone, came = [], []
    with translated(f"compare {after.ref.location}"):
        for old, new in found.thinned:
            was, now = deleted_offsets(before, old), deleted_offsets(after, new)
            gone.append(Thinned(old, np.setdiff1d(now, was, assume_unique=True)))
            came.append(Thinned(new, np.setdiff1d(was, now, assume_unique=True)))
    return Delta(
        Side(before, found.lost, tuple(t for t in gone if len(t.offsets))),
        Side(after, found.fresh, tuple(t for t in came if len(t.offsets))),
        _shared_version(before, after, columns) if found.lost or found.fresh else None,
    )


def all_rows(table: Table, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Every row of a state."""
    yield from _scan(table, columns, None, None, late=False)


def rows_with(table: Table, row_ids: Numbers, columns: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """The rows with these row ids, as far as the state has them."""
    for start in range(0, len(row_ids), _TAKE_ROWS):
        yield from table.take(row_ids[start : start + _TAKE_ROWS].tolist(), columns).to_batches()


def _by_content(table: Table, columns: Sequence[str]) -> dict[tuple[Any, ...], Any]:
    """Fragments by what their columns are: a field of a file, which is never written again, or nothing."""
    wanted = set(columns)
    ids = {name: found for name, found in table.field_ids.items() if name in wanted}
    return {_content(fragment, columns, ids): fragment for fragment in table.dataset.get_fragments()}


def _content(fragment: Any, columns: Sequence[str], ids: Mapping[str, frozenset[int]]) -> tuple[Any, ...]:
    held = [(file.path, frozenset(file.fields)) for file in fragment.metadata.files]
    found: list[Any] = []
    for name in columns:
        mine = ids.get(name, frozenset())
        # A later file replaces what an earlier one says of the same field.
        paths = [path for path, fields in held if mine & fields]
        found.append((paths[-1], min(mine)) if paths else None)
    # Fragments whose columns are all empty differ only by their files.
    return tuple(found) if any(found) else tuple(path for path, _ in held)


def _shared_version(before: Table, after: Table, columns: Sequence[str]) -> int | None:
    if not (before.has_stable_row_ids and after.has_stable_row_ids) or before.ref.location != after.ref.location:
        return None
    if _shape(before, columns) != _shape(after, columns):
        return None
    refs = list_branches(before.ref) if before.ref.branch != after.ref.branch else {}
    ours, theirs = _descent(before, refs), _descent(after, refs)
    common = next((branch for branch in ours if branch in theirs), "")
    return None if common == "" else min(ours[common], theirs[common])


def _shape(table: Table, columns: Sequence[str]) -> dict[str, Any]:
    wanted = set(columns)
    return {name: found for name, found in table.field_ids.items() if name in wanted}


def _descent(table: Table, refs: dict[str, BranchRef]) -> dict[str | None, int]:
    """The branches a state comes from, nearest first, each with the last version it has of it."""
    found: dict[str | None, int] = {table.ref.branch: table.version}
    branch = table.ref.branch
    while branch is not None and branch in refs:
        ref = refs[branch]
        branch = None if ref.parent_branch in (None, "main") else ref.parent_branch
        found[branch] = ref.parent_version
    return found


def _rows_at(table: Table, columns: Sequence[str], addresses: Numbers) -> Iterator[pa.RecordBatch]:
    for at in range(0, len(addresses), LOOKUP_BY_FILTER_MAX):
        named = ", ".join(map(str, addresses[at : at + LOOKUP_BY_FILTER_MAX].tolist()))
        yield from _scan(table, columns, None, f"{_ADDRESS} IN ({named})", late=True)


def _rows_of(table: Table, columns: Sequence[str], part: Thinned) -> Iterator[pa.RecordBatch]:
    for batch in _scan(table, [*columns, _ADDRESS], [part.fragment], None, late=False):
        hit = np.isin(batch.column(batch.num_columns - 1).to_numpy(), part.addresses)
        if hit.any():
            yield batch.filter(pa.array(hit)).select(list(columns))


def _scan(
    table: Table, columns: Sequence[str], fragments: list[Any] | None, where: str | None, late: bool
) -> Iterator[pa.RecordBatch]:
    with translated(f"read {table.ref.location}"):
        scanner = table.dataset.scanner(
            list(columns),
            where,
            fragments=fragments,
            batch_size=_BATCH_ROWS,
            batch_size_bytes=_BATCH_BYTES,
            late_materialization=late or None,
            # An index of a branch may point into another branch's files; nothing here needs one.
            use_scalar_index=False,
        )
        yield from scanner.to_reader()
