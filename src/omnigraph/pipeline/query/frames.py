"""The steps of a plan as DataFrames. A row is known by the ids of what it binds, so equal rows are one row."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from omnigraph.catalog.catalog import NodeType
from omnigraph.pipeline.query.expressions import Read, condition
from omnigraph.plan.operands import Values
from omnigraph.plan.steps import Connect, Cross, Expand, Filter, Given, Scan, Step, Test, Without
from omnigraph.plan.typed import Direction, EntityId, PropertyValue, TextSearch

Reader = Callable[[str, Sequence[str]], DataFrame]
"""A table by its key, with these columns."""
Matched = Callable[[TextSearch], DataFrame]
"""The ids of the nodes whose text matches, as the column `id`."""
Keep = Callable[["Step", Callable[[], "Rows"]], "Rows"]
"""The rows of a step, given how they are found."""


class Names:
    """A column name for each value of a variable; the same one whenever it is asked for."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, object], str] = {}

    def of(self, variable: str, value: object) -> str:
        return self._known.setdefault((variable, value), f"c{len(self._known)}")

    def id(self, variable: str) -> str:
        return self.of(variable, "id")


@dataclass(frozen=True)
class Rows:
    """A frame whose rows bind these variables."""

    frame: DataFrame
    variables: frozenset[str]


