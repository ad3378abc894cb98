"""A table as a SQL engine scans it: only the columns it asks for, and only the rows where Lance decides alike.

Holds for every scan: the rows are those for which the filter is true by Arrow's rules. Lance is asked to filter only by
columns whose comparisons mean the same to both; its indexes take the two zeros of a float for different numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.dataset as pads

from omnigraph.storage.failures import translated
from omnigraph.storage.tables import Table

_ALIKE: tuple[Callable[[pa.DataType], bool], ...] = (
    pa.types.is_string,
    pa.types.is_boolean,
    pa.types.is_int32,
    pa.types.is_int64,
    pa.types.is_date32,
    pa.types.is_timestamp,
)


class SqlSource(pads.Dataset):  # type: ignore[misc]  # DuckDB pushes columns and filters only into a Dataset
    """A table under the columns of `schema`; one that is not stored yet reads as null."""

    def __init__(self, table: Table, schema: pa.Schema) -> None:
        self._stored = table
        self._shown = schema

    @property
    def schema(self) -> pa.Schema:
        return self._shown

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None) -> Scan:
        return Scan(self._stored, self._shown, list(columns or self._shown.names), filter)


class Scan:
    """One reading of a table."""

    def __init__(self, table: Table, schema: pa.Schema, columns: list[str], where: Any) -> None:
        self._table = table
        self._schema = schema
        self._columns = columns
        self._where = where

    def to_reader(self) -> pa.RecordBatchReader:
        with translated(f"read {self._table.ref.location}"):
            if self._where is None:
                return self._read(self._columns)
            used = _used(self._where, self._schema)
            return self._filtered_by_lance(used) or self._filtered_here(used)

    def _filtered_by_lance(self, used: list[str]) -> pa.RecordBatchReader | None:
        """None where Lance does not know the filter, or may understand it otherwise."""
        stored = set(self._table.schema.names)
        alike = all(any(fits(self._schema.field(name).type) for fits in _ALIKE) for name in used)
        if not alike or not stored.issuperset([*used, *self._columns]):
            return None
        try:
            return self._table.dataset.scanner(columns=self._columns, filter=self._where).to_reader()
        except (ValueError, NotImplementedError):
            return None

    def _filtered_here(self, used: list[str]) -> pa.RecordBatchReader:
        rows = self._read(list(dict.fromkeys([*self._columns, *used])))
        scanner = pads.Scanner.from_batches(rows, columns=self._columns, filter=self._where)
        return scanner.to_reader()

    def _read(self, columns: list[str]) -> pa.RecordBatchReader:
        stored = [name for name in columns if name in self._table.schema.names]
        if len(stored) == len(columns):
            return self._table.batches(columns)
        schema = pa.schema([self._schema.field(name) for name in columns])
        return pa.RecordBatchReader.from_batches(schema, _with_nulls(self._table.batches(stored or ["id"]), schema))


def _with_nulls(batches: Iterator[pa.RecordBatch], schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        arrays = [
            batch.column(field.name) if field.name in batch.schema.names else pa.nulls(batch.num_rows, field.type)
            for field in schema
        ]
        yield pa.RecordBatch.from_arrays(arrays, schema=schema)


def _used(where: Any, schema: pa.Schema) -> list[str]:
    """The columns a filter reads: those without which it means nothing."""
    return [name for place, name in enumerate(schema.names) if not _is_known(where, schema.remove(place))]


def _is_known(where: Any, schema: pa.Schema) -> bool:
    try:
        pads.Scanner.from_batches(iter(()), schema=schema, filter=where)
    except (ValueError, KeyError):
        return False
    return True
