"""Reads parts of a table away from the process that knows the graph: a uri, a version, fragments, a range of rows.

Holds for every scan: the parts of one plan together are each row of the version exactly once.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import lance
import pyarrow as pa

from omnigraph.storage.failures import Unreadable, translated
from omnigraph.storage.shapes import Shape, shaped

_BATCH_ROWS = 65_536
_BATCH_BYTES = 32 << 20


@dataclass(frozen=True)
class Part:
    """Some fragments; with `limit` only that many rows of the one fragment, after the first `offset` ones."""

    fragment_ids: tuple[int, ...]
    offset: int = 0
    limit: int | None = None


def scan_part(
    dataset_uri: str,
    version: int,
    part: Part,
    columns: Sequence[str],
    where: str | None,
    storage_options: Mapping[str, str] | None,
    shape: Shape | None = None,
) -> Iterator[pa.RecordBatch]:
    """The rows of a part in stored order. A range of rows is counted before `where`, so the two do not mix."""
    if where is not None and part.limit is not None:
        raise ValueError("a range of rows cannot be filtered")
    options = None if storage_options is None else dict(storage_options)
    with translated(f"read {dataset_uri}"):
        dataset = shaped(_opened(dataset_uri, version, options), shape)
        wanted = set(part.fragment_ids)
        scanner = dataset.scanner(
            list(columns),
            filter=where,
            fragments=[f for f in dataset.get_fragments() if f.fragment_id in wanted],
            offset=part.offset if part.limit is not None else None,
            limit=part.limit,
            batch_size=_BATCH_ROWS,
            batch_size_bytes=_BATCH_BYTES,
            scan_in_order=True,
            # An index of a branch may point into another branch's files; a scan needs none of them.
            use_scalar_index=False,
        )
        yield from scanner.to_reader()


def _opened(dataset_uri: str, version: int, options: dict[str, str] | None) -> Any:
    try:
        return lance.dataset(dataset_uri, version=version, storage_options=options)
    except ValueError as error:
        raise Unreadable(
            f"{dataset_uri} version {version} cannot be opened: {str(error).splitlines()[0]}",
            "Cleanup may have removed it since the frame was made; load it again.",
        ) from error