class Frames:
    def __init__(
        self,
        read: Reader,
        matched: Matched,
        columns: Mapping[str, frozenset[str]],
        searches: Iterable[TextSearch],
        values: Values,
        find_node: Callable[[str], NodeType],
        keep: Keep | None = None,
    ) -> None:
        self.names = Names()
        self._read = read
        self._matched = matched
        self._columns = columns
        self._searches = list(dict.fromkeys(searches))
        self._values = values
        self._find_node = find_node
        self._keep = keep

    def rows(self, step: Step, given: Rows | None = None) -> Rows:
        if self._keep is None:
            return self._rows(step, given)
        return self._keep(step, lambda: self._rows(step, given))

    def _rows(self, step: Step, given: Rows | None) -> Rows:
        match step:
            case Scan():
                return self._scan(step)
            case Given():
                assert given is not None
                return given
            case Expand():
                return self._expand(step, self.rows(step.input, given))
            case Connect():
                return self._connect(step, self.rows(step.input, given))
            case Cross():
                left, right = self.rows(step.left, given), self.rows(step.right, given)
                return Rows(left.frame.crossJoin(right.frame), left.variables | right.variables)
            case Filter():
                rows = self.rows(step.input, given)
                return Rows(self._where(rows.frame, step.tests), rows.variables)
            case Without():
                return self._without(self.rows(step.input, given), step.pattern)

    def column(self, value: Read) -> Column:
        """A value of a bound variable."""
        match value:
            case PropertyValue():
                return sf.col(self.names.of(value.variable, value.name))
            case EntityId():
                return sf.col(self.names.id(value.variable))
            case TextSearch():
                return sf.col(self.names.of(value.field.variable, value))

    def _where(self, frame: DataFrame, tests: Sequence[Test]) -> DataFrame:
        return reduce(lambda found, test: found.where(condition(test, self.column, self._values)), tests, frame)

    def _scan(self, step: Scan) -> Rows:
        frame = self._nodes(step.variable, step.node)
        if step.id is not None:
            wanted = self._values.of(step.id)
            frame = frame.where(sf.col(self.names.id(step.variable)) == sf.lit(wanted).cast("string"))
        return Rows(self._where(frame, step.tests), frozenset({step.variable}))

    def _nodes(self, variable: str, node: NodeType) -> DataFrame:
        """All nodes of a type under the names of a variable, with what texts of theirs match."""
        frame = self._table(node.table_key, variable)
        for search in self._searches:
            if search.field.variable == variable:
                flag = self.names.of(variable, search)
                hits = self._matched(search).select(
                    sf.col("id").alias(self.names.id(variable)), sf.lit(True).alias(flag)
                )
                frame = frame.join(hits, self.names.id(variable), "left").withColumn(
                    flag, sf.coalesce(sf.col(flag), sf.lit(False))
                )
        return frame

    def _table(self, key: str, variable: str, more: Sequence[tuple[str, str]] = ()) -> DataFrame:
        wanted = ["id", *sorted(name for name in self._columns.get(key, ()) if name not in ("id", "_rowid"))]
        frame = self._read(key, [*wanted, *(name for name, _ in more)])
        named = [sf.col(f"`{name}`").alias(self.names.of(variable, name)) for name in wanted]
        return frame.select(*named, *(sf.col(name).alias(alias) for name, alias in more))

    def _pairs(self, step: Expand | Connect) -> DataFrame:
        """Which nodes one edge connects, each pair once."""
        frame = self._read(step.edge.table_key, ["src", "dst"])
        out = frame.select(sf.col("src").alias("o"), sf.col("dst").alias("t"))
        back = frame.select(sf.col("dst").alias("o"), sf.col("src").alias("t"))
        found = {Direction.OUT: out, Direction.IN: back, Direction.BOTH: out.union(back)}[step.direction]
        return found.distinct()

    def _edges(self, step: Expand | Connect) -> DataFrame:
        """One row per edge, seen from either end; an undirected self-loop once."""
        assert step.edge_variable is not None
        out = self._table(step.edge.table_key, step.edge_variable, [("src", "o"), ("dst", "t")])
        back = self._table(step.edge.table_key, step.edge_variable, [("dst", "o"), ("src", "t")])
        back = back.select(*out.columns)
        straight = back.where(sf.col("o") != sf.col("t"))
        found = {Direction.OUT: out, Direction.IN: back, Direction.BOTH: out.union(straight)}[step.direction]
        return self._where(found, step.edge_tests)

    def _ends(self, step: Expand | Connect) -> tuple[NodeType, NodeType]:
        ends = self._find_node(step.edge.src_type), self._find_node(step.edge.dst_type)
        return (ends[1], ends[0]) if step.direction is Direction.IN else ends

    def _reached(self, step: Expand | Connect, rows: Rows) -> DataFrame:
        """Pairs `o`, `t` of the origins of these rows and the nodes within the bounds."""
        origin_type, target_type = self._ends(step)
        if origin_type is target_type and step.max_hops > 1:
            return self._walked(step, rows)
        pairs = self._pairs(step)
        return pairs if step.min_hops == 1 else pairs.limit(0)

    def _walked(self, step: Expand | Connect, rows: Rows) -> DataFrame:
        pairs = self._pairs(step).withColumnsRenamed({"o": "n", "t": "m"})
        origin = sf.col(self.names.id(step.origin))
        frontier = rows.frame.select(origin.alias("o"), origin.alias("t")).distinct()
        seen = frontier
        emitted: list[DataFrame] = []
        for hop in range(1, step.max_hops + 1):
            met = frontier.join(pairs, sf.col("t") == sf.col("n")).select("o", sf.col("m").alias("t")).distinct()
            # Each hop uses the ones before it twice; without a cut the plan would double with every hop.
            met = met.localCheckpoint()
            if hop == 1 == step.min_hops:
                emitted.append(met.where(sf.col("o") == sf.col("t")))
            frontier = met.join(seen, ["o", "t"], "left_anti").localCheckpoint()
            if hop >= step.min_hops:
                emitted.append(frontier)
            seen = seen.union(frontier)
        return reduce(DataFrame.union, emitted)

    def _expand(self, step: Expand, rows: Rows) -> Rows:
        origin = sf.col(self.names.id(step.origin))
        target = step.target if step.target is not None else "_"
        nodes = self._where(self._nodes(target, step.node), step.tests)
        there = sf.col(self.names.id(target))
        pairs = self._edges(step) if step.edge_variable is not None else self._reached(step, rows)
        if step.target is None or step.any:
            led = pairs.join(nodes, sf.col("t") == there, "left_semi")
        else:
            led = pairs.join(nodes, sf.col("t") == there)
        if step.any:
            return Rows(rows.frame.join(led.select("o"), origin == sf.col("o"), "left_semi"), rows.variables)
        found = rows.frame.join(led, origin == sf.col("o")).drop("o", "t")
        more = {v for v in (step.target, step.edge_variable) if v is not None}
        return Rows(found, rows.variables | more)

    def _connect(self, step: Connect, rows: Rows) -> Rows:
        here, there = sf.col(self.names.id(step.origin)), sf.col(self.names.id(step.target))
        if step.edge_variable is not None:
            edges = self._edges(step)
            found = rows.frame.join(edges, (here == sf.col("o")) & (there == sf.col("t"))).drop("o", "t")
            return Rows(found, rows.variables | {step.edge_variable})
        pairs = self._reached(step, rows)
        return Rows(rows.frame.join(pairs, (here == sf.col("o")) & (there == sf.col("t")), "left_semi"), rows.variables)

    def _without(self, rows: Rows, pattern: Step) -> Rows:
        start = _given(pattern)
        inner = frozenset(start.variables)
        ids = [self.names.id(variable) for variable in start.variables]
        outer = rows.frame.dropDuplicates(ids)
        met = self.rows(pattern, Rows(outer, inner)).frame.select(*ids).distinct()
        renamed = met.withColumnsRenamed({name: f"{name}_met" for name in ids})
        same = reduce(lambda one, other: one & other, [sf.col(name) == sf.col(f"{name}_met") for name in ids])
        return Rows(rows.frame.join(renamed, same, "left_anti"), rows.variables)


def _given(step: Step) -> Given:
    """The rows of the block around, from which every negated pattern starts."""
    while not isinstance(step, Given):
        assert not isinstance(step, Scan)
        step = step.left if isinstance(step, Cross) else step.input
    return step
