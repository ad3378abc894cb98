"""Stored columns under the names a schema gives them today.

Holds for every Shape:
  1. A declared column is the stored one with the same property id, or the one of its name if that has no id.
  2. A declared column that is not stored is null in every row; a stored one that is not declared is not there.
  3. Filters mean what they would mean if the columns were stored as they are declared. Columns in them are quoted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from types import SimpleNamespace
from typing import Any

import pyarrow as pa

from omnigraph.base.columns import PROPERTY_ID

_ID = PROPERTY_ID.encode()
# A text, which may hold anything, or a quoted column.
_QUOTED = re.compile(r"'(?:[^']|'')*'|`(?P<column>[^`]*)`")
_NULLS: dict[pa.DataType, str] = {
    pa.string(): "Utf8",
    pa.bool_(): "Boolean",
    pa.int32(): "Int32",
    pa.int64(): "Int64",
    pa.uint32(): "UInt32",
    pa.uint64(): "UInt64",
    pa.float32(): "Float32",
    pa.float64(): "Float64",
    pa.date32(): "Date32",
    pa.timestamp("ms", tz="UTC"): 'Timestamp(Millisecond, Some("UTC"))',
    pa.large_binary(): "LargeBinary",
}


@dataclass(frozen=True)
class Shape:
    """The columns a table shows, and the stored one of each; None where nothing is stored."""

    schema: pa.Schema
    stored: tuple[str | None, ...]
    literals: Mapping[str, pa.Scalar] = field(default_factory=dict)
    """What columns that are not stored hold in every row instead of null; filters do not know of it."""

    @cached_property
    def by_name(self) -> dict[str, str | None]:
        return dict(zip(self.schema.names, self.stored, strict=True))

    def stored_name(self, column: str) -> str | None:
        """The stored column that is shown under a name; columns that are no property keep theirs."""
        return self.by_name.get(column, column)

    def filter(self, where: str | None) -> str | None:
        """The filter as the stored table takes it."""
        return None if where is None else _QUOTED.sub(self._renamed, where)

    def _renamed(self, found: re.Match[str]) -> str:
        name = found["column"]
        if name is None or name not in self.by_name:
            return found[0]
        stored = self.by_name[name]
        return f"`{stored}`" if stored is not None else _null(self.schema.field(name).type)

    def to_read(self, columns: Sequence[str]) -> list[str]:
        """The stored columns from which these are made."""
        found = [name for column in columns if (name := self.stored_name(column)) is not None]
        return found if found or not columns else ["id"]

    def shown(self, batch: pa.RecordBatch, columns: Sequence[str]) -> pa.RecordBatch:
        """What was read, under the names of today."""
        arrays, fields = [], []
        for column in columns:
            stored = self.stored_name(column)
            if stored is not None:
                arrays.append(batch.column(stored))
            elif column in self.literals:
                arrays.append(pa.repeat(self.literals[column], batch.num_rows))
            else:
                arrays.append(pa.nulls(batch.num_rows, self.schema.field(column).type))
            fields.append(self.schema.field(column) if column in self.by_name else batch.schema.field(stored))
        return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))

    def fields(self, columns: Sequence[str], read: pa.Schema) -> pa.Schema:
        """The columns that `shown` gives for what is read with `read`."""
        return self.shown(_nothing(read), columns).schema


def _nothing(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def shape_of(stored: pa.Schema, declared: pa.Schema, literals: Mapping[str, pa.Scalar] | None = None) -> Shape | None:
    """How a stored table shows the declared columns; None where they are its own, in whatever order."""
    if stored.equals(declared, check_metadata=True):
        return None
    by_id = {_id_of(field): field.name for field in stored if _id_of(field) is not None}
    names = tuple(_match(field, stored, by_id) for field in declared)
    if len(stored) == len(declared) and all(name == f.name for name, f in zip(names, declared, strict=True)):
        return None
    fields = [f if name is not None else f.with_nullable(True) for name, f in zip(names, declared, strict=True)]
    return Shape(pa.schema(fields), names, literals or {})


def _match(field: pa.Field, stored: pa.Schema, by_id: Mapping[bytes | None, str]) -> str | None:
    wanted = _id_of(field)
    if wanted is not None and wanted in by_id:
        return by_id[wanted]
    place = stored.get_field_index(field.name)
    if place < 0 or (wanted is not None and _id_of(stored.field(place)) is not None):
        return None
    return str(field.name)


def _id_of(field: pa.Field) -> bytes | None:
    found = field.metadata
    return None if found is None else found.get(_ID)


def _null(type_: pa.DataType) -> str:
    named = _NULLS.get(type_)
    return "NULL" if named is None else f"arrow_cast(NULL, '{named}')"


class ShapedDataset:
    """A Lance dataset that is read by the columns of a shape. It cannot be written to."""

    def __init__(self, dataset: Any, shape: Shape) -> None:
        self.stored = dataset
        self.shape = shape

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stored, name)

    @property
    def schema(self) -> pa.Schema:
        return self.shape.schema

    def count_rows(self, filter: str | None = None) -> int:
        return int(self.stored.count_rows(filter=self.shape.filter(filter)))

    def to_table(self, columns: Sequence[str] | None = None, filter: str | None = None) -> pa.Table:
        return self.scanner(columns, filter).to_table()

    def _take_rows(self, row_ids: list[int], columns: Sequence[str]) -> pa.Table:
        found = self.stored._take_rows(row_ids, columns=list(dict.fromkeys(self.shape.to_read(columns))))
        return _shown_table(self.shape, found, columns)

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **more: Any) -> ShapedScan:
        if filter is not None and not isinstance(filter, str):
            # As Lance says of a condition it cannot take; the asker then filters what it reads.
            raise ValueError("a shaped table is filtered by text")
        wanted = self.shape.schema.names if columns is None else list(columns)
        read = list(dict.fromkeys(self.shape.to_read(wanted)))
        if more.get("nearest") is not None:
            more["nearest"] = {**more["nearest"], "column": self.shape.stored_name(more["nearest"]["column"])}
        return ShapedScan(self.stored.scanner(read, self.shape.filter(filter), **more), self.shape, wanted)

    def describe_indices(self) -> list[Any]:
        """The indexes of columns that are shown, under their names."""
        named = {stored: shown for shown, stored in self.shape.by_name.items() if stored is not None}
        return [
            SimpleNamespace(
                name=found.name,
                index_type=found.index_type,
                field_names=[named[name] for name in found.field_names],
                details=found.details,
                segments=found.segments,
            )
            for found in self.stored.describe_indices()
            if all(name in named for name in found.field_names)
        ]


class ShapedScan:
    """One reading of a shaped dataset."""

    def __init__(self, scanner: Any, shape: Shape, columns: Sequence[str]) -> None:
        self._scanner = scanner
        self._shape = shape
        self._columns = columns

    def count_rows(self) -> int:
        return int(self._scanner.count_rows())

    def to_table(self) -> pa.Table:
        return _shown_table(self._shape, self._scanner.to_table(), self._columns)

    def to_reader(self) -> pa.RecordBatchReader:
        read = self._scanner.to_reader()
        schema = self._shape.fields(self._columns, read.schema)
        return pa.RecordBatchReader.from_batches(schema, self._batches(read))

    def _batches(self, read: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        for batch in read:
            yield self._shape.shown(batch, self._columns)


def _shown_table(shape: Shape, found: pa.Table, columns: Sequence[str]) -> pa.Table:
    batches = [shape.shown(batch, columns) for batch in found.to_batches()]
    return pa.Table.from_batches(batches, schema=shape.fields(columns, found.schema))


def shaped(dataset: Any, shape: Shape | None) -> Any:
    """The dataset as the shape shows it."""
    return dataset if shape is None else ShapedDataset(dataset, shape)


class EmptyDataset:
    """What a table is before it is made: the columns it will have, and nothing in them."""

    version = 0
    has_stable_row_ids = True
    stats = SimpleNamespace(data_stats=lambda: SimpleNamespace(fields=[]))

    def __init__(self, schema: pa.Schema) -> None:
        self.schema = schema
        self.lance_schema = SimpleNamespace(fields=list[Any])

    def get_fragments(self) -> list[Any]:
        return []

    def describe_indices(self) -> list[Any]:
        return []

    def count_rows(self, filter: Any = None) -> int:
        return 0

    def to_table(self, columns: Sequence[str] | None = None, filter: Any = None) -> pa.Table:
        return self.scanner(columns).to_table()

    def _take_rows(self, row_ids: list[int], columns: Sequence[str]) -> pa.Table:
        return self.scanner(columns).to_table()

    def scanner(self, columns: Sequence[str] | None = None, filter: Any = None, **more: Any) -> EmptyScan:
        names = self.schema.names if columns is None else columns
        # What Lance knows of a row besides its columns are numbers.
        fields = [self.schema.field(n) if n in self.schema.names else pa.field(n, pa.uint64()) for n in names]
        return EmptyScan(pa.schema(fields))


class EmptyScan:
    """One reading of what is not there."""

    def __init__(self, schema: pa.Schema) -> None:
        self._schema = schema

    def count_rows(self) -> int:
        return 0

    def to_table(self) -> pa.Table:
        return self._schema.empty_table()

    def to_reader(self) -> pa.RecordBatchReader:
        return pa.RecordBatchReader.from_batches(self._schema, [])
