"""Runs the steps of a plan over one snapshot."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from time import perf_counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from omnigraph.catalog.catalog import NodeType
from omnigraph.engine.read import conditions
from omnigraph.engine.read.allowance import Allowance
from omnigraph.engine.read.hot.adjacency import Hops
from omnigraph.engine.read.hot.dictionary import ABSENT, Ordinals
from omnigraph.engine.read.hot.edges import EdgeImage
from omnigraph.engine.read.hot.nodes import NodeImage
from omnigraph.engine.read.local import LocalNodes
from omnigraph.engine.read.predicates import filter_text
from omnigraph.engine.read.rows import Bound, Entities, Mask, Rows
from omnigraph.engine.read.search.asked import asked
from omnigraph.engine.read.search.text import is_found_by_index, matches, matching_rows
from omnigraph.engine.read.tables import Edges, Nodes, Tables
from omnigraph.engine.read.walk import Pairs, distinct, one_hop, walk
from omnigraph.plan.operands import Values
from omnigraph.plan.steps import Connect, Cross, Expand, Filter, Given, Scan, Step, Test, Without
from omnigraph.plan.typed import Direction, EntityId, PropertyValue, TextSearch
from omnigraph.storage.deltas import ROW_ID

_PAIR_BYTES = 48


@dataclass
class Trace:
    """Rows and seconds of each step, by its place in the plan."""

    steps: dict[int, tuple[int, float]] = field(default_factory=dict)


class Executor:
    def __init__(self, tables: Tables, values: Values, allowance: Allowance, trace: Trace | None = None) -> None:
        self.tables = tables
        self.values = values
        self.allowance = allowance
        self._trace = trace

    def rows(self, step: Step, given: Rows | None = None) -> Rows:
        """The rows of a step; `given` are those of the block around it."""
        self.allowance.check()
        if self._trace is None:
            return self._rows(step, given)
        begun = perf_counter()
        found = self._rows(step, given)
        self._traced(step, found.count, begun)
        return found

    def count(self, step: Step) -> int:
        """How many rows a step gives; where the edges of a last hop can be counted it is not walked."""
        if not isinstance(step, Expand) or step.any or step.tests or step.edge_variable or step.max_hops > 1:
            return self.rows(step).count
        begun = perf_counter()
        rows = self.rows(step.input)
        edges, origin, target = self._opened(step, self._other_end(step), step.node, rows, step.origin)
        degrees = self._degrees(step, edges, origin, target) if step.direction is not Direction.BOTH else None
        simple = isinstance(edges, EdgeImage) and edges.side(step.direction is Direction.OUT).is_simple
        count = self._expand(step, rows).count if degrees is None or not simple else int(degrees.sum())
        self._traced(step, count, begun)
        return count

    def _traced(self, step: Step, count: int, begun: float) -> None:
        if self._trace is not None:
            rows, seconds = self._trace.steps.get(id(step), (0, 0.0))
            self._trace.steps[id(step)] = (rows + count, seconds + perf_counter() - begun)

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
                return self._cross(self.rows(step.left, given), step.right, given)
            case Filter():
                rows = self.rows(step.input, given)
                return rows.where(self.passing(step.tests, rows))
            case Without():
                return self._without(self.rows(step.input, given), step.pattern)

    def passing(self, tests: Sequence[Test], rows: Rows) -> Mask:
        def column(value: conditions.Column) -> pa.Array:
            self.allowance.check()
            match value:
                case PropertyValue():
                    return rows.variables[value.variable].values(value.name)
                case EntityId():
                    return rows.variables[value.variable].values("id")
                case TextSearch():
                    return self.matching(value, column(value.field))

        return conditions.passing(tests, column, rows.count, self.values)

    def matching(self, search: TextSearch, texts: pa.Array) -> pa.Array:
        """Which texts match."""
        query = asked(search, self.values)
        return pa.array(np.zeros(len(texts), bool)) if query is None else matches(query, texts)

    def _scan(self, step: Scan) -> Rows:
        if step.id is not None:
            wanted = self.values.of(step.id)
            nodes = self.tables.nodes(step.node)
            numbers = self._one(nodes, wanted) if isinstance(wanted, str) else _none()
            return self._tested(step.variable, nodes, numbers, step.tests)
        found = self._found_by_words(step)
        if found is not None:
            return found
        text = filter_text(step.tests, self.values)
        if text is not None and self.tables.is_indexed(step.node, _names(step.tests)):
            nodes = self.tables.nodes(step.node)
            if isinstance(nodes, LocalNodes):
                columns = ["id", *(c for c in self.tables.columns(step.node.table_key) if c != "id")]
                numbers = nodes.take(self.tables.table(step.node.table_key).read(columns, text))
                return self._tested(step.variable, nodes, numbers, step.tests)
        nodes = self.tables.nodes(step.node, whole=True)
        assert isinstance(nodes, NodeImage)
        return self._tested(step.variable, nodes, nodes.numbers, step.tests)

    def _found_by_words(self, step: Scan) -> Rows | None:
        """The rows of a scan that asks for words which an index knows; None where there is no such test."""
        key = step.node.table_key
        for test in step.tests:
            query = asked(test, self.values) if isinstance(test, TextSearch) else None
            if query is None or not is_found_by_index(self.tables.table(key), query):
                continue
            table = self.tables.table(key)
            row_ids = matching_rows(table, query)
            nodes = self.tables.nodes(step.node)
            if isinstance(nodes, NodeImage):
                numbers = nodes.with_row_ids(row_ids.to_numpy())
            else:
                columns = ["id", *(c for c in self.tables.columns(key) if c not in ("id", ROW_ID))]
                numbers = nodes.take(table.take(row_ids.to_pylist(), [*columns, ROW_ID]))
            others = [other for other in step.tests if other is not test]
            return self._tested(step.variable, nodes, np.sort(numbers), others)
        return None

    def _one(self, nodes: Nodes, id: str) -> Ordinals:
        if isinstance(nodes, NodeImage):
            number = nodes.find(id)
            return _none() if number == ABSENT else np.array([number])
        numbers = nodes.dictionary.add_all(pa.array([id]))
        present = nodes.present(numbers)
        return numbers if present is None else numbers[present]

    def _tested(self, variable: str, entities: Entities, numbers: Ordinals, tests: Sequence[Test]) -> Rows:
        rows = Rows(len(numbers), {variable: Bound(entities, numbers)})
        return rows.where(self.passing(tests, rows)) if tests else rows

    def _expand(self, step: Expand, rows: Rows) -> Rows:
        origin_type = self._other_end(step)
        edges, origin, target = self._opened(step, origin_type, step.node, rows, step.origin)
        if step.edge_variable is not None:
            return self._along_edges(step, rows, edges, origin, target)
        if step.any and not step.tests and step.max_hops == 1:
            degrees = self._degrees(step, edges, origin, target)
            if degrees is not None:
                return rows.where(degrees > 0)
        places, numbers = self._pairs(step, edges, origin, origin_type is step.node)
        kept = self._kept(step, edges, target, numbers)
        if kept is not None:
            places, numbers = places[kept], numbers[kept]
        if step.any:
            return rows.at(distinct(places))
        found = rows.at(places)
        return found if step.target is None else found.binding(**{step.target: Bound(target, numbers)})

    def _opened(
        self, step: Expand | Connect, origin_type: NodeType, target_type: NodeType, rows: Rows, origin: str
    ) -> tuple[Edges, Ordinals, Nodes]:
        ends = (origin_type, target_type) if step.direction is not Direction.IN else (target_type, origin_type)
        edges = self.tables.edges(step.edge, ends, rows.count, step.max_hops)
        numbers = self.tables.numbers(rows.variables[origin], self.tables.nodes(origin_type))
        return edges, numbers, self.tables.nodes(target_type)

    def _other_end(self, step: Expand) -> NodeType:
        name = step.edge.src_type if step.direction is not Direction.IN else step.edge.dst_type
        found = self.tables.view.catalog.find_node(name)
        assert found is not None
        return found

    def _follow(self, edges: Edges, outwards: bool, frontier: Ordinals) -> Hops:
        if isinstance(edges, EdgeImage):
            side = edges.side(outwards)
            enough = self.allowance.limits.memory_bytes // _PAIR_BYTES
            self.allowance.reserve(side.count(frontier, enough) * _PAIR_BYTES)
            return side.follow(frontier)
        hops = edges.follow(frontier, outwards)
        self.allowance.reserve(len(hops.target) * _PAIR_BYTES)
        return hops

    def _pairs(self, step: Expand | Connect, edges: Edges, origin: Ordinals, chains: bool) -> Pairs:
        sides = _sides(step.direction)
        if chains and step.max_hops > 1:
            follows = [partial(self._follow, edges, out) for out in sides]
            return walk(follows, origin, step.min_hops, step.max_hops, self.allowance.check)
        if step.min_hops > 1:
            return _none(), _none()
        simple = len(sides) == 1 and isinstance(edges, EdgeImage) and edges.side(sides[0]).is_simple
        return one_hop([self._follow(edges, out, origin) for out in sides], simple)

    def _degrees(self, step: Expand, edges: Edges, origin: Ordinals, target: Nodes) -> Ordinals | None:
        """How many edges each node has, those of both sides together; None if one went or may lead nowhere."""
        if not isinstance(edges, EdgeImage) or not isinstance(target, NodeImage) or step.min_hops > 1:
            return None
        sides = _sides(step.direction)
        if len(edges.image.gone) or not all(edges.leads_only_to(target, out) for out in sides):
            return None
        degrees = edges.side(sides[0]).degrees(origin)
        return degrees if len(sides) == 1 else degrees + edges.side(sides[1]).degrees(origin)

    def _kept(self, step: Expand, edges: Edges, nodes: Nodes, numbers: Ordinals) -> Mask | None:
        """Which of the reached nodes exist and pass the tests; None if all do."""
        tests, variable = step.tests, step.target
        sure = isinstance(edges, EdgeImage) and isinstance(nodes, NodeImage) and edges.is_within(nodes)
        present = None if sure else nodes.present(numbers)
        if not tests or variable is None:
            return present
        if isinstance(nodes, NodeImage) and len(numbers) > 2 * len(nodes.numbers):
            every = self.passing(tests, Rows(len(nodes.numbers), {variable: Bound(nodes, nodes.numbers)}))
            passes = np.zeros(int(max(nodes.numbers.max(initial=-1), numbers.max(initial=-1))) + 1, bool)
            passes[nodes.numbers[every]] = True
            return passes[numbers]
        kept = np.ones(len(numbers), bool) if present is None else present.copy()
        places = np.flatnonzero(kept)
        kept[places] = self.passing(tests, Rows(len(places), {variable: Bound(nodes, numbers[places])}))
        return kept

    def _edge_hops(self, step: Expand | Connect, edges: Edges, origin: Ordinals) -> Hops:
        """One step per edge, an undirected self-loop once."""
        met = [self._follow(edges, out, origin) for out in _sides(step.direction)]
        if len(met) == 2:
            back = met[1]
            straight = origin[back.origin] != back.target
            met[1] = Hops(back.origin[straight], back.target[straight], back.row[straight])
        return Hops(
            np.concatenate([hops.origin for hops in met]),
            np.concatenate([hops.target for hops in met]),
            np.concatenate([hops.row for hops in met]),
        )

    def _edges_kept(self, step: Expand | Connect, edges: Edges, hops: Hops) -> Mask:
        assert step.edge_variable is not None
        bound = {step.edge_variable: Bound(edges, hops.row)}
        return self.passing(step.edge_tests, Rows(len(hops.row), bound))

    def _along_edges(self, step: Expand, rows: Rows, edges: Edges, origin: Ordinals, target: Nodes) -> Rows:
        hops = self._edge_hops(step, edges, origin)
        kept = self._edges_kept(step, edges, hops)
        nodes_kept = self._kept(step, edges, target, hops.target)
        if nodes_kept is not None:
            kept &= nodes_kept
        places = np.flatnonzero(kept)
        if step.any:
            return rows.at(distinct(hops.origin[places]))
        assert step.edge_variable is not None
        found = rows.at(hops.origin[places]).binding(**{step.edge_variable: Bound(edges, hops.row[places])})
        if step.target is None:
            return found
        return found.binding(**{step.target: Bound(target, hops.target[places])})

    def _connect(self, step: Connect, rows: Rows) -> Rows:
        ends = [self.tables.view.catalog.find_node(name) for name in (step.edge.src_type, step.edge.dst_type)]
        assert ends[0] is not None
        assert ends[1] is not None
        origin_type, target_type = (ends[0], ends[1]) if step.direction is not Direction.IN else (ends[1], ends[0])
        edges, origin, target = self._opened(step, origin_type, target_type, rows, step.origin)
        wanted = self.tables.numbers(rows.variables[step.target], target)
        if step.edge_variable is not None:
            hops = self._edge_hops(step, edges, origin)
            kept = (hops.target == wanted[hops.origin]) & self._edges_kept(step, edges, hops)
            places = np.flatnonzero(kept)
            return rows.at(hops.origin[places]).binding(**{step.edge_variable: Bound(edges, hops.row[places])})
        places, numbers = self._pairs(step, edges, origin, origin_type is target_type)
        return rows.at(np.sort(places[numbers == wanted[places]]))

    def _cross(self, left: Rows, right_step: Step, given: Rows | None) -> Rows:
        right = self.rows(right_step, given)
        self.allowance.reserve(left.count * right.count * 8 * (len(left.variables) + len(right.variables)))
        lefts = np.repeat(np.arange(left.count), right.count)
        rights = np.tile(np.arange(right.count), left.count)
        return Rows(len(lefts), {**left.at(lefts).variables, **right.at(rights).variables})

    def _without(self, rows: Rows, pattern: Step) -> Rows:
        numbered = rows.binding(**{_PLACE: Bound(_Places(), np.arange(rows.count))})
        met = self.rows(pattern, numbered)
        kept = np.ones(rows.count, bool)
        kept[met.variables[_PLACE].numbers] = False
        return rows.where(kept)


# The place of a row in the block around; no variable is named so.
_PLACE = "#"


class _Places:
    def values(self, name: str, numbers: Ordinals) -> pa.Array:
        return pa.array(numbers)


def _sides(direction: Direction) -> tuple[bool, ...]:
    """Whether edges are followed outwards; both ways where that does not matter."""
    if direction is Direction.BOTH:
        return (True, False)
    return (direction is Direction.OUT,)


def _none() -> npt.NDArray[np.int64]:
    return np.empty(0, np.int64)


def _names(tests: Sequence[Test]) -> frozenset[str]:
    found = [side for test in tests for side in (getattr(test, "left", None), getattr(test, "right", None))]
    return frozenset(side.name for side in found if isinstance(side, PropertyValue))
