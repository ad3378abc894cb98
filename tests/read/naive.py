"""A second reading of spec/query-execution.md: a checked read over plain rows, by trying everything.

A match is the set of ways to give each variable a row of its type so that every clause holds. An edge without a
variable and `$_` bind nothing, they only have to exist. Bindings, traversals, filters and `not` blocks are all such
clauses, so no order of evaluation appears here. Rows are plain dicts as a load takes them; answers are JSON rows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from omnigraph.catalog.catalog import TableType
from omnigraph.plan import typed
from omnigraph.plan.params import bind_parameters
from omnigraph.plan.typed import Direction
from read.naive_parts import WORDS, Pair, Search, aggregate, compare, cosine_distance, rank, reached, shown, stored

Row = dict[str, Any]
Tables = Mapping[str, Sequence[Mapping[str, Any]]]
Clause = typed.NodeBinding | typed.Expansion | typed.Comparison | typed.TextSearch | typed.Negation


def evaluate(
    query: typed.ReadQuery, tables: Tables, params: Any = None, now_ms: int = 0, search: Search = WORDS
) -> list[dict[str, Any]]:
    """The rows of the query over `{table_key: rows}`, each with id (edges: src and dst too) and its properties."""
    run = _Run(tables, search, bind_parameters(query.params, params), now_ms)
    found = run.matches(query.pattern, {})
    if query.aggregated:
        answers = [({}, values) for values in run.groups(query.columns, found)]
    else:
        found.sort(key=lambda row: [rank(entity["id"]) for _, entity in sorted(row.items())])
        run.fuse(query, found)
        found = run.ranked(query, found)
        answers = [(row, [run.value(column.value, row) for column in query.columns]) for row in found]
    for place, key in reversed(list(enumerate(query.order))):
        leads = place == 0 and query.ranking is not None
        descending = not isinstance(query.ranking, typed.Nearest) if leads else key.descending
        # Each sort keeps the order of equals, so later keys, and after them the ids, decide among those.
        answers.sort(key=lambda answer, by=key.value: rank(run.key(by, *answer)), reverse=descending)
    kept = answers if query.limit is None else answers[: query.limit]
    return [{c.name: shown(c.type, v) for c, v in zip(query.columns, values, strict=True)} for _, values in kept]


class _Run:
    def __init__(self, tables: Tables, search: Search, params: Mapping[str, Any], now_ms: int) -> None:
        self.tables, self.search, self.params, self.now_ms = tables, search, params, now_ms
        self.read: dict[str, list[Row]] = {}
        self.walked: dict[typed.Expansion, set[Pair]] = {}
        self.scored: dict[typed.Bm25, dict[str, float]] = {}
        self.fused: dict[typed.Rrf, dict[str, float]] = {}

    def rows(self, table: TableType) -> list[Row]:
        if table.table_key not in self.read:
            types = {known.name: known.type for known in table.properties if not known.type.is_blob}
            self.read[table.table_key] = [
                {name: row[name] for name in ("id", "src", "dst") if name in row}
                | {name: stored(type_, row.get(name)) for name, type_ in types.items()}
                for row in self.tables.get(table.table_key, ())
            ]
        return self.read[table.table_key]

    def matches(self, pattern: typed.Pattern, outer: Row) -> list[Row]:
        """Every way to bind the variables of the block; a clause is asked as soon as all its variables are bound."""
        waiting: list[Clause] = [*pattern.bindings, *pattern.expansions, *pattern.filters, *pattern.negations]
        rows, bound = [outer], set(outer)
        for variable in (None, *pattern.variables):
            if variable is not None:
                bound.add(variable.name)
                rows = [{**row, variable.name: entity} for row in rows for entity in self.rows(variable.type)]
            ready = [clause for clause in waiting if _needs(clause) <= bound]
            waiting = [clause for clause in waiting if clause not in ready]
            rows = [row for row in rows if all(self.holds(clause, row) for clause in ready)]
        assert not waiting
        return rows

    def holds(self, clause: Clause, row: Row) -> bool:
        match clause:
            case typed.NodeBinding(variable, _, wanted):
                entity = row[variable]
                return all(compare(m.comparator, entity[m.name], self.value(m.value, row)) for m in wanted)
            case typed.Expansion():
                left, right = (row[e.variable]["id"] if e.variable else None for e in (clause.left, clause.right))
                return any(left in (None, a) and right in (None, b) for a, b in self.pairs(clause, row))
            case typed.Comparison(left, comparator, right):
                return compare(comparator, self.value(left, row), self.value(right, row))
            case typed.TextSearch():
                return bool(self.value(clause, row))
            case typed.Negation(inner):
                return not self.matches(inner, row)

    def pairs(self, step: typed.Expansion, row: Row) -> set[Pair]:
        """The ids the step connects, from left to right: by the edge of the row if it has a variable, else by any."""
        if step.edge_variable is not None:
            return self.present(step, _directed(step, row[step.edge_variable]))
        if step not in self.walked:
            steps = {pair for edge in self.rows(step.edge) for pair in _directed(step, edge)}
            hops, chains = (step.min_hops, step.max_hops), step.edge.src_type == step.edge.dst_type
            starts = [node["id"] for node in self.rows(step.left.node)]
            found = {(start, end) for start in starts for end in reached(start, steps, hops, chains=chains)}
            self.walked[step] = self.present(step, found)
        return self.walked[step]

    def present(self, step: typed.Expansion, pairs: set[Pair]) -> set[Pair]:
        lefts, rights = ({node["id"] for node in self.rows(end.node)} for end in (step.left, step.right))
        return {(left, right) for left, right in pairs if left in lefts and right in rights}

    def value(self, asked: typed.Selected | int, row: Row) -> Any:
        match asked:
            case int():
                return asked
            case typed.Constant():
                return asked.value
            case typed.Parameter():
                return self.params[asked.name]
            case typed.CurrentTime():
                return self.now_ms
            case typed.PropertyValue():
                return row[asked.variable][asked.name]
            case typed.EntityId():
                return row[asked.variable]["id"]
            case typed.TextSearch(function, field, query, edits):
                text, words = self.value(field, row), self.value(query, row)
                most = 0 if edits is None else self.value(edits, row)
                return None not in (text, words) and self.search.matches(function, text, words, most)
            case typed.Bm25(field, query):
                if asked not in self.scored:
                    texts = {r["id"]: r[field.name] for r in self.rows(field.owner) if r[field.name] is not None}
                    self.scored[asked] = self.search.scores(texts, self.value(query, row) or "")
                return self.scored[asked].get(row[field.variable]["id"])
            case typed.Nearest(field, query):
                wanted = self.value(query, row)
                vector = self.search.embed(wanted, field.type.dimension or 0) if isinstance(wanted, str) else wanted
                return cosine_distance(row[field.variable][field.name], vector)
            case typed.Rrf():
                return self.fused[asked].get(row[asked.first.field.variable]["id"], 0.0)
        raise AssertionError("an aggregate is the value of a group, not of a row")

    def key(self, by: Any, row: Row, values: list[Any]) -> Any:
        return values[by.index] if isinstance(by, typed.ColumnRef) else self.value(by, row)

    def fuse(self, query: typed.ReadQuery, rows: list[Row]) -> None:
        """The score of every rrf of the query, by the id of the entities that are in the rows."""
        asked = [*(column.value for column in query.columns), *(key.value for key in query.order)]
        for rrf in (value for value in asked if isinstance(value, typed.Rrf)):
            score: dict[str, float] = {}
            for arm in (rrf.first, rrf.second):
                near = isinstance(arm, typed.Nearest)
                values = {row[arm.field.variable]["id"]: self.value(arm, row) for row in rows}
                ranks = sorted((v if near else -v, rank(id_), id_) for id_, v in values.items() if v is not None)
                for place, (_, _, id_) in enumerate(ranks[: query.limit] if near else ranks):
                    score[id_] = score.get(id_, 0.0) + 1 / (self.value(rrf.k, {}) + place + 1)
            self.fused[rrf] = score

    def ranked(self, query: typed.ReadQuery, rows: list[Row]) -> list[Row]:
        """Without the rows that the ranking of the query leaves out."""
        match query.ranking:
            case typed.Nearest() | typed.Bm25() as ranking:
                return [row for row in rows if self.value(ranking, row) is not None]
            case typed.Rrf() as ranking:
                score = self.fused[ranking]
                best = sorted(score, key=lambda id_: (-score[id_], rank(id_)))[: query.limit]
                return [row for row in rows if row[ranking.first.field.variable]["id"] in best]
        return rows

    def groups(self, columns: Sequence[typed.Column], rows: list[Row]) -> list[list[Any]]:
        keys = [column.value for column in columns if not isinstance(column.value, typed.Aggregate)]
        members: dict[tuple[Any, ...], list[Row]] = {} if keys else {(): []}
        for row in rows:
            members.setdefault(tuple(self.value(key, row) for key in keys), []).append(row)
        return [[self.of_group(column.value, group) for column in columns] for group in members.values()]

    def of_group(self, asked: typed.Selected, group: list[Row]) -> Any:
        if not isinstance(asked, typed.Aggregate):
            return self.value(asked, group[0])
        values = [self.value(asked.argument, row) for row in group]
        return aggregate(asked.function, [value for value in values if value is not None])


def _directed(step: typed.Expansion, edge: Row) -> set[Pair]:
    forth, back = (edge["src"], edge["dst"]), (edge["dst"], edge["src"])
    return {Direction.OUT: {forth}, Direction.IN: {back}, Direction.BOTH: {forth, back}}[step.direction]


def _needs(clause: Clause) -> set[str]:
    """The variables a clause takes from its block or from outside."""
    match clause:
        case typed.NodeBinding():
            return {clause.variable}
        case typed.Expansion():
            return {clause.left.variable, clause.right.variable, clause.edge_variable} - {None}
        case typed.Negation():
            return set(clause.outer)
        case typed.TextSearch():
            return {clause.field.variable}
    sides = [getattr(side, "field", side) for side in (clause.left, clause.right)]
    return {side.variable for side in sides if isinstance(side, typed.PropertyValue)}
