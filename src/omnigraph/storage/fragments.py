"""Fragments written away from the driver: files beside the table that no version mentions.

Holds at every return:
  1. No version of the table was made; whoever holds the messages may commit them, or nobody ever will.
  2. The files lie in the data directory of the branch whose `tree/` path was given.
"""

from __future__ import annotations

import json
from typing import Any

import lance
import pyarrow as pa
import pyarrow.compute as pc
from lance.fragment import FragmentMetadata, write_fragments

from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.predicates import LOOKUP_BY_FILTER_MAX, column_in

_ROWS_PER_FILE_MAX = 1 << 20
_BYTES_PER_FILE_MAX = 8 << 30


def write_fragment_messages(
    dataset_uri: str,
    version: int | None,
    rows: pa.RecordBatchReader | pa.Table,
    storage_options: dict[str, str] | None,
) -> list[str]:
    """Write the rows beside the table as it is at `version`; one JSON text per fragment, in the rows' order."""
    with translated(f"stage fragments in {dataset_uri}"):
        # The handle, not the uri: only it knows the branch's own data directory and the file format in use.
        dataset = _opened(dataset_uri, version, storage_options)
        written: Any = write_fragments(
            rows,
            dataset,
            mode="append",
            max_rows_per_file=_ROWS_PER_FILE_MAX,
            max_rows_per_group=None,
            max_bytes_per_file=_BYTES_PER_FILE_MAX,
            storage_options=storage_options,
            return_transaction=False,
        )
        return [json.dumps(fragment.to_json()) for fragment in written]


def _opened(dataset_uri: str, version: int | None, storage_options: dict[str, str] | None) -> Any:
    try:
        return lance.dataset(dataset_uri, version=version, storage_options=storage_options)
    except ValueError as error:
        raise Unreadable(f"{dataset_uri} version {version} cannot be opened: {error}") from error


def stored_ids(
    dataset_uri: str, version: int | None, ids: list[str], storage_options: dict[str, str] | None
) -> list[str]:
    """Which of the ids the table has at `version`, sorted."""
    with translated(f"look up ids in {dataset_uri}"):
        dataset = _opened(dataset_uri, version, storage_options)
        wanted = pa.array(ids, pa.string())
        where = column_in("id", wanted) if len(ids) <= LOOKUP_BY_FILTER_MAX else None
        if where is not None:
            return sorted(dataset.to_table(columns=["id"], filter=where).column("id").to_pylist())
        kept = [b.column("id").filter(pc.is_in(b.column("id"), value_set=wanted)) for b in dataset.to_batches(["id"])]
        return sorted(value for part in kept for value in part.to_pylist())


def read_fragment_messages(messages: list[str]) -> list[FragmentMetadata]:
    """The fragments the messages speak of, fit for an append by the driver."""
    return [FragmentMetadata.from_json(message) for message in messages]


def fragment_row_count(messages: list[str]) -> int:
    """How many rows the fragments hold together."""
    return sum(int(fragment.physical_rows) for fragment in read_fragment_messages(messages))
