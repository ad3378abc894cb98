"""Keys and references, exactly: asked of DuckDB over all rows read, in bounded memory.

What a sample of values already refutes is not asked. Whole numbers that merely count upwards are contained in each
other by accident, so for them the name of the column must speak for the reference too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from omnigraph.pipeline.infer import names
from omnigraph.pipeline.infer.profile import ColumnProfile, Reference, TableProfile
from omnigraph.sets.scratch import Relation, Scratch

Values = Callable[[ColumnProfile], Iterator[pa.Array]]
_SCHEMA = pa.schema([pa.field("v", pa.string())])
_SAMPLES = pa.schema([pa.field("c", pa.int32()), pa.field("v", pa.string())])
_SPARSE = 4


@dataclass(frozen=True)
class Read:
    """A table that was profiled, and how to read a column of it again."""

    profile: TableProfile
    values: Values


def relation(values: Values, column: ColumnProfile) -> Relation:
    def batches() -> Iterator[pa.RecordBatch]:
        for texts in values(column):
            yield pa.RecordBatch.from_arrays([texts], schema=_SCHEMA)

    return Relation(_SCHEMA, batches, column.rows)


def is_unique(scratch: Scratch, values: Values, column: ColumnProfile) -> bool:
    found = scratch.rows("select count(*) as n from (select distinct v from t)", {"t": relation(values, column)})
    return bool(found["n"][0].as_py() == column.rows)


def is_contained(scratch: Scratch, part: Relation, whole: Relation) -> bool:
    missing = "select 1 as n from part where not exists (select 1 from whole where whole.v = part.v) limit 1"
    return bool(scratch.rows(missing, {"part": part, "whole": whole}).num_rows == 0)


def with_key(read: Read, scratch: Scratch) -> Read:
    """The table with its key: by name first, then by position; the first that is unique and complete."""
    profile = read.profile
    ranked = sorted(profile.columns, key=lambda c: (names.key_rank(c.name, profile.title), c.position))
    for column in ranked:
        if column.may_be_key and is_unique(scratch, read.values, column):
            return replace(read, profile=replace(profile, key=column.name))
    return read


def find_references(tables: Sequence[Read], scratch: Scratch) -> tuple[Reference, ...]:
    """For each column the one key that holds all its values; where several do, the one it is called after."""
    found: dict[tuple[int, str], list[Reference]] = {}
    for target, read in enumerate(tables):
        if read.profile.key is None:
            continue
        for source, column in _likely(tables, target, scratch):
            part = relation(tables[source].values, column)
            if is_contained(scratch, part, _keys_of(read)):
                reference = Reference(source, column.name, target)
                found.setdefault((source, column.name), []).append(reference)

    def order(reference: Reference) -> tuple[bool, int, int]:
        target = tables[reference.target].profile
        return (not names.names_table(reference.column, target.title), target.rows, reference.target)

    return tuple(min(references, key=order) for references in found.values())


def _keys_of(read: Read) -> Relation:
    assert read.profile.key is not None
    return relation(read.values, read.profile.column(read.profile.key))


def _likely(tables: Sequence[Read], target: int, scratch: Scratch) -> list[tuple[int, ColumnProfile]]:
    """The columns whose sampled values are all keys of the target."""
    candidates = [
        (source, column)
        for source, read in enumerate(tables)
        if source != target
        for column in read.profile.columns
        if may_refer(read.profile, column, tables[target].profile)
    ]
    pairs = [(k, value) for k, (_, column) in enumerate(candidates) for value in column.sample]
    if not pairs:
        return candidates
    samples = pa.table([pa.array([k for k, _ in pairs], pa.int32()), [v for _, v in pairs]], schema=_SAMPLES)
    sql = "select distinct c from s where not exists (select 1 from k where k.v = s.v)"
    refuted = set(scratch.rows(sql, {"s": Relation.of(samples), "k": _keys_of(tables[target])})["c"].to_pylist())
    return [candidate for k, candidate in enumerate(candidates) if k not in refuted]


def may_refer(table: TableProfile, column: ColumnProfile, target: TableProfile) -> bool:
    assert target.key is not None
    key = target.column(target.key)
    if column.family is None or column.family == "time" or column.family != key.family:
        return False
    if column.name == table.key:
        # Keys that count upwards contain each other; only `person_id` of a table that is not of persons refers.
        return names.names_table(column.name, target.title) and not names.names_table(column.name, table.title)
    if column.family == "text":
        return True
    if names.refers_by_name(column.name, target.title, key.name):
        return True
    if None in (column.low, column.high, key.low, key.high):
        return False
    span = (key.high or 0) - (key.low or 0) + 1
    return span > _SPARSE * target.rows
