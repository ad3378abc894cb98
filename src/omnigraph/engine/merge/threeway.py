"""Two sets of row changes since one base, met row by row.

`source` and `target` are relations of `id`, `before` and `after`, as `engine.changes.rows` makes them: exactly the rows
that differ from the base, each as a struct of packed columns, null where there is no row. One SQL text decides; it
keeps to what DuckDB and Spark SQL read alike, so that either engine may be asked. Its answer has one row for each id
whose outcome is not to keep what the target has: `outcome`, `base`, `source`, `target`, and, where both sides updated
a row and properties are merged one by one, `units`: a letter for each unit in the order of `units_of`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from omnigraph.catalog.catalog import EdgeType, TableType
from omnigraph.engine.merge.table import Granularity, Outcome, outcome_sql
from omnigraph.records.packed import packed_name, packed_struct, unpacked_rows

KEPT, TAKEN, DISPUTED = "k", "t", "c"
_LETTERS: Mapping[Outcome, str] = {
    Outcome.KEEP: KEPT,
    Outcome.TAKE: TAKEN,
    Outcome.DIVERGENT_UPDATE: DISPUTED,
}
TARGET, SOURCE, BASE = 0, 1, 2
_SIDES = ("target", "source", "base")

Picks = np.ndarray[Any, np.dtype[np.int64]]


def units_of(type_: TableType) -> tuple[tuple[str, ...], ...]:
    """What is merged as one value: each property, and the two endpoints of an edge together."""
    properties = tuple((declared.name,) for declared in type_.properties)
    return (("src", "dst"), *properties) if isinstance(type_, EdgeType) else properties


def three_way_sql(type_: TableType, granularity: Granularity) -> str:
    by_unit = granularity == "property" and bool(units_of(type_))
    states, letters = _units_sql(type_) if by_unit else ("", "CAST(NULL AS STRING)")
    return f"""
WITH met AS (
  SELECT s.id, s.before AS base, s.after AS source, CASE WHEN t.id IS NULL THEN s.before ELSE t.after END AS target,
         CASE WHEN t.id IS NOT NULL THEN 'x' WHEN s.before IS NULL THEN 'none' ELSE 'keep' END AS in_target
  FROM source s LEFT JOIN target t ON s.id = t.id
),
stated AS (
  SELECT id, base, source, target, base IS NOT NULL AS has_base,
         CASE WHEN source IS NULL THEN 'delete' ELSE 'x' END AS in_source,
         CASE WHEN in_target = 'x' AND target IS NULL THEN 'delete' ELSE in_target END AS in_target,
         source IS NOT DISTINCT FROM target AS same
  FROM met
),
decided AS (
  SELECT id, base, source, target, {outcome_sql("in_source", "in_target", "same", "has_base")} AS outcome FROM stated
),
compared AS (SELECT id, base, source, target, outcome{states} FROM decided WHERE outcome <> '{Outcome.KEEP}')
SELECT id, outcome, {letters} AS units, base, source, target FROM compared ORDER BY id
"""


def _units_sql(type_: TableType) -> tuple[str, str]:
    """Columns that say what either side did to each unit, and the letters that follow from them.

    The same table decides: where both sides have the row, each either kept a value or has another.
    """
    states, letters = [], []
    for k, unit in enumerate(units_of(type_)):
        differ = partial(_differ, [packed_name(type_.arrow_schema.get_field_index(name)) for name in unit])
        states.append(f"CASE WHEN {differ('source', 'base')} THEN 'x' ELSE 'keep' END AS s{k}")
        states.append(f"CASE WHEN {differ('target', 'base')} THEN 'x' ELSE 'keep' END AS t{k}")
        states.append(f"NOT ({differ('source', 'target')}) AS e{k}")
        named = " ".join(f"WHEN '{outcome}' THEN '{letter}'" for outcome, letter in _LETTERS.items())
        letters.append(f"CASE {outcome_sql(f's{k}', f't{k}', f'e{k}')} {named} END")
    told = f"CASE WHEN outcome = '{Outcome.DIVERGENT_UPDATE}' THEN concat('', {', '.join(letters)}) END"
    return ", " + ", ".join(states), told


def _differ(columns: Sequence[str], one: str, other: str) -> str:
    return " OR ".join(f"{one}.{name} IS DISTINCT FROM {other}.{name}" for name in columns)


@dataclass(frozen=True)
class Met:
    """One batch of the answer; `schema` is the table's own."""

    batch: pa.RecordBatch
    type_: TableType

    @property
    def schema(self) -> pa.Schema:
        return self.type_.arrow_schema

    @cached_property
    def ids(self) -> list[str]:
        found: list[str] = self.batch.column("id").to_pylist()
        return found

    @cached_property
    def outcomes(self) -> list[Outcome]:
        return [Outcome(text) for text in self.batch.column("outcome").to_pylist()]

    @cached_property
    def units(self) -> list[str | None]:
        found: list[str | None] = self.batch.column("units").to_pylist()
        return found

    @cached_property
    def present(self) -> tuple[np.ndarray[Any, np.dtype[np.bool_]], ...]:
        """For each side, which rows it has."""
        columns = (self.batch.column(side) for side in _SIDES)
        return tuple(np.asarray(c.is_valid().to_numpy(zero_copy_only=False), np.bool_) for c in columns)

    @cached_property
    def _columns(self) -> dict[str, pa.Array]:
        """Each column of the table three times over: as the target, the source and the base have it."""
        packed = packed_struct(self.schema)
        sides = [unpacked_rows(self.batch.column(side).cast(packed), self.schema) for side in _SIDES]
        names = [name for name in self.schema.names if name != "id"]
        return {name: pa.concat_arrays([side.column(name) for side in sides]) for name in names}

    def rows(self, chosen: Picks, picks: Picks) -> pa.RecordBatch:
        """The rows with these numbers, each unit from the side that `picks[unit, row]` names."""
        places = {c: k for k, unit in enumerate(units_of(self.type_)) for c in unit}
        size = self.batch.num_rows
        columns = [self.batch.column("id").take(pa.array(chosen))]
        for name, values in self._columns.items():
            columns.append(values.take(pa.array(picks[places[name], chosen] * size + chosen)))
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def side(self, side: int, row: int) -> pa.RecordBatch | None:
        """One row as one side has it, None where it has none."""
        if not self.present[side][row]:
            return None
        picks = np.full((max(1, len(units_of(self.type_))), self.batch.num_rows), side, np.int64)
        return self.rows(np.array([row], np.int64), picks)
