"""The plain plan of a checked query: clauses in the order of evaluation that the language promises."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from omnigraph.catalog.catalog import NodeType
from omnigraph.plan.steps import Connect, Cross, Expand, Filter, Given, Plan, Scan, Step, Test, Without
from omnigraph.plan.typed import (
    Comparison,
    Direction,
    Expansion,
    NodeBinding,
    Pattern,
    PropertyValue,
    ReadQuery,
)

_BACK = {Direction.OUT: Direction.IN, Direction.IN: Direction.OUT, Direction.BOTH: Direction.BOTH}
# No variable of a query has such a name.
_NAMELESS = "_{}"


def lower(query: ReadQuery) -> Plan:
    step = _lowered(query.pattern, (), _Names())
    ties = tuple(variable.name for variable in query.pattern.variables)
    return Plan(step, query.columns, query.order, ties, query.limit, query.ranking, query.exact)


def backwards(direction: Direction) -> Direction:
    return _BACK[direction]


class _Names:
    """Names for nodes that a query only mentions."""

    def __init__(self) -> None:
        self._count = 0

    def next(self) -> str:
        self._count += 1
        return _NAMELESS.format(self._count)


@dataclass
class _Component:
    """Clauses that share variables."""

    bindings: list[NodeBinding] = field(default_factory=list)
    expansions: list[Expansion] = field(default_factory=list)
    variables: set[str] = field(default_factory=set)


def _lowered(pattern: Pattern, given: tuple[str, ...], names: _Names) -> Step:
    step: Step | None = Given(given) if given else None
    for component in _components(pattern, given):
        if given and component.variables & set(given):
            assert step is not None
            step = _joined(step, component.expansions, component.bindings, set(given), names)
        else:
            alone = _started(component, names)
            step = alone if step is None else Cross(step, alone)
    assert step is not None
    if pattern.filters:
        step = Filter(step, pattern.filters)
    inner = given + tuple(variable.name for variable in pattern.variables)
    for negation in pattern.negations:
        seen = tuple(name for name in inner if name in negation.outer)
        step = Without(step, _lowered(negation.pattern, seen, names))
    return step


def _started(component: _Component, names: _Names) -> Step:
    """The first binding is scanned; without one, the from-type of the first edge is."""
    if component.bindings:
        first = component.bindings[0]
        start = Scan(first.variable, first.node, tests_of(first))
        return _joined(start, component.expansions, component.bindings[1:], {first.variable}, names)
    edge = component.expansions[0]
    end, other = (edge.right, edge.left) if edge.direction is Direction.IN else (edge.left, edge.right)
    if end.variable is None:
        end = other
    if end.variable is not None:
        return _joined(Scan(end.variable, end.node), component.expansions, (), {end.variable}, names)
    nameless = names.next()
    return _expand(Scan(nameless, edge.left.node), nameless, edge, edge.direction, None, edge.right.node)


def _joined(
    step: Step, expansions: Sequence[Expansion], bindings: Sequence[NodeBinding], known: set[str], names: _Names
) -> Step:
    """Edges run as soon as one of their ends is known; bindings then test what was reached."""
    left, known = list(expansions), set(known)
    while left:
        edge = next(e for e in left if e.left.variable in known or e.right.variable in known)
        left.remove(edge)
        step = _along(step, edge, known)
        known |= {v for v in (edge.left.variable, edge.right.variable) if v is not None}
    tests = tuple(test for binding in bindings for test in tests_of(binding))
    return Filter(step, tests) if tests else step


def _along(step: Step, edge: Expansion, known: set[str]) -> Step:
    origin, target = edge.left.variable, edge.right.variable
    if origin in known and target in known:
        assert origin is not None
        assert target is not None
        hops = (edge.min_hops, edge.max_hops)
        return Connect(step, origin, edge.edge, edge.direction, target, *hops, edge.edge_variable)
    if origin in known:
        assert origin is not None
        return _expand(step, origin, edge, edge.direction, target, edge.right.node)
    assert target is not None
    return _expand(step, target, edge, backwards(edge.direction), origin, edge.left.node)


def _expand(
    step: Step, origin: str, edge: Expansion, direction: Direction, target: str | None, node: NodeType
) -> Expand:
    hops = (edge.min_hops, edge.max_hops)
    only_exists = target is None and edge.edge_variable is None
    return Expand(step, origin, edge.edge, direction, target, node, *hops, edge.edge_variable, any=only_exists)


def tests_of(binding: NodeBinding) -> tuple[Test, ...]:
    """The map of a binding as comparisons."""
    return tuple(
        Comparison(PropertyValue(binding.variable, binding.node, m.name, m.type), m.comparator, m.value)
        for m in binding.matches
    )


def _components(pattern: Pattern, given: Iterable[str]) -> Iterator[_Component]:
    """Connected clauses together, in the order in which the first of each was written; the given ones are one."""
    groups: list[_Component] = [_Component(variables=set(given))]
    for binding in pattern.bindings:
        _component(groups, {binding.variable}).bindings.append(binding)
    for edge in pattern.expansions:
        ends = {v for v in (edge.left.variable, edge.right.variable) if v is not None}
        _component(groups, ends).expansions.append(edge)
    order = {id(clause): place for place, clause in enumerate((*pattern.bindings, *pattern.expansions))}
    for group in groups:
        group.expansions.sort(key=lambda edge: order[id(edge)])
        group.bindings.sort(key=lambda binding: order[id(binding)])
    yield from (group for group in groups if group.bindings or group.expansions)


def _component(groups: list[_Component], variables: set[str]) -> _Component:
    """The group these variables belong to; groups that they connect become one."""
    met = [group for group in groups if group.variables & variables]
    if not met:
        groups.append(_Component(variables=set(variables)))
        return groups[-1]
    first, *others = met
    for other in others:
        first.bindings += other.bindings
        first.expansions += other.expansions
        first.variables |= other.variables
        groups.remove(other)
    first.variables |= variables
    return first
