"""A small answer: its columns lie as they were found, and become a table when one is asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa


class Found:
    """`columns` have the types of the schema, or are lists of what such columns give in Python."""

    __slots__ = ("columns", "num_rows", "schema")

    def __init__(self, schema: pa.Schema, columns: Sequence[pa.Array | list[int]], num_rows: int) -> None:
        self.schema = schema
        self.columns = columns
        self.num_rows = num_rows

    def get_total_buffer_size(self) -> int:
        return sum([column.get_total_buffer_size() for column in self.columns if not isinstance(column, list)])

    @property
    def nbytes(self) -> int:
        return sum([column.nbytes for column in self.columns if not isinstance(column, list)])

    def table(self) -> pa.Table:
        types = self.schema.types
        arrays = [pa.array(c, t) if isinstance(c, list) else c for c, t in zip(self.columns, types, strict=True)]
        return pa.Table.from_arrays(arrays, schema=self.schema)

    def batches(self) -> Iterator[pa.RecordBatch]:
        return iter(self.table().to_batches())
