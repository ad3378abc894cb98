"""Work handed to executors as groups of items, and its answers.

Holds for every task: it answers what it found or why it refused, and an answer that reached the driver came from one
attempt, whose files are the only ones anybody will look at.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import pyarrow as pa

from omnigraph.base.errors import OmniError
from omnigraph.pipeline.worker.settle import settle

ANSWER_COLUMNS = "answer binary"
_ANSWER = pa.schema([("answer", pa.binary())])


def answer_groups(
    batches: Iterator[pa.RecordBatch], groups: Sequence[Any], do: Callable[[Any], Any]
) -> Iterator[pa.RecordBatch]:
    """One answer for each group whose number is among the rows. For `DataFrame.mapInArrow`."""
    for batch in batches:
        for number in batch.column(0).to_pylist():
            yield answered(partial(do, groups[number]))


def answered(do: Callable[[], Any]) -> pa.RecordBatch:
    """What `do` returns, packed; an error of ours travels as a value, so that it arrives as it was raised."""
    try:
        found = do()
    except OmniError as error:
        error.__cause__ = None
        found = error
    finally:
        settle()
    return pa.RecordBatch.from_arrays([pa.array([pickle.dumps(found)], pa.binary())], schema=_ANSWER)


def unpacked(answer: bytes) -> Any:
    found = pickle.loads(answer)
    if isinstance(found, OmniError):
        raise found
    return found
