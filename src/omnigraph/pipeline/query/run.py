"""A compiled query as one DataFrame."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from omnigraph.catalog.catalog import NodeType
from omnigraph.catalog.types import arrow_type
from omnigraph.engine.read.query import Compiled
from omnigraph.engine.view import View
from omnigraph.lang.gq.ast import Function
from omnigraph.pipeline.query.expressions import literal_of
from omnigraph.pipeline.query.frames import Frames, Keep, Reader
from omnigraph.pipeline.query.scores import Embed, Found, Scores
from omnigraph.plan.operands import Values
from omnigraph.plan.searches import text_searches
from omnigraph.plan.steps import Plan
from omnigraph.plan.typed import (
    Aggregate,
    ColumnRef,
    EntityId,
    Nearest,
    Operand,
    PropertyValue,
    Ranking,
    Selected,
    SortKey,
    TextSearch,
)
from omnigraph.records.fit import fit


def query_frame(
    session: SparkSession,
    read: Reader,
    view: View,
    compiled: Compiled,
    values: Values,
    embed: Embed,
    keep: Keep | None = None,
) -> DataFrame:
    """The result of the query; Spark computes it when somebody asks for its rows, or `keep` for those of a step."""
    plan = compiled.plan

    def find_node(name: str) -> NodeType:
        node = view.catalog.find_node(name)
        assert node is not None
        return node

    found = Found(session, view, values)
    frames = Frames(read, found.matched, compiled.columns, text_searches(plan), values, find_node, keep)
    rows = frames.rows(plan.step)
    return _Output(plan, frames, Scores(plan, frames.names, found, values, embed), values).of(rows.frame)


class _Output:
    def __init__(self, plan: Plan, frames: Frames, scores: Scores, values: Values) -> None:
        self._plan = plan
        self._frames = frames
        self._scores = scores
        self._values = values

    def of(self, frame: DataFrame) -> DataFrame:
        plan = self._plan
        if plan.aggregated:
            return self._aggregated(frame)
        frame = self._scores.best(self._scores.added(frame))
        if plan.order:
            keys = [self._sorted(key, place) for place, key in enumerate(plan.order)]
            frame = frame.orderBy(*keys, *(sf.col(self._frames.names.id(variable)) for variable in plan.ties))
        if plan.limit is not None:
            frame = frame.limit(plan.limit)
        return frame.select(*(self._value(column.value).alias(column.name) for column in plan.columns))

    def _sorted(self, key: SortKey, place: int) -> Column:
        value = self._plan.columns[key.value.index].value if isinstance(key.value, ColumnRef) else key.value
        if place == 0 and isinstance(value, Ranking):
            score = self._scores.column(value)
            return score.asc() if isinstance(value, Nearest) else score.desc()
        return _nulls_smallest(self._value(value), key.descending)

    def _value(self, value: Selected) -> Column:
        match value:
            case PropertyValue() | EntityId() | TextSearch():
                return self._frames.column(value)
            case Aggregate():
                raise AssertionError("an aggregate has no value in a row")
            case _ if isinstance(value, Ranking):
                return self._scores.column(value)
            case _:
                assert isinstance(value, Operand)
                return literal_of(value, self._values)

    def _aggregated(self, frame: DataFrame) -> DataFrame:
        plan = self._plan
        keys = [(f"g{n}", c.value) for n, c in enumerate(plan.columns) if not isinstance(c.value, Aggregate)]
        named = {name: self._value(value) for name, value in keys}
        sums = [
            self._aggregate(c.value).alias(f"g{n}")
            for n, c in enumerate(plan.columns)
            if isinstance(c.value, Aggregate)
        ]
        arguments = frame.select(*(column.alias(name) for name, column in named.items()), "*")
        found = arguments.groupBy(*named).agg(*sums) if keys else arguments.agg(*sums)
        if plan.order:
            order = [_nulls_smallest(sf.col(self._group_column(key)), key.descending) for key in plan.order]
            found = found.orderBy(*order, *(_nulls_smallest(sf.col(name), False) for name in named))
        if plan.limit is not None:
            found = found.limit(plan.limit)
        return found.select(*(sf.col(f"g{n}").alias(column.name) for n, column in enumerate(plan.columns)))

    def _group_column(self, key: SortKey) -> str:
        if isinstance(key.value, ColumnRef):
            return f"g{key.value.index}"
        return next(f"g{n}" for n, column in enumerate(self._plan.columns) if column.value == key.value)

    def _aggregate(self, value: Aggregate) -> Column:
        column = self._value(value.argument)
        match value.function:
            case Function.COUNT:
                return sf.count(column)
            case Function.SUM | Function.AVG:
                whole = value.argument.type.is_integer
                total = sf.sum(column.cast("decimal(38,0)") if whole else column.cast("double")).cast("double")
                return total if value.function is Function.SUM else total / sf.count(column)
            case Function.MIN:
                return sf.min(column)
            case _:
                return sf.max(column)


def _nulls_smallest(column: Column, descending: bool) -> Column:
    return column.desc_nulls_last() if descending else column.asc_nulls_first()


def fitted(table: pa.Table, plan: Plan) -> pa.Table:
    """What Spark gave, in the types a query has in memory."""
    schema = pa.schema([pa.field(column.name, arrow_type(column.type)) for column in plan.columns])
    columns = [_fitted(table.column(place), field.type) for place, field in enumerate(schema)]
    return pa.Table.from_arrays(columns, schema=schema)


def _fitted(column: pa.ChunkedArray, to: pa.DataType) -> pa.ChunkedArray:
    if not pa.types.is_fixed_size_list(to):
        return column.cast(to)
    # A plain cast of vectors that are all NULL ends the process.
    return pa.chunked_array([fit(chunk, to) for chunk in column.chunks], to)
