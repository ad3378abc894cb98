"""Relevance and distance as columns of rows, and which rows a ranking lets through."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.engine.read.execute import Executor
from omnigraph.engine.read.hot.nodes import NodeImage
from omnigraph.engine.read.ranks import ranked
from omnigraph.engine.read.rows import Bound, Rows
from omnigraph.engine.read.search.text import bm25_scores
from omnigraph.engine.read.search.vectors import cosine_distances, nearest_rows, refuse_aimless
from omnigraph.engine.read.walk import distinct
from omnigraph.plan.steps import Plan
from omnigraph.plan.typed import Bm25, Nearest, PropertyValue, Ranking, Rrf
from omnigraph.storage.deltas import ROW_ID

Floats = npt.NDArray[np.float64]
Embed = Callable[[str, int, str | None], npt.NDArray[np.float32]]


class Scores:
    """Computed once for a run; every text is embedded once."""

    def __init__(self, executor: Executor, embed: Embed, exact: bool) -> None:
        self._run = executor
        self._embed = embed
        self._exact = exact
        self._found: dict[Bm25, tuple[npt.NDArray[np.uint64], Floats]] = {}

    def is_higher_better(self, ranking: Ranking) -> bool:
        return not isinstance(ranking, Nearest)

    def best(self, plan: Plan, rows: Rows) -> Rows:
        """The rows a ranking may return: all that match, or those of the nearest entities."""
        ranking = plan.ranking
        if isinstance(ranking, Nearest):
            assert plan.limit is not None
            held = self._nearest_held(ranking, rows, plan.limit)
            if held is not None:
                return rows.where(_is_among(rows.variables[ranking.field.variable].numbers, held[0]))
            near, _ = self._nearest(ranking, rows, plan.limit, plan.exact)
            return rows.where(np.isin(_row_ids(ranking.field, rows), near))
        assert ranking is not None
        scores = self.column(ranking, rows, plan)
        if isinstance(ranking, Rrf):
            return _best_entities(ranking, rows, scores, plan.limit)
        return rows.where(pc.is_valid(scores).to_numpy(zero_copy_only=False))

    def column(self, ranking: Ranking, rows: Rows, plan: Plan) -> pa.Array:
        """A score per row: NULL where there is none, 0 where no arm of a fusion has the row."""
        match ranking:
            case Bm25():
                return _nullable(_looked_up(self._relevance(ranking), _row_ids(ranking.field, rows)))
            case Nearest():
                query = self._vector(ranking)
                if query is None:
                    return _nullable(np.full(rows.count, np.nan))
                bound = rows.variables[ranking.field.variable]
                held = _distances_held(bound, ranking.field.name, query, bound.numbers)
                if held is not None:
                    return _nullable(held)
                return _nullable(cosine_distances(bound.values(ranking.field.name), query))
            case Rrf():
                kept = rows.variables.get(_kept_name(ranking))
                return self._fused(ranking, rows, plan) if kept is None else kept.values("")

    def keeping(self, plan: Plan, rows: Rows) -> Rows:
        """The rows with what depends on all of them; it stays with a row when others are cut off."""
        for value in plan.fusions:
            fused = _Kept(self._fused(value, rows, plan))
            rows = rows.binding(**{_kept_name(value): Bound(fused, np.arange(rows.count))})
        return rows

    def _relevance(self, ranking: Bm25) -> tuple[npt.NDArray[np.uint64], Floats]:
        known = self._found.get(ranking)
        if known is None:
            text = self._run.values.of(ranking.query)
            table = self._run.tables.table(ranking.field.owner.table_key)
            if text is None:
                known = np.empty(0, np.uint64), np.empty(0, np.float64)
            else:
                ids, scores = bm25_scores(table, ranking.field.name, str(text))
                known = np.asarray(ids, np.uint64), np.asarray(scores, np.float64)
            self._found[ranking] = known
        return known

    def _nearest(self, ranking: Nearest, rows: Rows, limit: int, exact: bool) -> tuple[npt.NDArray[np.uint64], Floats]:
        query = self._vector(ranking)
        if query is None or not rows.count or not limit:
            return np.empty(0, np.uint64), np.empty(0, np.float64)
        held = self._nearest_held(ranking, rows, limit)
        if held is not None:
            entities = rows.variables[ranking.field.variable].entities
            return entities.values(ROW_ID, held[0]).to_numpy(zero_copy_only=False), held[1]
        key = ranking.field.owner.table_key
        among = distinct(_row_ids(ranking.field, rows))
        every = len(among) == self._run.tables.count(key)
        ids, distances = nearest_rows(
            self._run.tables.table(key),
            ranking.field.name,
            query,
            limit,
            None if every else pa.array(among),
            exact=exact or self._exact,
        )
        return np.asarray(ids, np.uint64), np.asarray(distances, np.float64)

    def _nearest_held(self, ranking: Nearest, rows: Rows, limit: int) -> tuple[npt.NDArray[np.int64], Floats] | None:
        """The numbers of the nearest entities and their distances, by vectors in memory; None where they are not."""
        query = self._vector(ranking)
        if query is None or not rows.count or not limit:
            return None
        bound = rows.variables[ranking.field.variable]
        numbers = distinct(bound.numbers)
        distances = _distances_held(bound, ranking.field.name, query, numbers)
        if distances is None:
            return None
        known = ~np.isnan(distances)
        numbers, distances = numbers[known], distances[known]
        if len(numbers) > limit:
            kept = distances <= np.partition(distances, limit - 1)[limit - 1]
            numbers, distances = numbers[kept], distances[kept]
        return numbers, distances

    def _vector(self, ranking: Nearest) -> npt.NDArray[np.float32] | None:
        value = self._run.values.of(ranking.query)
        if value is None:
            return None
        if not isinstance(value, str):
            assert isinstance(value, tuple)
            query = np.array(value, np.float32)
            refuse_aimless(query)
            return query
        declared = ranking.field.owner.find_property(ranking.field.name)
        assert declared is not None
        model = declared.embed.model if declared.embed is not None else None
        assert ranking.field.type.dimension is not None
        return self._embed(value, ranking.field.type.dimension, model)

    def _fused(self, ranking: Rrf, rows: Rows, plan: Plan) -> pa.Array:
        k = ranking.k if isinstance(ranking.k, int) else self._run.values.of(ranking.k)
        assert isinstance(k, int)
        total = np.zeros(rows.count)
        for arm in (ranking.first, ranking.second):
            places = self._places(arm, rows, plan)
            met = places >= 0
            total[met] += 1.0 / (k + places[met] + 1)
        return pa.array(total)

    def _places(self, arm: Nearest | Bm25, rows: Rows, plan: Plan) -> npt.NDArray[np.int64]:
        """The rank of each row's entity in one arm, from 0; -1 where the arm lacks it."""
        row_ids = _row_ids(arm.field, rows)
        if isinstance(arm, Nearest):
            assert plan.limit is not None
            ids, scores = self._nearest(arm, rows, plan.limit, plan.exact)
        else:
            ids, scores = self._relevance(arm)
            here = np.isin(ids, row_ids)
            ids, scores = ids[here], -scores[here]
        entities, first = np.unique(row_ids, return_index=True)
        names = rows.variables[arm.field.variable].at(first).values("id")
        name_ranks = ranked(names).ranks[np.searchsorted(entities, ids)] if len(ids) else np.empty(0, np.int64)
        order = np.lexsort((name_ranks, scores))
        if isinstance(arm, Nearest):
            assert plan.limit is not None
            order = order[: plan.limit]
        ordered = ids[order]
        by_id = np.argsort(ordered)
        return _found_at(ordered[by_id], by_id, row_ids)


