"""Staged changes of a table's columns.

Holds at every return:
  1. No table moved, and no stored row was read or rewritten: a literal goes into new files beside the old ones.
  2. Rows keep their row ids and the versions that made and changed them, for the columns changed and no row did.
  3. All renames, drops and additions of one table are one version; literals are a second one, for Lance would
     otherwise say that every row was changed; indexes that go by the old name of a column are dropped by a last one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any
from uuid import uuid4

import lance
import pyarrow as pa
from lance.file import LanceFileWriter
from lance.fragment import DataFile

from omnigraph.storage.columns import Columns
from omnigraph.storage.failures import translated
from omnigraph.storage.stage import StagedWrite, Stamp
from omnigraph.storage.tables import Table

_OP = lance.LanceOperation
_BATCH_ROWS = 1 << 16
_FILES_AT_ONCE = 16


def stage_columns(
    table: Table,
    wanted: pa.Schema,
    continues: Mapping[str, str],
    literals: Mapping[str, pa.Scalar],
    stamp: Stamp,
) -> tuple[StagedWrite, ...]:
    """Give the table the columns of `wanted`: one staged write for each version it moves by.

    `continues`: the stored column each one goes on with; the others are new, null in every row, or the literal.
    """
    old = Columns.of(table.dataset.lance_schema)
    fragments = table.fragments()
    new = old.reshaped(wanted, continues, (n for f in fragments for file in f.files for n in file.fields))
    kept = [_without_dropped(fragment, new.numbers) for fragment in fragments]
    if len(continues) == len(wanted):
        shape: Any = _OP.Project(new.to_lance())
    else:
        shape = _OP.Merge(kept, new.to_lance())
    steps = _Steps(table, stamp)
    staged = [steps.staged(shape, ())]
    if literals and kept:
        with translated(f"write {stamp.table_key}"):
            filled, files = _filled(table, kept, {new.number_of(name): value for name, value in literals.items()})
        staged.append(steps.staged(_in_place(filled), files))
    gone = _indexes_of_renamed(table, {old for new, old in continues.items() if new != old})
    if gone:
        staged.append(steps.staged(_OP.CreateIndex([], gone), ()))
    return tuple(staged)


def stage_note(table: Table, notes: Mapping[str, str], stamp: Stamp) -> StagedWrite:
    """A version that differs from the one before by its number and by what it says of the table."""
    noted = _OP.UpdateConfig(table_metadata_updates=_OP.UpdateMap(dict(notes)))
    return _Steps(table, stamp).staged(noted, ())


class _Steps:
    """Staged writes of one table, each for the version that the one before makes."""

    def __init__(self, table: Table, stamp: Stamp) -> None:
        self._table = table
        self._stamp = stamp
        self._count = 0
        self._rows = table.count_rows()

    def staged(self, operation: Any, files: tuple[str, ...]) -> StagedWrite:
        number, self._count = self._count, self._count + 1
        stamp = replace(self._stamp, step=str(number))
        read_version = self._table.version + number
        transaction = lance.Transaction(read_version, operation, transaction_properties=stamp.properties())
        return StagedWrite(
            self._table.ref,
            stamp,
            read_version,
            transaction.uuid,
            self._rows,
            table=None if number else self._table,
            transaction=transaction,
            files=files,
        )


def _without_dropped(fragment: Any, numbers: set[int]) -> Any:
    """The fragment without data files that hold nothing but dropped columns; one always stays, for it has the rows."""
    files = [file for file in fragment.files if numbers.intersection(file.fields)]
    return replace(fragment, files=files) if files else fragment


def _filled(table: Table, fragments: list[Any], literals: Mapping[int, pa.Scalar]) -> tuple[list[Any], tuple[str, ...]]:
    """The fragments with one more data file each, in which every row has the literals; and the names of the files."""
    # A file is small and there may be thousands: on an object store each is hardly more than the wait for an answer.
    with ThreadPoolExecutor(min(len(fragments), _FILES_AT_ONCE), "omnigraph-literals") as threads:
        added = list(threads.map(lambda fragment: _literal_file(table, fragment, literals), fragments))
    filled = [replace(fragment, files=[*fragment.files, file]) for fragment, file in zip(fragments, added, strict=True)]
    return filled, tuple(f"data/{file.path}" for file in added)


def _literal_file(table: Table, fragment: Any, literals: Mapping[int, pa.Scalar]) -> DataFile:
    """A file of one fragment, written; nothing refers to it yet."""
    schema = pa.schema([pa.field(str(number), value.type) for number, value in literals.items()])
    name = f"{uuid4().hex}.lance"
    path, version = f"{table.ref.uri}/data/{name}", table.dataset.data_storage_version
    with LanceFileWriter(path, schema, version=version, storage_options=table.ref.options) as writer:
        # Deleted rows have a place in the other files too, so they have one in this.
        for rows in _batch_sizes(int(fragment.physical_rows)):
            writer.write_batch(pa.record_batch([pa.repeat(v, rows) for v in literals.values()], schema=schema))
    like = fragment.files[0]
    return DataFile(
        name,
        list(literals),
        list(range(len(literals))),
        like.file_major_version,
        like.file_minor_version,
        file_size_bytes=None,
    )


def _batch_sizes(rows: int) -> Iterator[int]:
    while rows > 0:
        yield min(rows, _BATCH_ROWS)
        rows -= _BATCH_ROWS


def _in_place(fragments: list[Any]) -> Any:
    """The same fragments with other files. It is said as a move of rows, of which none moves: so none was changed."""
    return _OP.Update(
        removed_fragment_ids=[],
        updated_fragments=fragments,
        new_fragments=[],
        fields_modified=[],
        fields_for_preserving_frag_bitmap=[],
        update_mode="rewrite_rows",
    )


def _indexes_of_renamed(table: Table, renamed: set[str]) -> list[Any]:
    """Their names are made of the column's, and would be taken for those of another column that gets it."""
    nothing: Any = set()
    return [
        lance.Index(segment.uuid, index.name, [], 0, nothing, 0)
        for index in table.described_indices
        if renamed.intersection(index.field_names)
        for segment in index.segments
    ]
