"""A snapshot as NDJSON that a load accepts: tables by key, rows by id, in bounded memory.

Holds for every export: the same snapshot gives the same bytes, whatever order its rows are stored in.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import NotFound, Unavailable
from omnigraph.catalog.catalog import Catalog, TableType
from omnigraph.engine.view import View
from omnigraph.lang.diagnostics import did_you_mean
from omnigraph.records.encode import export_lines
from omnigraph.sets.scratch import Relation, Scratch
from omnigraph.settings import Settings
from omnigraph.storage.failures import Unreadable
from omnigraph.storage.tables import Table

# Up to here ids are sorted in memory.
_FEW_ROWS = 100_000
_FIRST_ROWS = 64
_CHUNK_BYTES = 4 << 20
_PLACES = pa.schema([pa.field("id", pa.string()), pa.field("row_id", pa.uint64())])
_BY_ID = "SELECT row_id FROM places ORDER BY id"


def export(view: View, types: Sequence[str], settings: Settings) -> Iterator[bytes]:
    """Lines in pieces of a few MiB; each ends with a newline. No types means all."""
    chosen = _chosen(view.catalog, types)
    return _pieces(view, chosen, settings)


def _chosen(catalog: Catalog, types: Sequence[str]) -> list[TableType]:
    known = {type_.name for type_ in catalog.tables()}
    for name in types:
        if name not in known:
            hint = did_you_mean(name, known) or "See omnigraph schema show."
            raise NotFound(f"unknown export type '{name}'", hint)
    return [type_ for type_ in catalog.tables() if not types or type_.name in types]


def _pieces(view: View, types: Sequence[TableType], settings: Settings) -> Iterator[bytes]:
    try:
        with Scratch(settings) as scratch:
            for type_ in types:
                entry = view.entries.get(type_.table_key)
                if entry is not None and entry.row_count:
                    for rows in _rows_by_id(view.table(type_.table_key), entry.row_count, type_, scratch, settings):
                        yield export_lines(type_, rows)
    except (Unavailable, Unreadable):
        view.refuse_reclaimed()
        raise


def _rows_by_id(table: Table, count: int, type_: TableType, scratch: Scratch, settings: Settings) -> Iterator[pa.Table]:
    """The rows fetched in the order of their ids, as many at once as make a piece."""
    columns, size = type_.arrow_schema.names, _FIRST_ROWS
    waiting: list[int] = []
    for places in _places_by_id(table, count, scratch):
        waiting += places.tolist()
        while len(waiting) >= size:
            rows = table.take(waiting[:size], columns)
            del waiting[:size]
            yield rows
            size = _next_size(rows, settings.load_batch_rows)
    if waiting:
        for start in range(0, len(waiting), size):
            yield table.take(waiting[start : start + size], columns)


def _next_size(rows: pa.Table, most: int) -> int:
    bytes_each = max(int(rows.nbytes) // max(int(rows.num_rows), 1), 1)
    return max(1, min(most, _CHUNK_BYTES // bytes_each))


def _places_by_id(table: Table, count: int, scratch: Scratch) -> Iterator[np.ndarray[tuple[int], np.dtype[np.uint64]]]:
    if count <= _FEW_ROWS:
        found = table.read(["id", "_rowid"]).sort_by("id")
        yield found.column("_rowid").to_numpy()
        return
    with scratch.stream(_BY_ID, {"places": Relation(_PLACES, lambda: _places(table), count)}) as batches:
        for batch in batches:
            yield batch.column("row_id").to_numpy()


def _places(table: Table) -> Iterator[pa.RecordBatch]:
    for batch in table.batches(["id", "_rowid"]):
        yield pa.RecordBatch.from_arrays(batch.columns, schema=_PLACES)
