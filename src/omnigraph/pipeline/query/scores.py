"""Relevance and distance as columns of a frame. Texts are found by the driver, vectors compared by executors."""

from __future__ import annotations

from collections.abc import Callable
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from omnigraph.engine.read.search.asked import asked
from omnigraph.engine.read.search.text import bm25_scores, matching_rows
from omnigraph.engine.read.search.vectors import refuse_aimless
from omnigraph.engine.view import View
from omnigraph.pipeline.query.frames import Names
from omnigraph.plan.operands import Values
from omnigraph.plan.steps import Plan
from omnigraph.plan.typed import Bm25, Nearest, PropertyValue, Ranking, Rrf, TextSearch
from omnigraph.storage.deltas import ROW_ID

Embed = Callable[[str, int, str | None], Any]


class Found:
    """What the driver finds in texts: only ids and scores of rows that match."""

    def __init__(self, session: SparkSession, view: View, values: Values) -> None:
        self._session = session
        self._view = view
        self._values = values

    def matched(self, search: TextSearch) -> DataFrame:
        query = asked(search, self._values)
        ids = pa.array([], pa.string())
        if query is not None:
            table = self._view.table(search.field.owner.table_key)
            ids = self._present(search.field, matching_rows(table, query)).column("id")
        return self._frame({"id": ids})

    def relevance(self, ranking: Bm25) -> DataFrame:
        text = self._values.of(ranking.query)
        ids, scores = pa.array([], pa.string()), pa.array([], pa.float64())
        if text is not None:
            rows, scores = bm25_scores(self._view.table(ranking.field.owner.table_key), ranking.field.name, str(text))
            present = self._present(ranking.field, rows)
            ids = present.column("id")
            scores = scores.filter(pc.is_in(rows, value_set=present.column(ROW_ID).combine_chunks()))
        return self._frame({"id": ids, "score": scores})

    def _present(self, field: PropertyValue, rows: pa.Array) -> pa.Table:
        """The ids of these rows, without those that an index names and the table no longer has."""
        return self._view.table(field.owner.table_key).take(rows.to_pylist(), ["id", ROW_ID])

    def _frame(self, columns: dict[str, pa.Array | pa.ChunkedArray]) -> DataFrame:
        schema = ", ".join(f"{name} {'string' if name == 'id' else 'double'}" for name in columns)
        return self._session.createDataFrame(pa.table(columns), schema)


class Scores:
    """Adds the scores a plan speaks of to its rows."""

    def __init__(self, plan: Plan, names: Names, found: Found, values: Values, embed: Embed) -> None:
        self._plan = plan
        self._names = names
        self._found = found
        self._values = values
        self._embed = embed

    def column(self, ranking: Ranking) -> Column:
        return sf.col(self._name(ranking))

    def _name(self, ranking: Ranking) -> str:
        return self._names.of("#", ranking)

    def added(self, frame: DataFrame) -> DataFrame:
        values = (*(column.value for column in self._plan.columns), *(key.value for key in self._plan.order))
        for value in dict.fromkeys(v for v in values if isinstance(v, Ranking)):
            frame = self._with(frame, value)
        return frame

    def best(self, frame: DataFrame) -> DataFrame:
        """Only the rows that the first ordering key may return."""
        ranking = self._plan.ranking
        if ranking is None:
            return frame
        score = self.column(ranking)
        if not isinstance(ranking, Rrf):
            return frame.where(score.isNotNull())
        assert self._plan.limit is not None
        place = self._names.of("#entity", ranking)
        best_first = Window.orderBy(score.desc(), sf.col(self._names.id(ranking.first.field.variable)))
        ranked = frame.where(score > 0).withColumn(place, sf.dense_rank().over(best_first))
        return ranked.where(sf.col(place) <= self._plan.limit)

    def _with(self, frame: DataFrame, ranking: Ranking) -> DataFrame:
        if self._name(ranking) in frame.columns:
            return frame
        match ranking:
            case Bm25():
                id_ = self._names.id(ranking.field.variable)
                scores = self._found.relevance(ranking)
                named = scores.select(sf.col("id").alias(id_), sf.col("score").alias(self._name(ranking)))
                return frame.join(named, id_, "left")
            case Nearest():
                return frame.withColumn(self._name(ranking), self._distance(ranking))
            case Rrf():
                return self._fused(frame, ranking)

    def _distance(self, ranking: Nearest) -> Column:
        query = self._vector(ranking)
        if query is None:
            return sf.lit(None).cast("double")
        refuse_aimless(np.array(query))
        size = sqrt(sum(value * value for value in query))
        vector = sf.col(self._names.of(ranking.field.variable, ranking.field.name)).cast("array<double>")
        given = sf.array([sf.lit(value) for value in query])
        along = _sum(sf.zip_with(vector, given, lambda one, other: one * other))
        squares = _sum(sf.transform(vector, lambda one: one * one))
        distance = 1.0 - along / (sf.sqrt(squares) * size)
        return sf.when(squares > 0, sf.least(sf.greatest(distance, sf.lit(0.0)), sf.lit(2.0)))

    def _vector(self, ranking: Nearest) -> list[float] | None:
        value = self._values.of(ranking.query)
        if isinstance(value, str):
            declared = ranking.field.owner.find_property(ranking.field.name)
            model = declared.embed.model if declared is not None and declared.embed is not None else None
            assert ranking.field.type.dimension is not None
            return [float(number) for number in self._embed(value, ranking.field.type.dimension, model)]
        assert value is None or isinstance(value, tuple)
        return None if value is None else [float(number) for number in value]

    def _fused(self, frame: DataFrame, ranking: Rrf) -> DataFrame:
        k = ranking.k if isinstance(ranking.k, int) else self._values.of(ranking.k)
        total = sf.lit(0.0)
        for arm in (ranking.first, ranking.second):
            frame = self._with(frame, arm)
            place = self._names.of("#place", (ranking, arm))
            frame = frame.join(self._placed(frame, arm, place), self._names.id(arm.field.variable), "left")
            total = total + sf.coalesce(1.0 / (sf.lit(k) + sf.col(place) + 1), sf.lit(0.0))
        return frame.withColumn(self._name(ranking), total)

    def _placed(self, frame: DataFrame, arm: Nearest | Bm25, place: str) -> DataFrame:
        """The rank of each entity in one arm, from 0."""
        id_, score = self._names.id(arm.field.variable), self.column(arm)
        entities = frame.where(score.isNotNull()).select(id_, score).distinct()
        best_first = score.asc() if isinstance(arm, Nearest) else score.desc()
        ranked = entities.withColumn(place, sf.row_number().over(Window.orderBy(best_first, sf.col(id_))) - 1)
        if isinstance(arm, Nearest):
            assert self._plan.limit is not None
            ranked = ranked.where(sf.col(place) < self._plan.limit)
        return ranked.select(id_, place)


def _sum(numbers: Column) -> Column:
    return sf.aggregate(numbers, sf.lit(0.0), lambda total, number: total + number)
