"""What differs between two states of one table, found by comparing fragments; neither need be older than the other.

Holds at every return: the rows of the one state, without those that are gone, with those that came, are the rows of
the other. A row that was replaced, or only moved, is gone and came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.storage.failures import translated
from omnigraph.storage.tables import Table

RowIds = npt.NDArray[np.uint64]
ROW_ID = "_rowid"


@dataclass(frozen=True)
class Changes:
    """`came` has the columns asked for and the row id; `gone` are row ids."""

    came: pa.Table
    gone: RowIds


def changes_between(old: Table, new: Table, columns: Sequence[str], rows_max: int) -> Changes | None:
    """None if more than `rows_max` rows came or went."""
    before, after = _fragments(old), _fragments(new)
    kept = before.keys() & after.keys()
    changed = [key for key in kept if _deletions(before[key]) != _deletions(after[key])]
    lost = [fragment for key, fragment in before.items() if key not in kept]
    fresh = [fragment for key, fragment in after.items() if key not in kept]
    # Row counts stand in the metadata, so that a rewritten table is known before anything is read.
    if max(_physical_rows(lost), _physical_rows(fresh)) > rows_max:
        return None
    with translated(f"read {new.ref.location}"):
        came = _scan(new, [*columns, ROW_ID], fresh)
        went = [_row_ids(old, lost)]
        for key in changed:
            went.append(np.setdiff1d(_row_ids(old, [before[key]]), _row_ids(new, [after[key]]), assume_unique=True))
    gone = np.concatenate(went)
    return None if max(len(gone), came.num_rows) > rows_max else Changes(came, gone)


def column_of(table: Table, columns: Sequence[str]) -> pa.Table:
    """Whole columns in stored order: the same order at every call for one version."""
    with translated(f"read {table.ref.location}"):
        return _scan(table, columns, None)


def _fragments(table: Table) -> dict[tuple[str, ...], Any]:
    """By their data files, which are never written again under the same name."""
    return {tuple(file.path for file in f.metadata.files): f for f in table.dataset.get_fragments()}


def _deletions(fragment: Any) -> str:
    return repr(fragment.metadata.deletion_file)


def _physical_rows(fragments: Sequence[Any]) -> int:
    return sum(int(fragment.metadata.physical_rows or 0) for fragment in fragments)


def _row_ids(table: Table, fragments: Sequence[Any]) -> RowIds:
    found = _scan(table, [ROW_ID], fragments).column(ROW_ID)
    return found.to_numpy() if found.num_chunks else np.empty(0, np.uint64)


def _scan(table: Table, columns: Sequence[str], fragments: Sequence[Any] | None) -> pa.Table:
    if fragments is not None and not fragments:
        fields = [pa.field(c, pa.uint64()) if c == ROW_ID else table.schema.field(c) for c in columns]
        return pa.schema(fields).empty_table()
    scanner = table.dataset.scanner(
        list(columns),
        fragments=None if fragments is None else list(fragments),
        scan_in_order=True,
        use_scalar_index=False,
    )
    return scanner.to_table()
