"""Rules across rows on executors: rows that must meet are dealt to the same bucket, and each bucket is asked by itself.

It is what one process does with more rows than its memory holds; here the buckets are files and others read them.
Holds for every bucket: all rows that agree in the columns of the rule are in it, whoever dealt them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.pipeline.worker.pieces import Piece
from omnigraph.sets.dealing import compact, dealt
from omnigraph.sets.scratch import Relation, Scratch
from omnigraph.settings import Settings
from omnigraph.storage.row_files import RowFile, RowFileWriter, RowFolder, read_row_batches

_ROUND_BYTES = 64 << 20


@dataclass(frozen=True)
class Deal:
    """How a relation is dealt: by which columns, into how many buckets."""

    schema: bytes
    keys: tuple[str, ...]
    buckets: int
    folder: RowFolder

    @property
    def arrow_schema(self) -> pa.Schema:
        return pa.ipc.read_schema(pa.py_buffer(self.schema))


def deal_pieces(group: Sequence[tuple[str, Piece]], deals: Mapping[str, Deal]) -> list[tuple[str, RowFile]]:
    """For each relation that has pieces in the group, a file in which every n-th batch is of one bucket."""
    found: dict[str, list[Piece]] = {}
    for name, piece in group:
        found.setdefault(name, []).append(piece)
    written = [(name, _deal(pieces, deals[name])) for name, pieces in found.items()]
    return [(name, file) for name, file in written if file is not None]


def _deal(pieces: Sequence[Piece], deal: Deal) -> RowFile | None:
    schema = deal.arrow_schema
    out = RowFileWriter(deal.folder, "dealt", schema)
    held: list[list[pa.RecordBatch]] = [[] for _ in range(deal.buckets)]
    size = 0
    for piece in pieces:
        for batch in piece.batches(schema):
            for bucket, part in dealt(batch, deal.keys, deal.buckets):
                held[bucket].append(part)
            size += batch.nbytes
            if size >= _ROUND_BYTES:
                _write_round(out, held, schema)
                size = 0
    if size:
        _write_round(out, held, schema)
    return out.close()


def _write_round(out: RowFileWriter, held: list[list[pa.RecordBatch]], schema: pa.Schema) -> None:
    """One batch for every bucket, empty ones too, so that a reader finds its own by counting."""
    for parts in held:
        whole = pa.Table.from_batches(parts, schema=schema).combine_chunks().to_batches()
        out.append(compact(whole[0]) if whole else _empty(schema), keep_empty=True)
        parts.clear()


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_arrays([pa.array([], field.type) for field in schema], schema=schema)


def read_bucket(files: Sequence[RowFile], bucket: int, deal: Deal) -> pa.Table:
    """The rows of one bucket, from all files."""
    found = [b for file in files for b in read_row_batches(file, bucket, deal.buckets, deal.folder.options)]
    return pa.Table.from_batches(found, schema=deal.arrow_schema)


@dataclass(frozen=True)
class Question:
    """A rule over dealt relations. With `first_max` only a count and the first rows by position are wanted."""

    sql: str
    files: Mapping[str, tuple[RowFile, ...]]
    deals: Mapping[str, Deal]
    settings: Settings = field(repr=False)
    folder: RowFolder
    first_max: int | None = None


@dataclass(frozen=True)
class Told:
    """The answer for some buckets: how many rows, and where they are or the first of them."""

    count: int
    schema: bytes
    file: RowFile | None = None
    first: bytes | None = None


def ask_buckets(group: Sequence[int], question: Question) -> Told:
    kept: pa.Table | None = None
    out: RowFileWriter | None = None
    count, schema = 0, pa.schema([])
    with Scratch(question.settings) as scratch:
        for bucket in group:
            relations = {
                name: Relation.of(read_bucket(files, bucket, question.deals[name]))
                for name, files in question.files.items()
            }
            with scratch.stream(question.sql, relations) as batches:
                for batch in _large(batches):
                    schema, count = batch.schema, count + batch.num_rows
                    if question.first_max is not None:
                        table = pa.Table.from_batches([batch])
                        table = table if kept is None else pa.concat_tables([kept, table])
                        kept = smallest(table, question.first_max)
                        continue
                    out = out or RowFileWriter(question.folder, "answer", batch.schema)
                    out.append(batch)
    packed = schema.serialize().to_pybytes()
    return Told(count, packed, None if out is None else out.close(), None if kept is None else _packed(kept))


def _large(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return (batch for batch in batches if batch.num_rows)


def _packed(table: pa.Table) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def smallest(table: pa.Table, count: int) -> pa.Table:
    """The first rows by position, rows without one last and by their other columns."""
    others = [name for name in table.schema.names if name != "position"]
    order = pc.sort_indices(table, sort_keys=[(name, "ascending") for name in ["position", *others]])
    return table.take(order.slice(0, count))
