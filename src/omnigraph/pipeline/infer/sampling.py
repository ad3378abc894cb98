"""The first rows of a table, if only some are wanted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

Batch = TypeVar("Batch", bound=Any)


def sampled(batches: Iterator[Batch], limit: int | None) -> Iterator[Batch]:
    """The batches up to `limit` rows; a batch is a record batch or a list."""
    left = limit
    for batch in batches:
        if left is not None and left < len(batch):
            yield batch[:left]
            return
        yield batch
        if left is not None:
            left -= len(batch)
            if left == 0:
                return
