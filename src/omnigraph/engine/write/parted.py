"""Questions about more rows than memory holds, asked part by part.

A rule compares rows that agree in some columns. Rows are dealt into parts by a hash of these columns, so rows that must
meet are in the same part, and the answers to all parts together are the answer to the whole. Where rows meet by id and
the answer is in id order, each part has the ids between two others, so that the order is that of the whole.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from itertools import chain

import pyarrow as pa

from omnigraph.engine.write.spool import RowSpool
from omnigraph.sets.dealing import compact, dealt
from omnigraph.sets.ranges import bounds_of, cut
from omnigraph.sets.scratch import BATCH_ROWS, Relation, Scratch

# What a row costs while it is hashed, joined and sorted, with room to spare.
_BYTES_PER_ROW = 200
# How often whole rows that are joined and sorted by id must fit into memory.
_ROOM = 8

Keys = Mapping[str, Sequence[str]]
"""The columns of each relation that rows must agree in to meet."""


@contextmanager
def asked(
    scratch: Scratch, sql: str, relations: Mapping[str, Relation], keys: Keys
) -> Iterator[Iterator[pa.RecordBatch]]:
    """The answer batch by batch, in no order; nothing else may be asked of this scratch meanwhile."""
    rows = sum(relation.row_count for relation in relations.values())
    parts = -(-rows // max(scratch.sql_bytes // _BYTES_PER_ROW, 1))
    if parts <= 1:
        with scratch.stream(sql, relations) as batches:
            yield batches
        return
    with closing(_parts_of(scratch, sql, relations, keys, parts)) as batches:
        yield batches


def _parts_of(
    scratch: Scratch, sql: str, relations: Mapping[str, Relation], keys: Keys, parts: int
) -> Generator[pa.RecordBatch, None, None]:
    dealt = {name: _dealt(scratch, relation, keys[name], parts) for name, relation in relations.items()}
    try:
        for part in range(parts):
            chosen = {name: spools[part].relation(relations[name].schema.names) for name, spools in dealt.items()}
            with scratch.stream(sql, chosen) as batches:
                yield from batches
            for spools in dealt.values():
                spools[part].close()
    finally:
        for spools in dealt.values():
            for spool in spools:
                spool.close()


def _dealt(scratch: Scratch, relation: Relation, columns: Sequence[str], parts: int) -> list[RowSpool]:
    spools = [RowSpool(relation.schema, scratch) for _ in range(parts)]
    for batch in relation.reader():
        for part, rows in dealt(batch, columns, parts):
            spools[part].append(compact(rows))
    return spools


def asked_in_order(
    scratch: Scratch, sql: str, spools: Mapping[str, RowSpool], batch_rows: int = BATCH_ROWS
) -> Generator[pa.RecordBatch, None, None]:
    """The answer batch by batch; the question joins its relations by `id` and orders by it."""
    size = sum(spool.total_bytes for spool in spools.values())
    parts = -(-size * _ROOM // scratch.sql_bytes)
    if parts <= 1:
        whole = {name: spool.relation(spool.schema.names) for name, spool in spools.items()}
        with scratch.stream(sql, whole, batch_rows) as batches:
            yield from batches
        return
    ids = chain.from_iterable(spool.batches(["id"]) for spool in spools.values())
    bounds = bounds_of((batch.column(0) for batch in ids), parts)
    ranges = {name: _cut(scratch, spool, bounds) for name, spool in spools.items()}
    try:
        for part in range(len(bounds) + 1):
            chosen = {name: some[part].relation(some[part].schema.names) for name, some in ranges.items()}
            with scratch.stream(sql, chosen, batch_rows) as batches:
                yield from batches
            for some in ranges.values():
                some[part].close()
    finally:
        for spool in chain.from_iterable(ranges.values()):
            spool.close()


def _cut(scratch: Scratch, rows: RowSpool, bounds: Sequence[str]) -> list[RowSpool]:
    spools = [RowSpool(rows.schema, scratch) for _ in range(len(bounds) + 1)]
    for batch in rows.batches():
        for part, some in cut(batch, bounds):
            spools[part].append(compact(some))
    return spools
