"""Parquet files, a batch of rows at a time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa
import pyarrow.parquet as pq

from omnigraph.base.errors import BadRequest
from omnigraph.pipeline.infer.arrow_columns import column_of, plain_type, refuse_unreadable
from omnigraph.pipeline.infer.csv_table import refuse_repeated, unequal
from omnigraph.pipeline.infer.inputs import Input
from omnigraph.pipeline.infer.profile import ColumnProfile
from omnigraph.pipeline.infer.texts import id_texts

_BATCH_ROWS = 65_536


class ParquetTable:
    format = "parquet"

    def __init__(self, given: Input) -> None:
        self.input = given
        first = _schema(given.files[0])
        self.names: list[str] = list(first.names)
        for file in given.files[1:]:
            _check_equal(given.files[0], first, file, _schema(file))
        self._columns = [column_of(field.name, k + 1, field.type) for k, field in enumerate(first)]

    def profile(self, batches: Iterator[pa.RecordBatch]) -> Iterator[int]:
        for batch in batches:
            for column, name in zip(self._columns, self.names, strict=True):
                column.add(_plain(batch.column(name)))
            yield batch.num_rows

    def columns(self) -> tuple[ColumnProfile, ...]:
        # Spark gives texts for texts only; other columns have their type already.
        return tuple(column.profile() for column in self._columns)

    def options(self) -> tuple[tuple[str, str], ...]:
        return ()

    def notes(self) -> tuple[str, ...]:
        return ()

    def batches(self, only: Sequence[str] = ()) -> Iterator[pa.RecordBatch]:
        for file in self.input.files:
            try:
                with _opened(file) as opened:
                    yield from opened.iter_batches(_BATCH_ROWS, columns=list(only) or None, use_threads=False)
            except (pa.ArrowException, OSError) as error:
                raise _unreadable(file, error) from None

    def id_texts(self, profile: ColumnProfile, batch: pa.RecordBatch) -> pa.Array:
        return id_texts(profile, _plain(batch.column(profile.name)))


def _plain(values: pa.Array) -> pa.Array:
    wanted = plain_type(values.type)
    return values if values.type == wanted else values.cast(wanted)


def _opened(file: str) -> pq.ParquetFile:
    return pq.ParquetFile(file, coerce_int96_timestamp_unit="us", memory_map=False)


def _schema(file: str) -> pa.Schema:
    try:
        with _opened(file) as opened:
            schema = opened.schema_arrow
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(file, error) from None
    if not len(schema):
        raise BadRequest(f"'{file}' has no columns", "Give files with at least one column.")
    refuse_repeated(file, schema.names)
    refuse_unreadable(file, schema)
    return schema


def _check_equal(first: str, wanted: pa.Schema, file: str, schema: pa.Schema) -> None:
    if sorted(wanted.names) != sorted(schema.names):
        raise unequal(first, file, wanted.names, schema.names)
    for name in wanted.names:
        one, other = plain_type(wanted.field(name).type), plain_type(schema.field(name).type)
        if one != other:
            raise BadRequest(
                f"column '{name}' is {one} in '{first}' and {other} in '{file}'",
                "A folder is one table: its files need equal columns.",
            )


def _unreadable(file: str, error: Exception) -> BadRequest:
    if isinstance(error, PermissionError):
        return BadRequest(f"'{file}' cannot be read: permission denied", "Allow this user to read it.")
    return BadRequest(f"'{file}' is no whole Parquet file", "Check that it was written to its end.")
