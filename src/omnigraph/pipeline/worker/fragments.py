"""Writes one Spark partition as Lance fragments that nothing refers to yet.

Holds for every partition:
  1. It answers one row: what was written, or why its rows were refused; never both.
  2. It makes no version of any table, so a retried or twin task can only leave unused files behind.
"""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.base.errors import InternalError, KeyConflict, OmniError
from omnigraph.pipeline.worker.conform import conform
from omnigraph.storage.fragments import fragment_row_count, stored_ids, write_fragment_messages

# The answer of one partition, in Spark's words and in Arrow's.
ANSWER_COLUMNS = "table_key string, fragments array<string>, rows bigint, id_hash_sum bigint, refusal binary"
# A column that may come with the rows, is summed (modulo 2**64) and not stored: it says which ids were written.
ID_HASH = "__id_hash"
_ANSWER_SCHEMA = pa.schema(
    [
        ("table_key", pa.string()),
        ("fragments", pa.list_(pa.string())),
        ("rows", pa.int64()),
        ("id_hash_sum", pa.int64()),
        ("refusal", pa.binary()),
    ]
)


@dataclass(frozen=True)
class FragmentTarget:
    """The table, at one version, that fragments are written for.

    A table on a branch is named by its `tree/` path; version None means the newest one.
    """

    table_key: str
    dataset_uri: str
    version: int | None
    schema: pa.Schema
    storage_options: Mapping[str, str] | None = field(default=None, repr=False)
    has_rows: bool = True

    def __reduce__(self) -> tuple[Any, ...]:
        options = None if self.storage_options is None else dict(self.storage_options)
        return _rebuild, (
            self.table_key,
            self.dataset_uri,
            self.version,
            self.schema.serialize().to_pybytes(),
            options,
            self.has_rows,
        )


def _rebuild(
    table_key: str, uri: str, version: int | None, schema: bytes, options: dict[str, str] | None, has_rows: bool
) -> FragmentTarget:
    return FragmentTarget(table_key, uri, version, pa.ipc.read_schema(pa.py_buffer(schema)), options, has_rows)


class _Conformed:
    """The partition's rows in the table's types, counted, with the refusal that ended them kept.

    Lance pulls the rows through a C stream, which would turn our error into a bare text.
    """

    def __init__(self, batches: Iterator[pa.RecordBatch], target: FragmentTarget) -> None:
        self.rows = 0
        self.id_hash_sum = np.int64(0)
        self.refusal: OmniError | None = None
        self._batches = batches
        self._target = target

    def __iter__(self) -> Iterator[pa.RecordBatch]:
        for batch in self._batches:
            if batch.num_rows == 0:
                continue
            try:
                conformed = conform(self._without_hash(batch), self._target.schema, self._target.table_key)
                self._refuse_stored(conformed.column("id").to_pylist())
            except OmniError as error:
                self.refusal = error
                raise
            self.rows += batch.num_rows
            yield conformed

    def _refuse_stored(self, ids: list[str]) -> None:
        """An insert is strict: an id the table has at this version is refused where it is met."""
        target = self._target
        if not target.has_rows:
            return
        options = None if target.storage_options is None else dict(target.storage_options)
        stored = stored_ids(target.dataset_uri, target.version, ids, options)
        if stored:
            raise KeyConflict(table_key=target.table_key, ids=tuple(stored[:5]), count=len(stored))

    def _without_hash(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        if ID_HASH not in batch.schema.names:
            return batch
        sums = np.append(batch.column(ID_HASH).to_numpy(zero_copy_only=False), self.id_hash_sum)
        self.id_hash_sum = sums.sum(dtype=np.int64)  # an array's sum wraps around without a warning
        return batch.drop_columns([ID_HASH])


def write_partition(batches: Iterator[pa.RecordBatch], target: FragmentTarget) -> Iterator[pa.RecordBatch]:
    """One row for the partition: its fragments, or its refusal. For `DataFrame.mapInArrow`."""
    conformed = _Conformed(batches, target)
    try:
        messages = _write(conformed, target)
    except OmniError as error:
        yield _answer(target, refusal=pickle.dumps(_without_cause(conformed.refusal or error)))
        return
    yield _answer(target, messages, conformed.rows, int(conformed.id_hash_sum))


def _write(conformed: _Conformed, target: FragmentTarget) -> list[str]:
    rows = iter(conformed)
    first = next(rows, None)
    if first is None:
        return []
    reader = pa.RecordBatchReader.from_batches(target.schema, chain([first], rows))
    options = None if target.storage_options is None else dict(target.storage_options)
    messages: list[str] = write_fragment_messages(target.dataset_uri, target.version, reader, options)
    written = fragment_row_count(messages)
    if written != conformed.rows:
        raise InternalError(f"{target.table_key}: {conformed.rows} rows were given, {written} were written")
    return messages


def _answer(
    target: FragmentTarget,
    messages: list[str] | None = None,
    rows: int = 0,
    id_hash_sum: int = 0,
    refusal: bytes | None = None,
) -> pa.RecordBatch:
    answer = {
        "table_key": target.table_key,
        "fragments": messages or [],
        "rows": rows,
        "id_hash_sum": id_hash_sum,
        "refusal": refusal,
    }
    return pa.RecordBatch.from_pylist([answer], schema=_ANSWER_SCHEMA)


def _without_cause(error: OmniError) -> OmniError:
    error.__cause__ = None
    return error


def refusal_of(packed: bytes | None) -> OmniError | None:
    """The error a partition answered with, as it was raised there."""
    if packed is None:
        return None
    error = pickle.loads(packed)
    return error if isinstance(error, OmniError) else InternalError("a Spark worker answered with an unknown error")
