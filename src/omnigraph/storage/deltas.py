"""What differs between two states of one table, found by comparing fragments; neither need be older than the other.

Holds at every return: the rows of the one state, without those that are gone, with those that came, are the rows of
the other. A row that was replaced, or only moved, is gone and came.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.storage.deletions import deletion_key
from omnigraph.storage.failures import translated
from omnigraph.storage.tables import Table, has_version

RowIds = npt.NDArray[np.uint64]
ROW_ID = "_rowid"
_CREATED = "_row_created_at_version"
# Each step costs a look at its transaction.
_STEPS_MAX = 16
_FORWARD = frozenset({"Append", "Update", "Delete", "CreateIndex"})
_NO_IDS: RowIds = np.empty(0, np.uint64)


@dataclass(frozen=True)
class Changes:
    """`came` has the columns asked for and the row id; `gone` are row ids, of rows that came and went too."""

    came: pa.Table
    gone: RowIds


def changes_between(old: Table, new: Table, columns: Sequence[str], rows_max: int) -> Changes | None:
    """None if more than `rows_max` rows came or went."""
    before, after = old.fragments_by_files, new.fragments_by_files
    kept = before.keys() & after.keys()
    lost = [fragment for key, fragment in before.items() if key not in kept]
    fresh = [fragment for key, fragment in after.items() if key not in kept]
    # Row counts stand in the metadata, so that a rewritten table is known before anything is read.
    if max(_physical_rows(lost), _physical_rows(fresh)) > rows_max:
        return None
    changed = [key for key in kept if deletion_key(before[key]) != deletion_key(after[key])]
    with translated(f"read {new.ref.location}"):
        came = _scan(new, [*columns, ROW_ID, _CREATED], fresh)
        went = [_deleted(before[key], after[key]) for key in changed]
        if not lost and min(went, default=0) >= 0 and _is_later(old, new):
            gone = _gone_since(old, new, came, sum(went))
        else:
            pairs = [(_row_ids(old, [before[key]]), _row_ids(new, [after[key]])) for key in changed]
            gone = np.concatenate([_row_ids(old, lost), *(_without(was, is_) for was, is_ in pairs)])
            back = np.concatenate([_NO_IDS, *(_without(is_, was) for was, is_ in pairs)])
            if max(len(gone), len(back)) > rows_max:
                return None
            came = pa.concat_tables([came, _taken(new, back, came.schema)])
    return None if max(len(gone), came.num_rows) > rows_max else Changes(came.drop_columns(_CREATED), gone)


def _without(some: RowIds, others: RowIds) -> RowIds:
    return np.setdiff1d(some, others, assume_unique=True)


def _taken(table: Table, row_ids: RowIds, schema: pa.Schema) -> pa.Table:
    """Rows that were deleted in the one state and are there in the other."""
    if not len(row_ids):
        return schema.empty_table()
    columns = [name for name in schema.names if name not in (ROW_ID, _CREATED)]
    found = table.take(row_ids.tolist(), columns)
    for name in (ROW_ID, _CREATED):
        found = found.append_column(name, pa.array(row_ids))
    return found.select(schema.names)


def _is_later(old: Table, new: Table) -> bool:
    """Whether the one state grew out of the other by a few steps, none of which brought back what had been deleted."""
    if old.ref != new.ref or not 0 < new.version - old.version <= _STEPS_MAX:
        return False
    # A branch that was made anew has no version of its forerunner.
    return has_version(old.ref, old.version) and all(
        _is_forward(new, version) for version in range(old.version + 1, new.version + 1)
    )


def _is_forward(table: Table, version: int) -> bool:
    try:
        transaction: Any = table.dataset.read_transaction(version)
    except (OSError, ValueError, TypeError):
        # Collected meanwhile, or a kind that cannot be handed out: the careful way does not ask.
        return False
    return transaction is not None and type(transaction.operation).__name__ in _FORWARD


def _gone_since(old: Table, new: Table, came: pa.Table, deleted: int) -> RowIds:
    """The rows of `old` that `new` has no more, or elsewhere: a row that is replaced moves and keeps its row id."""
    ids, created = (column.to_numpy() if column.num_chunks else _NO_IDS for column in came.columns[-2:])
    moved: RowIds = ids[created <= old.version]
    if len(moved) == deleted:
        return moved
    with new.dataset.delta(compared_against=old.version).get_deleted_row_ids() as reader:
        found = reader.read_all().column(ROW_ID)
    return np.concatenate([moved, found.to_numpy() if found.num_chunks else _NO_IDS])


def _deleted(before: Any, after: Any) -> int:
    """How many more rows of a fragment are deleted after than before."""
    counts = [0 if f.deletion_file is None else int(f.deletion_file.num_deleted_rows) for f in (before, after)]
    return counts[1] - counts[0]


def column_of(table: Table, columns: Sequence[str]) -> pa.Table:
    """Whole columns in stored order: the same order at every call for one version."""
    with translated(f"read {table.ref.location}"):
        return _scan(table, columns, None)


def column_batches(table: Table, column: str) -> Iterator[pa.Array]:
    """The same of one column, piece by piece."""
    with translated(f"read {table.ref.location}"):
        for batch in _scanner(table, [column], None).to_reader():
            yield batch.column(0)


def _physical_rows(fragments: Sequence[Any]) -> int:
    return sum(int(fragment.physical_rows or 0) for fragment in fragments)


def _row_ids(table: Table, fragments: Sequence[Any]) -> RowIds:
    found = _scan(table, [ROW_ID], fragments).column(ROW_ID)
    return found.to_numpy() if found.num_chunks else _NO_IDS


def _scan(table: Table, columns: Sequence[str], fragments: Sequence[Any] | None) -> pa.Table:
    if fragments is not None and not fragments:
        fields = [pa.field(c, pa.uint64()) if c in (ROW_ID, _CREATED) else table.schema.field(c) for c in columns]
        return pa.schema(fields).empty_table()
    return _scanner(table, columns, fragments).to_table()


def _scanner(table: Table, columns: Sequence[str], fragments: Sequence[Any] | None) -> Any:
    wanted = None if fragments is None else {int(fragment.id) for fragment in fragments}
    return table.dataset.scanner(
        list(columns),
        fragments=None if wanted is None else [f for f in table.dataset.get_fragments() if f.fragment_id in wanted],
        scan_in_order=True,
        use_scalar_index=False,
    )
