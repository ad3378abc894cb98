"""Deals rows into parts by where their ids lie in the order of all ids.

Holds: parts follow each other as their ids do (by code point), and rows of one id are in one part.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import pyarrow as pa
import pyarrow.compute as pc

# From each batch so many ids stand for all of it.
_SAMPLES = 64


def bounds_of(ids: Iterable[pa.Array], parts: int) -> list[str]:
    """Ids at which to cut so that about as many rows lie between any two; fewer if many are alike."""
    seen: list[str] = []
    for batch in ids:
        step = max(1, len(batch) // _SAMPLES)
        seen += batch.take(pa.array(range(0, len(batch), step))).to_pylist()
    seen.sort()
    return sorted({seen[len(seen) * part // parts] for part in range(1, parts)}) if seen else []


def cut(batch: pa.RecordBatch, bounds: Sequence[str]) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The number of each part that gets rows, and the rows; a bound itself belongs to the part that it begins."""
    ordered = batch.take(pc.sort_indices(batch.column("id")))
    ids, first = ordered.column("id"), 0
    for part, bound in enumerate([*bounds, None]):
        end = batch.num_rows if bound is None else int(pc.sum(pc.less(ids, bound)).as_py())
        if end > first:
            yield part, ordered.slice(first, end - first)
        first = end