class _Kept:
    """A column that was computed once, by the places of its rows."""

    def __init__(self, column: pa.Array) -> None:
        self._column = column

    def values(self, name: str, numbers: npt.NDArray[np.int64]) -> pa.Array:
        return self._column.take(pa.array(numbers))


def _best_entities(ranking: Rrf, rows: Rows, scores: pa.Array, limit: int | None) -> Rows:
    """The rows of the `limit` best entities, equal ones by id; what no arm knows has a score of 0 and is not ranked."""
    rows_known = rows.where(pc.greater(scores, 0).to_numpy(zero_copy_only=False))
    entities = rows_known.variables[ranking.first.field.variable]
    numbers, first = np.unique(entities.numbers, return_index=True)
    if limit is None or len(numbers) <= limit:
        return rows_known
    known = scores.filter(pc.greater(scores, 0)).to_numpy(zero_copy_only=False)[first]
    by_score = np.lexsort((ranked(entities.at(first).values("id")).ranks, -known))
    return rows_known.where(np.isin(entities.numbers, numbers[by_score[:limit]]))


def _kept_name(ranking: Rrf) -> str:
    """No variable of a query has such a name."""
    return f"#{hash(ranking)}"


def _found_at(
    ids: npt.NDArray[np.uint64], places: npt.NDArray[np.int64], wanted: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    if not len(ids):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(ids, wanted), len(ids) - 1)
    return np.where(ids[at] == wanted, places[at], -1)


def _looked_up(found: tuple[npt.NDArray[np.uint64], Floats], wanted: npt.NDArray[np.uint64]) -> Floats:
    ids, scores = found
    order = np.argsort(ids)
    places = _found_at(ids[order], order, wanted)
    return np.where(places < 0, np.nan, scores[places]) if len(ids) else np.full(len(wanted), np.nan)


def _row_ids(field: PropertyValue, rows: Rows) -> npt.NDArray[np.uint64]:
    found: npt.NDArray[np.uint64] = rows.variables[field.variable].values(ROW_ID).to_numpy(zero_copy_only=False)
    return found


def _distances_held(
    bound: Bound, name: str, query: npt.NDArray[np.float32], numbers: npt.NDArray[np.int64]
) -> Floats | None:
    return bound.entities.distances(name, query, numbers) if isinstance(bound.entities, NodeImage) else None


def _is_among(numbers: npt.NDArray[np.int64], few: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """Which of many numbers are among a few."""
    table = np.zeros(int(numbers.max(initial=0)) + 1, bool)
    table[few] = True
    found: npt.NDArray[np.bool_] = table[numbers]
    return found


def _nullable(numbers: Floats) -> pa.Array:
    return pa.array(numbers, pa.float64(), mask=np.isnan(numbers))
