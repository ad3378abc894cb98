"""What becomes of a row that two sides may have changed: the truth table as data, and as SQL made of that data.

Holds:
  1. Every cell is listed: 9 without a base row, 16 with one. `x` and `y` differ from each other and from the base.
  2. The SQL is generated from the cells, so no engine decides otherwise than the table says.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Literal, NamedTuple


class Outcome(StrEnum):
    """`keep`: the target's row, or its absence, stays. `take`: the source's row, or its absence, becomes the result."""

    KEEP = "keep"
    TAKE = "take"
    DIVERGENT_INSERT = "divergent_insert"
    DIVERGENT_UPDATE = "divergent_update"
    DELETE_VS_UPDATE = "delete_vs_update"


class Violated(StrEnum):
    """What validation of the merged state may find."""

    ORPHAN_EDGE = "orphan_edge"
    UNIQUE = "unique_violation"
    CARDINALITY = "cardinality_violation"
    VALUE = "value_constraint_violation"


class State(StrEnum):
    """One side of one row. `none` and `keep` are the base's own state, without and with a row."""

    NONE = "none"
    KEEP = "keep"
    X = "x"
    Y = "y"
    DELETE = "delete"


class Cell(NamedTuple):
    has_base: bool
    source: State
    target: State


_N, _B, _X, _Y, _D = State
_KEEP, _TAKE = Outcome.KEEP, Outcome.TAKE
_INSERTS, _UPDATES, _DELETED = Outcome.DIVERGENT_INSERT, Outcome.DIVERGENT_UPDATE, Outcome.DELETE_VS_UPDATE


def _cells(has_base: bool, rows: Mapping[State, Mapping[State, Outcome]]) -> dict[Cell, Outcome]:
    return {Cell(has_base, source, target): o for source, row in rows.items() for target, o in row.items()}


# Rows are the source's states, columns the target's.
WITHOUT_BASE: Mapping[Cell, Outcome] = _cells(
    False,
    {
        _N: {_N: _KEEP, _X: _KEEP, _Y: _KEEP},
        _X: {_N: _TAKE, _X: _KEEP, _Y: _INSERTS},
        _Y: {_N: _TAKE, _X: _INSERTS, _Y: _KEEP},
    },
)
WITH_BASE: Mapping[Cell, Outcome] = _cells(
    True,
    {
        _B: {_B: _KEEP, _X: _KEEP, _Y: _KEEP, _D: _KEEP},
        _X: {_B: _TAKE, _X: _KEEP, _Y: _UPDATES, _D: _DELETED},
        _Y: {_B: _TAKE, _X: _UPDATES, _Y: _KEEP, _D: _DELETED},
        _D: {_B: _TAKE, _X: _DELETED, _Y: _DELETED, _D: _KEEP},
    },
)
CELLS: Mapping[Cell, Outcome] = {**WITHOUT_BASE, **WITH_BASE}

Strategy = Literal["ours", "theirs"]
Granularity = Literal["row", "property"]
CHOICES = ("ours", "theirs", "base", "delete")
MESSAGES: Mapping[Outcome, str] = {
    Outcome.DIVERGENT_INSERT: "divergent insert for id '{id}'",
    Outcome.DIVERGENT_UPDATE: "divergent update for id '{id}'",
    Outcome.DELETE_VS_UPDATE: "delete/update conflict for id '{id}'",
}


def outcome_sql(source: str, target: str, same: str, has_base: str | None = None) -> str:
    """The table as one SQL expression over the names of columns.

    `source` and `target` hold a state, `x` for anything changed: what tells `x` from `y` is `same`, which is true where
    the sides are equal. `has_base` is true where there is a base; None: there is one, and nothing is deleted.
    """
    found: dict[tuple[bool, str, str, bool], Outcome] = {}
    for cell, outcome in CELLS.items():
        if has_base is None and (not cell.has_base or State.DELETE in cell):
            continue
        key = (cell.has_base, _plain(cell.source), _plain(cell.target), cell.source == cell.target)
        if found.setdefault(key, outcome) is not outcome:
            raise AssertionError(f"x and y are only names, but {cell} tells them apart")
    branches = []
    for (base, one, other, equal), outcome in found.items():
        known = [] if has_base is None else [has_base if base else f"NOT {has_base}"]
        known += [f"{source} = '{one}'", f"{target} = '{other}'", same if equal else f"NOT {same}"]
        branches.append(f"WHEN {' AND '.join(known)} THEN '{outcome}'")
    return f"CASE {' '.join(branches)} END"


def _plain(state: State) -> str:
    return State.X if state is State.Y else state
