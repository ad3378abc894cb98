"""NDJSON files of plain records: each member is a column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import pyarrow as pa

from omnigraph.base.errors import BadRequest
from omnigraph.pipeline.infer.csv_table import refuse_repeated
from omnigraph.pipeline.infer.inputs import Input, is_zst
from omnigraph.pipeline.infer.json_columns import JsonColumn
from omnigraph.pipeline.infer.json_lines import Record, read_records
from omnigraph.pipeline.infer.profile import ColumnProfile
from omnigraph.pipeline.infer.texts import id_texts

_COLUMNS_MAX = 2_000


class JsonTable:
    format = "json"

    def __init__(self, given: Input) -> None:
        self.input = given
        if any(is_zst(file) for file in given.files):
            raise BadRequest(f"Spark does not read '{given.given}' without further libraries", "Unpack it, or use .gz.")
        self._members = Members(given.given)

    def profile(self, batches: Iterator[list[Record]]) -> Iterator[int]:
        for records in batches:
            self._members.add(records)
            yield len(records)

    def columns(self) -> tuple[ColumnProfile, ...]:
        return self._members.columns()

    def options(self) -> tuple[tuple[str, str], ...]:
        return ()

    def notes(self) -> tuple[str, ...]:
        return ()

    def batches(self, only: Sequence[str] = ()) -> Iterator[list[Record]]:
        return read_records(self.input.files)

    def id_texts(self, profile: ColumnProfile, batch: list[Record]) -> pa.Array:
        return member_texts(profile, batch)


class Members:
    """The members of records as columns. One that a record lacks is null there."""

    def __init__(self, file: str, *, strict: bool = False) -> None:
        self._file, self._strict = file, strict
        self.rows = 0
        self._columns: dict[str, JsonColumn] = {}

    def add(self, records: Sequence[Record]) -> None:
        for name in dict.fromkeys(name for record in records for name in record):
            if name not in self._columns:
                self._columns[name] = self._begun(name)
        for name, column in self._columns.items():
            column.add([record.get(name) for record in records])
        self.rows += len(records)

    def _begun(self, name: str) -> JsonColumn:
        if len(self._columns) >= _COLUMNS_MAX:
            told = f"'{self._file}' has more than {_COLUMNS_MAX} different members"
            raise BadRequest(told, "Names that are values make no properties; turn them into a list or rows first.")
        if not self._strict:
            refuse_repeated(self._file, [*self._columns, name])
        column = JsonColumn(name, len(self._columns) + 1, strict=self._strict)
        column.add([None] * self.rows)
        return column

    def columns(self) -> tuple[ColumnProfile, ...]:
        return tuple(column.profile() for column in self._columns.values())


def member_texts(profile: ColumnProfile, records: Sequence[Record]) -> pa.Array:
    """A member's values as ids are written, nulls left out."""
    found = (record.get(profile.name) for record in records)
    texts = [value if type(value) is str else str(value) for value in found if value is not None]
    return id_texts(profile, pa.array(texts, pa.string()))
