"""The tables one query reads: in memory where they are worth it, looked up row by row where not."""

from __future__ import annotations

from collections.abc import Mapping

from omnigraph.catalog.catalog import EdgeType, NodeType, declared_indexes
from omnigraph.engine.read.hot.cache import HotTables, State
from omnigraph.engine.read.hot.dictionary import Ordinals
from omnigraph.engine.read.hot.edges import EdgeImage
from omnigraph.engine.read.hot.nodes import NodeImage
from omnigraph.engine.read.local import LocalEdges, LocalNodes
from omnigraph.engine.read.rows import Bound
from omnigraph.engine.view import View
from omnigraph.settings import Settings
from omnigraph.storage.tables import Table

Nodes = NodeImage | LocalNodes
Edges = EdgeImage | LocalEdges


class States(dict[str, State]):
    """What is in memory of the tables of a view is known by their states; each is made when it is first asked for."""

    def __init__(self, view: View, graph: str, identity: str) -> None:
        self.view = view
        self.identity = identity
        self._graph = graph

    def __missing__(self, key: str) -> State:
        found = self[key] = State.of(self._graph, self.view.entry(key), self.view.columns_id(key))
        return found


class Tables:
    """What a query opened of its snapshot, each table once."""

    def __init__(
        self, states: States, hot: HotTables, settings: Settings, columns: Mapping[str, frozenset[str]]
    ) -> None:
        self.view = states.view
        self._states = states
        self._hot = hot
        self._settings = settings
        self._columns = columns
        self._opened: dict[str, Table] = {}
        self._nodes: dict[str, Nodes] = {}
        self._edges: dict[str, EdgeImage] = {}

    def table(self, table_key: str) -> Table:
        found = self._opened.get(table_key)
        if found is None:
            state = self._states[table_key]
            found = self._opened[table_key] = self._hot.table(state, lambda: self.view.table(table_key))
        return found

    def columns(self, table_key: str) -> frozenset[str]:
        return self._columns.get(table_key, frozenset())

    def count(self, table_key: str) -> int:
        return self.view.entry(table_key).row_count

    def nodes(self, node: NodeType, *, whole: bool = False) -> Nodes:
        """The nodes of a type; with `whole` in memory."""
        key = node.table_key
        found = self._nodes.get(key)
        if found is not None and (isinstance(found, NodeImage) or not whole):
            return found
        state = self._states[key]
        made: Nodes | None = self._hot.nodes_in_memory(state)
        if made is None:
            made = self._hot.nodes(state, lambda: self.table(key), self.count(key), load=whole)
        if made is None:
            self._hot.looked_up(state)
            made = LocalNodes(self.table(key), self.columns(key))
        self._nodes[key] = made
        return made

    def edges(self, edge: EdgeType, ends: tuple[NodeType, NodeType], frontier: int, hops: int) -> Edges:
        """The edges of a type, whose ends are of these types; how many nodes they are followed from decides."""
        key = edge.table_key
        opened = self._edges.get(key)
        if opened is not None:
            return opened
        state, mode = self._states[key], self._settings.read_traversal_mode
        if mode != "indexed":
            known = self._hot.edges_in_memory(state)
            if known is not None:
                sources, targets = (self.nodes(node, whole=True).dictionary for node in ends)
                if known.connects(sources, targets):
                    self._edges[key] = known
                    return known
            few = frontier <= self._settings.read_expand_max_frontier and hops <= self._settings.read_expand_max_hops
            load = mode == "csr" or not few
            whole = load or self._hot.has_near_edges(state)
            images = [self.nodes(node, whole=whole) for node in ends]
            if isinstance(images[0], NodeImage) and isinstance(images[1], NodeImage):
                pair = (images[0], images[1])
                found = self._hot.edges(state, lambda: self.table(key), self.count(key), pair, load=load)
                if found is not None:
                    self._edges[key] = found
                    return found
        self._hot.looked_up(state)
        return self._edges_here(key, ends)

    def _edges_here(self, key: str, ends: tuple[NodeType, NodeType]) -> LocalEdges:
        sources, targets = self.nodes(ends[0]).dictionary, self.nodes(ends[1]).dictionary
        state = self._states[key]
        return LocalEdges(self.table(key), sources, targets, self.columns(key), lambda: self._hot.looked_up(state))

    def numbers(self, bound: Bound, nodes: Nodes) -> Ordinals:
        """What a variable stands for, by the numbers that `nodes` uses."""
        if bound.entities is nodes:
            return bound.numbers
        theirs = getattr(bound.entities, "dictionary", None)
        if theirs is nodes.dictionary:
            return bound.numbers
        return nodes.dictionary.add_all(bound.values("id"))

    def is_indexed(self, node: NodeType, names: frozenset[str]) -> bool:
        """Whether the store finds rows by one of these columns without reading all of them."""
        return any(found.column in names for found in declared_indexes(node) if found.kind == "btree")
