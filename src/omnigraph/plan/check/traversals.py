"""The types of pattern variables: what bindings say, and what edges imply.

Holds at every return:
  1. Each endpoint has exactly one node type, and every edge connects the types it declares.
  2. The order of clauses decides only where nothing else does: an edge with no bound end leaves its left variable.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterable, Sequence

from omnigraph.base.errors import TypeCheckError
from omnigraph.catalog.catalog import Catalog, EdgeType, NodeType
from omnigraph.lang.diagnostics import known_names, type_error
from omnigraph.lang.gq import ast
from omnigraph.plan.check.scope import ANONYMOUS, Scope
from omnigraph.plan.typed import Direction, Endpoint, Expansion


def bind_nodes(bindings: Sequence[ast.Binding], scope: Scope) -> list[NodeType]:
    """The node type of each binding, its variable now in scope."""
    return [_bind_node(binding, scope) for binding in bindings]


def expand(traversals: Sequence[ast.Traversal], bindings: Sequence[ast.Binding], scope: Scope) -> list[Expansion]:
    """The traversals in the order written, each with its edge, direction and end types; all variables are in scope."""
    edges = [_edge(traversal, scope.catalog) for traversal in traversals]
    _refuse_bad_edge_variables(traversals, bindings, scope)
    found: dict[int, Expansion] = {}
    for index in _most_certain_first(traversals, scope):
        found[index] = _expansion(traversals[index], edges[index], scope)
    for traversal, edge in zip(traversals, edges, strict=True):
        if traversal.edge_variable is not None:
            scope.bind(traversal.edge_variable.name, edge)
    return [found[index] for index in range(len(traversals))]


def _bind_node(binding: ast.Binding, scope: Scope) -> NodeType:
    name, at = binding.variable.name, binding.variable.at
    node = scope.catalog.find_node(binding.type.name)
    if node is None:
        raise _unknown_node(binding, scope.catalog)
    if name == ANONYMOUS:
        raise type_error("T1", "'$_' binds nothing and takes no type", at, "Give the variable a name.")
    if name in scope.params:
        raise type_error("T1", f"'${name}' is a parameter and cannot be bound to a type", at, "Choose another name.")
    known = scope.find(name)
    if known is not None and known is not node:
        text = f"variable '${name}' is already bound to {known.name}, not {node.name}"
        raise type_error("T1", text, at, "Choose another name.")
    scope.bind(name, node)
    return node


def _unknown_node(binding: ast.Binding, catalog: Catalog) -> TypeCheckError:
    name = binding.type.name
    if catalog.find_interface(name) is not None:
        hint = "It is an interface, and interfaces cannot be queried."
    elif any(edge.name == name for edge in catalog.edges):
        hint = f"It is an edge type; write $a {_spoken(name)} $b."
    else:
        hint = known_names(name, [node.name for node in catalog.nodes], "There are")
    return type_error("T1", f"unknown node type '{name}'", binding.type.at, hint)


def _edge(traversal: ast.Traversal, catalog: Catalog) -> EdgeType:
    edge = catalog.find_edge(traversal.edge.name)
    if edge is None:
        name = traversal.edge.name
        hint = known_names(name, [_spoken(known.name) for known in catalog.edges], "There are")
        if not hint and name in {op.value for op in ast.WORD_OPS}:
            hint = f"Between two bare variables '{name}' is an edge; compare a property: $v.property {name} …"
        raise type_error("T4", f"unknown edge '{name}'", traversal.edge.at, hint)
    _refuse_bad_hops(traversal.hops)
    if traversal.edge.undirected and edge.src_type != edge.dst_type:
        text = f"<{traversal.edge.name}> needs equal endpoint types, {edge.name} goes from {_ends(edge)}"
        raise type_error("T22", text, traversal.edge.at, "Leave out the angle brackets.")
    return edge


def _refuse_bad_hops(hops: ast.Hops | None) -> None:
    if hops is None:
        return
    if hops.max is None:
        raise type_error(
            "T15", "unbounded traversal is disabled", hops.at, f"Give a maximum: {{{hops.min},{max(hops.min, 1) + 2}}}."
        )
    if hops.min < 1:
        raise type_error("T15", f"the minimum of hops is at least 1, got {hops.min}", hops.at)
    if hops.max < hops.min:
        raise type_error("T15", f"the maximum of hops {hops.max} is below the minimum {hops.min}", hops.at)


def _refuse_bad_edge_variables(
    traversals: Sequence[ast.Traversal], bindings: Sequence[ast.Binding], scope: Scope
) -> None:
    ends = {end.name for traversal in traversals for end in (traversal.left, traversal.right)}
    taken = ends | {binding.variable.name for binding in bindings} | scope.params.keys()
    for traversal in traversals:
        named = traversal.edge_variable
        if named is None:
            continue
        if named.name == ANONYMOUS:
            raise type_error("T23", "'$_' binds nothing and is no edge variable", named.at, "Leave it out.")
        if named.name in (traversal.left.name, traversal.right.name):
            raise type_error("T23", f"edge variable '${named.name}' is also an endpoint of its edge", named.at)
        if named.name in taken or scope.find(named.name) is not None:
            text = f"edge variable '${named.name}' is not a fresh name"
            raise type_error("T23", text, named.at, "Choose a name that nothing else has.")
        if traversal.hops is not None and (traversal.hops.min, traversal.hops.max) != (1, 1):
            text = f"edge variable '${named.name}' needs a single hop"
            raise type_error("T23", text, named.at, "Leave out the hops, or the edge variable.")
        taken.add(named.name)


def _most_certain_first(traversals: Sequence[ast.Traversal], scope: Scope) -> Iterable[int]:
    """Indexes in the order in which types become known; the caller binds both ends before it asks for the next."""
    waiting: defaultdict[str, list[int]] = defaultdict(list)
    ready: list[int] = []
    for index, traversal in enumerate(traversals):
        for end in (traversal.left, traversal.right):
            if scope.find(end.name) is not None:
                ready.append(index)
            else:
                waiting[end.name].append(index)
    heapq.heapify(ready)
    done: set[int] = set()
    for first in range(len(traversals)):
        chosen = first
        while ready or first not in done:
            chosen = heapq.heappop(ready) if ready else first
            if chosen in done:
                continue
            done.add(chosen)
            yield chosen
            for end in (traversals[chosen].left, traversals[chosen].right):
                if end.name != ANONYMOUS:
                    for woken in waiting.pop(end.name, ()):
                        heapq.heappush(ready, woken)


def _expansion(traversal: ast.Traversal, edge: EdgeType, scope: Scope) -> Expansion:
    left, right = _end_type(traversal.left, scope), _end_type(traversal.right, scope)
    direction = Direction.BOTH if traversal.edge.undirected else _direction(edge, left, right)
    types = (edge.dst_type, edge.src_type) if direction is Direction.IN else (edge.src_type, edge.dst_type)
    ends: list[Endpoint] = []
    for var, known, expected in zip((traversal.left, traversal.right), (left, right), types, strict=True):
        if known is not None and known.name != expected:
            raise _wrong_end(var, known, edge, types)
        node = scope.catalog.find_node(expected)
        assert node is not None, "the catalog checks the endpoints of edges"
        if var.name != ANONYMOUS:
            scope.bind(var.name, node)
        ends.append(Endpoint(None if var.name == ANONYMOUS else var.name, node))
    hops = (1, 1) if traversal.hops is None else (traversal.hops.min, traversal.hops.max or 1)
    named = None if traversal.edge_variable is None else traversal.edge_variable.name
    return Expansion(ends[0], edge, direction, ends[1], *hops, named)


def _direction(edge: EdgeType, left: NodeType | None, right: NodeType | None) -> Direction:
    if left is not None:
        incoming = left.name != edge.src_type and left.name == edge.dst_type
    else:
        incoming = right is not None and right.name != edge.dst_type and right.name == edge.src_type
    return Direction.IN if incoming else Direction.OUT


def _end_type(var: ast.Var, scope: Scope) -> NodeType | None:
    if var.name in scope.params:
        text = f"'${var.name}' is a parameter and cannot be an endpoint"
        raise type_error("T5", text, var.at, f"Bind a node: $v: Type {{ property: ${var.name} }}.")
    known = scope.find(var.name)
    if isinstance(known, EdgeType):
        text = f"edge variable '${var.name}' is used only as ${var.name}.property"
        raise type_error("T23", text, var.at)
    return known


def _wrong_end(var: ast.Var, known: NodeType, edge: EdgeType, types: tuple[str, str]) -> TypeCheckError:
    text = f"'${var.name}' is {known.name}, but {_spoken(edge.name)} goes from {_ends(edge)}"
    hint = ""
    if known.name in types:
        hint = f"Read from left to right, this traversal goes from {types[0]} to {types[1]}."
    return type_error("T5", text, var.at, hint)


def _ends(edge: EdgeType) -> str:
    return f"{edge.src_type} to {edge.dst_type}"


def _spoken(name: str) -> str:
    """The edge as a traversal writes it."""
    return name[0].lower() + name[1:]
