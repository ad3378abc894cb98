"""One snapshot as numbered nodes: from the images that queries use, which stay for the next one."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from omnigraph.catalog.catalog import EdgeType, NodeType
from omnigraph.engine.analytics.call import Asked, Scope
from omnigraph.engine.analytics.numbers import Net, Numbers, components, degrees, ranks
from omnigraph.engine.read.hot.cache import HotTables, State
from omnigraph.engine.read.hot.nodes import NodeImage
from omnigraph.engine.view import View


def in_memory(view: View, graph: str, hot: HotTables, scope: Scope, asked: Asked) -> pa.Table:
    """`id`, `type` and `value` of every node, by id."""
    images = {node.name: _nodes(view, graph, hot, node) for node in scope.nodes}
    ids = pa.chunked_array([image.values("id", image.numbers) for image in images.values()], pa.string())
    types = pa.chunked_array([pa.array([name] * len(image.numbers), pa.string()) for name, image in images.items()])
    every = pa.table({"id": ids, "type": types})
    order = pc.sort_indices(every, sort_keys=[("id", "ascending"), ("type", "ascending")]).to_numpy()
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    first, numbered = 0, {}
    for name, image in images.items():
        numbered[name] = _Numbered(image, place[first : first + len(image.numbers)])
        first += len(image.numbers)
    ends = [_edges(view, graph, hot, edge, numbered) for edge in scope.edges]
    net = Net(
        len(order),
        np.concatenate([np.empty(0, np.int64), *(sources for sources, _ in ends)]),
        np.concatenate([np.empty(0, np.int64), *(targets for _, targets in ends)]),
    )
    sorted_ = every.take(pa.array(order)).combine_chunks()
    return sorted_.append_column("value", _values(asked, net, sorted_.column("id")))


class _Numbered:
    """The numbers an image has for its nodes, and those the algorithm has."""

    def __init__(self, image: NodeImage, places: Numbers) -> None:
        self.image = image
        self._places = np.full(int(image.numbers.max(initial=-1)) + 1, -1)
        self._places[image.numbers] = places

    def places(self, numbers: Numbers) -> Numbers:
        """-1 where there is no such node."""
        if not len(self._places):
            return np.full(len(numbers), -1)
        inside = np.minimum(numbers, len(self._places) - 1)
        found: Numbers = np.where(numbers < len(self._places), self._places[inside], -1)
        return found


def _nodes(view: View, graph: str, hot: HotTables, node: NodeType) -> NodeImage:
    key = node.table_key
    state = State.of(graph, view.entry(key), node.columns_id)
    found = hot.nodes(state, lambda: view.table(key), view.entry(key).row_count, load=True)
    assert found is not None
    return found


def _edges(
    view: View, graph: str, hot: HotTables, edge: EdgeType, numbered: dict[str, _Numbered]
) -> tuple[Numbers, Numbers]:
    key = edge.table_key
    sources, targets = numbered[edge.src_type], numbered[edge.dst_type]
    found = hot.edges(
        State.of(graph, view.entry(key), edge.columns_id),
        lambda: view.table(key),
        view.entry(key).row_count,
        (sources.image, targets.image),
        load=True,
    )
    assert found is not None
    origins = sources.image.numbers
    hops = found.side(True).follow(origins)
    starts, ends = sources.places(origins[hops.origin]), targets.places(hops.target)
    whole = (starts >= 0) & (ends >= 0)
    return starts[whole], ends[whole]


def _values(asked: Asked, net: Net, ids: pa.ChunkedArray) -> pa.Array:
    match asked.algorithm:
        case "pagerank":
            return pa.array(ranks(net, asked.damping, asked.iterations, asked.tolerance), pa.float64())
        case "components":
            # Nodes are numbered by their ids, so the smallest number is the smallest id.
            return ids.take(pa.array(components(net)))
        case _:
            return pa.array(degrees(net, asked.direction), pa.int64())
