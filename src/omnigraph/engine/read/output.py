"""What a query returns: columns of its rows, grouped, ordered and cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np
import pyarrow as pa

from omnigraph.catalog.catalog import NodeType
from omnigraph.catalog.types import ScalarType, arrow_type
from omnigraph.engine.read import gathered
from omnigraph.engine.read.execute import Executor
from omnigraph.engine.read.found import Found
from omnigraph.engine.read.gathered import Gathered
from omnigraph.engine.read.groups import Codes, aggregated, grouped
from omnigraph.engine.read.hot.nodes import NodeImage
from omnigraph.engine.read.ranks import Key, Places, ordered, told_apart
from omnigraph.engine.read.rows import Bound, Rows
from omnigraph.engine.read.scores import Scores
from omnigraph.plan.steps import Plan
from omnigraph.plan.typed import (
    Aggregate,
    Column,
    ColumnRef,
    EntityId,
    Operand,
    PropertyValue,
    Ranking,
    Selected,
    TextSearch,
)

# What a value of a result takes at least, on the whole.
_VALUE_BYTES = 4


class Output:
    def __init__(self, plan: Plan, executor: Executor, scores: Scores) -> None:
        self._plan = plan
        self._run = executor
        self._scores = scores

    def found(self) -> Found | pa.Table | Gathered:
        """The result of the plan; refused if it took more than a read may."""
        plan = self._plan
        if plan.only_counts:
            return Found(plan.schema, [[self._run.count(plan.step)]] * len(plan.columns), 1)
        rows = self._run.rows(plan.step)
        if rows.count >= gathered.GATHERED_ROWS_MIN and self._is_plain:
            places = self._ordered(rows, None)
            if len(places) >= gathered.GATHERED_ROWS_MIN:
                return Gathered(plan.schema, rows.at(places), self._columns)
        found = self._found(rows)
        allowance = self._run.allowance
        allowance.check()
        # Quick to ask, and counts what rows share as a whole, so that a small answer is seen to be small.
        if found.get_total_buffer_size() > allowance.limits.memory_bytes:
            allowance.reserve(found.nbytes)
        return found

    def _found(self, rows: Rows) -> Found | pa.Table:
        plan = self._plan
        if plan.aggregated:
            return self._aggregated(rows)
        rows = self._scores.keeping(plan, rows)
        if plan.ranking is not None:
            rows = self._scores.best(plan, rows)
        if plan.late:
            return self._columns(rows.at(self._ordered(rows, None)))
        found = self._columns(rows)
        if plan.order:
            table = found.table()
            return table.take(pa.array(self._ordered(rows, table)))
        return found if plan.limit is None else found.table().slice(0, plan.limit)

    @property
    def _is_plain(self) -> bool:
        """Whether a column of a row depends on that row alone."""
        plan = self._plan
        asked = [column.value for column in plan.columns] + [sort.value for sort in plan.order]
        return not plan.aggregated and not any(isinstance(value, Ranking) for value in asked)

    def _ordered(self, rows: Rows, table: pa.Table | None) -> Places:
        plan = self._plan
        if not plan.order:
            return np.arange(rows.count if plan.limit is None else min(rows.count, plan.limit))
        keys = [Key(self._key(sort.value, rows, table), sort.descending) for sort in plan.order]
        if plan.ranking is not None:
            keys[0] = Key(keys[0].column, self._scores.is_higher_better(plan.ranking))
        ties = [partial(_ids, rows.variables[variable]) for variable in plan.ties]
        return ordered(keys, ties, rows.count, plan.limit)

    def _key(self, value: Selected | ColumnRef, rows: Rows, table: pa.Table | None) -> pa.Array:
        if not isinstance(value, ColumnRef):
            return self._value(value, rows)
        if table is not None:
            return _one(table.column(value.index))
        return self._value(self._plan.columns[value.index].value, rows)

    def _columns(self, rows: Rows) -> Found:
        columns = self._plan.columns
        self._run.allowance.reserve(rows.count * len(columns) * _VALUE_BYTES)
        return _fitted(self._plan, [self._value(column.value, rows) for column in columns], rows.count)

    def _value(self, value: Selected, rows: Rows) -> pa.Array:
        match value:
            case PropertyValue():
                return rows.variables[value.variable].values(value.name)
            case EntityId():
                return rows.variables[value.variable].values("id")
            case TextSearch():
                return self._run.matching(value, self._value(value.field, rows))
            case Aggregate():
                raise AssertionError("an aggregate has no value in a row")
            case _ if isinstance(value, Ranking):
                return self._scores.column(value, rows, self._plan)
            case _:
                assert isinstance(value, Operand)
                type_ = arrow_type(value.type)
                scalar = pa.scalar(_plain(self._run.values.of(value)), type_)
                # Arrow repeats no list zero times.
                return pa.repeat(scalar, rows.count) if rows.count else pa.array([], type_)

    def _aggregated(self, rows: Rows) -> pa.Table:
        plan = self._plan
        codes = [self._codes(c.value, rows) for c in plan.columns if not isinstance(c.value, Aggregate)]
        groups = grouped(codes, rows.count)
        heads = rows.at(groups.first) if codes else rows
        arrays = []
        for column in plan.columns:
            value = column.value
            if not isinstance(value, Aggregate):
                arrays.append(self._value(value, heads))
            elif isinstance(value.argument, EntityId):
                arrays.append(aggregated(value, None, groups))
            else:
                arrays.append(aggregated(value, self._value(value.argument, rows), groups))
        table = _fitted(plan, arrays, len(groups)).table()
        if plan.order:
            keys = [Key(self._group_key(sort.value, heads, table), sort.descending) for sort in plan.order]
            table = table.take(pa.array(ordered(keys, _by_columns(plan.columns, table), table.num_rows, plan.limit)))
        return table if plan.limit is None else table.slice(0, plan.limit)

    def _group_key(self, value: Selected | ColumnRef, heads: Rows, table: pa.Table) -> pa.Array:
        return _one(table.column(value.index)) if isinstance(value, ColumnRef) else self._value(value, heads)

    def _codes(self, value: Selected, rows: Rows) -> Codes:
        """Equal numbers for equal values, -1 for NULL."""
        variable = value.variable if isinstance(value, PropertyValue | EntityId) else None
        bound = rows.variables.get(variable) if variable is not None else None
        if bound is not None and isinstance(bound.entities, NodeImage):
            if _is_identity(value):
                return bound.numbers
            nodes = bound.entities
            if isinstance(value, PropertyValue) and rows.count > len(nodes.numbers):
                found = np.full(int(nodes.numbers.max(initial=-1)) + 1, -1)
                found[nodes.numbers] = told_apart(nodes.values(value.name, nodes.numbers))
                return found[bound.numbers]
        return told_apart(self._value(value, rows))


def _is_identity(value: Selected) -> bool:
    """Whether no two nodes share the value: an id, or the one text that ids are made of."""
    if not isinstance(value, PropertyValue):
        return isinstance(value, EntityId)
    keys = value.owner.key_properties if isinstance(value.owner, NodeType) else ()
    return value.name == "id" or [(key.name, key.type.scalar) for key in keys] == [(value.name, ScalarType.STRING)]


def _by_columns(columns: Sequence[Column], table: pa.Table) -> list[Callable[[Places], pa.Array]]:
    """Groups that the keys leave equal, by what they are groups of."""
    keys = [place for place, column in enumerate(columns) if not isinstance(column.value, Aggregate)]
    return [partial(_taken, table.column(k)) for k in keys]


def _taken(column: pa.ChunkedArray, places: Places) -> pa.Array:
    return _one(column).take(pa.array(places))


def _ids(bound: Bound, places: Places) -> pa.Array:
    return bound.at(places).values("id")


def _fitted(plan: Plan, arrays: Sequence[pa.Array], count: int) -> Found:
    fitted = [a if a.type == type_ else a.cast(type_) for a, type_ in zip(arrays, plan.types, strict=True)]
    return Found(plan.schema, fitted, count)


def _one(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _plain(value: object) -> object:
    return list(value) if isinstance(value, tuple) else value
