"""Fragments written away from the driver: files beside the table that no version mentions.

Holds at every return:
  1. No version of the table was made; whoever holds the messages may commit them, or nobody ever will.
  2. The files lie in the data directory of the branch whose `tree/` path was given.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import lance
import numpy as np
import pyarrow as pa
from lance.fragment import FragmentMetadata, RowIdSequence, write_fragments

from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.shapes import Shape, shaped

Numbers: TypeAlias = "np.ndarray[Any, Any]"
_READ_ROWS = 65_536
_ROWS_PER_FILE_MAX = 1 << 20
_BYTES_PER_FILE_MAX = 8 << 30


def write_fragment_messages(
    dataset_uri: str,
    version: int | None,
    rows: pa.RecordBatchReader | pa.Table,
    storage_options: dict[str, str] | None,
    *,
    replaces_all: bool = False,
    row_ids: Numbers | None = None,
) -> list[str]:
    """Write the rows beside the table as it is at `version`; one JSON text per fragment, in the rows' order.

    `row_ids`: the stable ids of the stored rows that the first rows take the place of.
    """
    with translated(f"stage fragments in {dataset_uri}"):
        # The handle, not the uri: only it knows the branch's own data directory and the file format in use.
        dataset = _opened(dataset_uri, version, storage_options)
        written: Any = write_fragments(
            rows,
            dataset,
            mode="overwrite" if replaces_all else "append",
            max_rows_per_file=_ROWS_PER_FILE_MAX,
            max_rows_per_group=None,
            max_bytes_per_file=_BYTES_PER_FILE_MAX,
            storage_options=storage_options,
            return_transaction=False,
        )
        fragments = list(written)
        if row_ids is not None:
            continue_rows(fragments, [row_ids])
        return [json.dumps(fragment.to_json()) for fragment in fragments]


def continue_rows(fragments: list[Any], row_ids: Iterable[Numbers]) -> None:
    """Give the leading rows of the fragments the ids of the rows they replace."""
    parts, left = iter(row_ids), np.array([], np.uint64)
    for fragment in fragments:
        mine = [left]
        while sum(map(len, mine)) < fragment.physical_rows and (part := next(parts, None)) is not None:
            mine.append(part)
        whole = np.concatenate(mine)
        taken, left = whole[: fragment.physical_rows], whole[fragment.physical_rows :]
        if len(taken):
            fragment.row_id_meta = RowIdSequence(taken).to_inline_metadata()


@dataclass(frozen=True)
class Thinned:
    """A fragment after some of its rows were taken away; without a message nothing of it is left."""

    fragment_id: int
    message: str | None


def thin_fragment(
    dataset_uri: str, version: int, fragment_id: int, offsets: Numbers, storage_options: dict[str, str] | None
) -> Thinned:
    """Take rows of one fragment away, in a file that no version mentions."""
    with translated(f"stage deletions in {dataset_uri}"):
        fragment = _opened(dataset_uri, version, storage_options).get_fragment(fragment_id)
        left = fragment.delete_rows(offsets.tolist())
        return Thinned(fragment_id, None if left is None else json.dumps(left.to_json()))


def read_fragments(
    dataset_uri: str,
    version: int,
    fragment_ids: Sequence[int],
    columns: Sequence[str],
    storage_options: dict[str, str] | None,
    shape: Shape | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of some fragments; `_rowid` and `_rowaddr` may be among the columns."""
    with translated(f"read {dataset_uri}"):
        dataset = shaped(_opened(dataset_uri, version, storage_options), shape)
        chosen = [dataset.get_fragment(number) for number in fragment_ids]
        yield from dataset.scanner(list(columns), fragments=chosen, batch_size=_READ_ROWS).to_reader()


def _opened(dataset_uri: str, version: int | None, storage_options: dict[str, str] | None) -> Any:
    try:
        return lance.dataset(dataset_uri, version=version, storage_options=storage_options)
    except ValueError as error:
        raise Unreadable(f"{dataset_uri} version {version} cannot be opened: {error}") from error


def read_fragment_messages(messages: list[str]) -> list[FragmentMetadata]:
    """The fragments the messages speak of, fit for an append by the driver."""
    return [FragmentMetadata.from_json(message) for message in messages]


def fragment_row_count(messages: list[str]) -> int:
    """How many rows the fragments hold together."""
    return sum(int(fragment.physical_rows) for fragment in read_fragment_messages(messages))
